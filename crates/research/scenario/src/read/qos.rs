//! Reads a flow's reservation, and the program that makes its traffic.

use super::graph;
use crate::spec::{GraphSpec, ProgramSpec, QosSpec, TransportSpec};
use cutline_config::{TableReader, kind};
use cutline_tables::specification;
use cutline_translate::AckPath;

/// Reads the key `qos`: `Some(None)` if the flow does not have it, `None` if it is invalid.
#[expect(clippy::option_option, reason = "an invalid table differs from a flow without a reservation")]
pub(super) fn read(flow: &TableReader<'_>, transport: Option<&TransportSpec>) -> Option<Option<QosSpec>> {
    if !flow.has("qos") {
        return Some(None);
    }
    let table = flow.table("qos", "a table: write [flow.qos] below the flow")?;
    let words = [("best-effort", AckPath::BestEffort), ("reserved", AckPath::Reserved)];
    let ack_path = table.optional("ack-path", &kind::one_of("one of", &words));
    if ack_path.is_some() && transport.is_some_and(|transport| !transport.params.is_reliable()) {
        table.refuse("ack-path", "datagrams are not acknowledged");
    }
    let specification = specification::connection(&table);
    table.finish();
    let specification = specification?;
    let send = &specification.send;
    if send.size.is_none() || send.max_rate.or(send.min_rate).is_none() {
        flow.refuse(
            "qos",
            "a reservation needs a rate of messages and their size: set send.max-rate and send.size",
        );
    }
    Some(Some(QosSpec { specification, ack_path: ack_path.unwrap_or(AckPath::BestEffort) }))
}

/// Reads the key `program`.
pub(super) fn program(flow: &TableReader<'_>, transport: Option<&TransportSpec>) -> Option<ProgramSpec> {
    let words = [("netvideo", ProgramSpec::NetVideo), ("dirm", ProgramSpec::Dirm)];
    let program = flow.optional("program", &kind::one_of("a program", &words))?;
    let is_reliable = transport?.params.is_reliable();
    match program {
        ProgramSpec::NetVideo if is_reliable => {
            flow.refuse("program", "NetVideo sends datagrams: set protocol = \"udp\"");
        }
        ProgramSpec::Dirm if !is_reliable => {
            flow.refuse("program", "DIRM has streams: set protocol = \"tcp\"");
        }
        _ => {}
    }
    Some(program)
}

/// Reads the key `gateways`: two nodes between which there is a way.
pub(super) fn gateways(
    flow: &TableReader<'_>,
    graph: &GraphSpec,
    program: Option<ProgramSpec>,
) -> Option<[String; 2]> {
    let names: Vec<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
    let nodes = kind::list(
        2,
        "names of a [[node]]: those of the gateways at the sender and at the receiver",
        graph::node_name(&names),
    );
    let found: Option<[String; 2]> = flow.optional("gateways", &nodes)?.try_into().ok();
    let [from, to] = found.as_ref()?;
    if program.is_none() {
        flow.refuse("gateways", "only a flow with a program has gateways");
    } else if !graph.reaches(from, to) || !graph.reaches(to, from) || from == to {
        flow.refuse("gateways", "no path of links leads from one to the other, in both directions");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ScenarioFile;

    const NETWORK: &str = "name = 'q'\nduration = '9 s'\n[[node]]\nname = 'x'\n[[node]]\nname = 'y'\n\
                           [[link]]\nfrom = 'x'\nto = 'y'\nrate = '1 Mbit/s'\ndelay = '0 s'\n";

    fn flow(protocol: &str, keys: &str) -> Result<crate::spec::FlowGroupSpec, String> {
        let text = format!(
            "{NETWORK}[[flow]]\nname = 'f'\nfrom = 'x'\nto = 'y'\ntransport = {{ protocol = '{protocol}' }}\n\
             app = {{ kind = 'cbr', rate = '64 kbit/s', size = '160 B' }}\n{keys}"
        );
        let file = ScenarioFile::parse(&text, "q.toml").unwrap();
        file.scenario().map(|mut scenario| scenario.flows.remove(0)).map_err(|errors| errors.to_string())
    }

    const SEND: &str = "send = { max-rate = 60, size = '1280 B', max-delay = '100 ms' }\n";

    #[test]
    fn a_flow_has_a_specification_and_a_service_of_its_acknowledgements() {
        let qos = flow("udp", &format!("qos = {{ {} }}\n", SEND.trim())).unwrap().qos.unwrap();
        assert_eq!((qos.specification.send.max_rate, qos.ack_path), (Some(60.0), AckPath::BestEffort));
        let both = format!("program = 'dirm'\n[flow.qos]\nack-path = 'reserved'\n{SEND}");
        let both = flow("tcp", &both).unwrap();
        assert_eq!((both.qos.unwrap().ack_path, both.program), (AckPath::Reserved, Some(ProgramSpec::Dirm)));
        let plain = flow("udp", "").unwrap();
        assert_eq!((plain.qos, plain.program), (None, None));
    }

    #[test]
    fn keys_that_a_flow_cannot_have_are_refused() {
        for (protocol, keys, why) in [
            ("udp", format!("[flow.qos]\nack-path = 'reserved'\n{SEND}"), "datagrams are not acknowledged"),
            ("udp", "program = 'dirm'\n".to_owned(), "DIRM has streams"),
            ("tcp", "program = 'netvideo'\n".to_owned(), "NetVideo sends datagrams"),
            (
                "udp",
                "[flow.qos]\nsend = { max-delay = '1 s' }\n".to_owned(),
                "a rate of messages and their size",
            ),
            ("udp", format!("[flow.qos]\nsound = 1\n{SEND}"), "sound"),
            ("udp", "qos = true\n".to_owned(), "a table"),
            ("udp", "gateways = ['x', 'y']\n".to_owned(), "only a flow with a program"),
            ("tcp", "program = 'dirm'\ngateways = ['x', 'x']\n".to_owned(), "no path of links"),
            ("tcp", "program = 'dirm'\ngateways = ['x', 'z']\n".to_owned(), "names of a [[node]]"),
        ] {
            let error = flow(protocol, &keys).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_flow_without_nodes_has_neither_key() {
        let text = format!(
            "name = 'q'\nduration = '9 s'\n[dumbbell]\nrate = '1 Mbit/s'\ndelay = '1 ms'\naccess-rate = '1 Mbit/s'\n\
             access-delay = '1 ms'\nqueue = {{ aqm = 'drop-tail', limit = '9 packets' }}\n[[flow]]\nname = 'f'\n\
             transport = {{ protocol = 'udp' }}\nprogram = 'netvideo'\n\
             app = {{ kind = 'cbr', rate = '64 kbit/s', size = '160 B' }}\nqos = {{ {} }}\n",
            SEND.trim()
        );
        let errors = ScenarioFile::parse(&text, "q.toml").unwrap().scenario().unwrap_err();
        assert_eq!(errors.problems().len(), 2, "{errors}");
    }
}

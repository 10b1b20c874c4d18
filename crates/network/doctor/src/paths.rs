//! Findings about the ways to receive and send frames, and about namespaces.

use crate::finding::{Finding, Use};
use crate::probe::{Answer, Paths};
use crate::survey::Survey;

/// Namespaces, packet sockets, `AF_XDP`, TUN.
pub fn paths(survey: &Survey) -> Vec<Finding> {
    let mut findings = vec![namespaces(&survey.sandbox)];
    findings.extend(survey.paths.as_ref().map_or_else(not_tried, tried));
    findings
}

fn namespaces(sandbox: &Answer) -> Finding {
    let subject = "namespaces, veth";
    match sandbox {
        Answer::Yes => Finding::ok(subject, "created and removed"),
        Answer::No(why) => Finding::missing(
            subject,
            why.clone(),
            &[Use::Laboratory],
            "run it as root or with CAP_SYS_ADMIN, with iproute2, on a kernel with CONFIG_NET_NS and CONFIG_VETH",
        ),
        Answer::Unknown(why) => Finding::unknown(subject, why.clone()).then("run it as root"),
    }
}

fn not_tried() -> Vec<Finding> {
    let subjects = ["packet sockets", "AF_XDP, copying", "AF_XDP, zero copy", "TUN"];
    let untried =
        |subject| Finding::unknown(subject, "needs a separate namespace to be tried").then("run it as root");
    subjects.into_iter().map(untried).collect()
}

fn tried(paths: &Paths) -> Vec<Finding> {
    let packet = match &paths.packet {
        Answer::Yes => Finding::ok("packet sockets", "TPACKET_V2 ring: a frame crossed a virtual pair"),
        Answer::No(why) | Answer::Unknown(why) => Finding::missing(
            "packet sockets",
            why.clone(),
            &[Use::Router, Use::Laboratory],
            "use a kernel with CONFIG_PACKET",
        ),
    };
    let zero_copy = match &paths.xdp_zero_copy {
        // A network card may support it even if virtual interfaces do not.
        Answer::No(why) => {
            Finding::note("AF_XDP, zero copy", format!("not supported by virtual interfaces: {why}"))
        }
        answer => Finding::optional("AF_XDP, zero copy", answer, "supported by virtual interfaces"),
    };
    vec![
        packet,
        Finding::optional("AF_XDP, copying", &paths.xdp_copy, "a socket was bound to a virtual interface"),
        zero_copy,
        Finding::optional("TUN", &paths.tun, "an interface was created and removed"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::State;
    use crate::survey::perfect;

    #[test]
    fn untested_features_are_unknown_and_need_root() {
        let mut survey = perfect();
        (survey.sandbox, survey.paths) = (Answer::Unknown("not permitted".into()), None);
        let found = paths(&survey);
        assert!(found.iter().all(|finding| finding.state == State::Unknown && finding.needed_for.is_empty()));
        assert_eq!(found.len(), paths(&perfect()).len());
    }

    #[test]
    fn packet_sockets_are_needed_and_xdp_is_not() {
        let mut survey = perfect();
        let paths_of = survey.paths.as_mut().unwrap();
        paths_of.packet = Answer::No("Address family not supported".into());
        paths_of.xdp_copy = paths_of.packet.clone();
        let found = paths(&survey);
        assert_eq!((found[1].state, found[1].needed_for.len()), (State::Missing, 2));
        assert_eq!((found[2].state, found[2].needed_for.len()), (State::Note, 0));
    }

    #[test]
    fn a_kernel_without_namespaces_has_no_laboratory() {
        let found = namespaces(&Answer::No("Unknown device type".into()));
        assert_eq!((found.state, &found.needed_for[..]), (State::Missing, &[Use::Laboratory][..]));
    }
}

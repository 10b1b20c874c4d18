//! Transports: `transport = { protocol = "tcp" | "tfrc" | "udp", ... }`. The other keys are the transport's parameters.

use crate::spec::{CongestionControl, TcpSpec, TransportSpec};
use cutline_config::{TableReader, kind, parameter};
use cutline_params::{Parameter, Parameters};
use cutline_transport::{tcp, tfrc, udp};

const EXPECTED: &str = "a table such as { protocol = \"tcp\" }";

#[derive(Clone, Copy)]
enum Protocol {
    Tcp,
    Tfrc,
    Udp,
}

/// Which engine's or document's defaults fill in what a scenario leaves open.
#[derive(Clone, Copy)]
enum Defaults {
    /// Those of the RFCs.
    Rfc,
    /// Those of ns-2.35, which the TSQ paper was measured with.
    Ns2,
}

pub(super) fn read(flow: &TableReader<'_>) -> Option<TransportSpec> {
    if !flow.has("transport") {
        flow.lacks("transport", EXPECTED);
    }
    let reader = flow.table("transport", EXPECTED)?;
    let words = [("tcp", Protocol::Tcp), ("tfrc", Protocol::Tfrc), ("udp", Protocol::Udp)];
    let Some(protocol) = reader.required("protocol", &kind::one_of("a protocol", &words)) else {
        // Which other keys are right depends on the protocol.
        reader.report_missing();
        return None;
    };
    let transport = match protocol {
        Protocol::Tcp => tcp(&reader).map(TransportSpec::Tcp),
        Protocol::Tfrc => {
            let base = match defaults(&reader) {
                Defaults::Rfc => tfrc::Params::default(),
                Defaults::Ns2 => tfrc::Params::ns2(),
            };
            params(&reader, base).map(TransportSpec::Tfrc)
        }
        Protocol::Udp => params(&reader, udp::Params::default()).map(TransportSpec::Udp),
    };
    reader.finish();
    transport
}

fn tcp(reader: &TableReader<'_>) -> Option<TcpSpec> {
    let base = match defaults(reader) {
        Defaults::Rfc => tcp::Params::default(),
        Defaults::Ns2 => tcp::Params::ns2(),
    };
    let controls = [
        ("newreno", CongestionControl::NewReno),
        ("cubic", CongestionControl::Cubic),
        ("bbr", CongestionControl::Bbr),
    ];
    let control = kind::one_of("a congestion control", &controls);
    let congestion_control = reader.or("congestion-control", &control, CongestionControl::NewReno);
    let algorithm = match congestion_control {
        CongestionControl::NewReno => tcp::Algorithm::NewReno,
        // A simulation of BBR is refused; the laboratory's sinks only read.
        CongestionControl::Cubic | CongestionControl::Bbr => tcp::Algorithm::Cubic,
    };
    let mut others = tcp::Params::describe();
    others.retain(|parameter| parameter.name != "congestion-control");
    let values = parameter::values(reader, &others);
    let given = values.iter().map(|(name, _)| *name).collect();
    let params = parameter::checked(reader, tcp::Params { algorithm, ..base }.with_values(values))?;
    Some(TcpSpec { congestion_control, params, given })
}

/// The parameters that the table sets, and those of `base`.
fn params<P: Parameters>(reader: &TableReader<'_>, base: P) -> Option<P> {
    let described: Vec<&'static Parameter> = P::describe();
    parameter::checked(reader, base.with_values(parameter::values(reader, &described)))
}

fn defaults(reader: &TableReader<'_>) -> Defaults {
    let words = [("rfc", Defaults::Rfc), ("ns-2", Defaults::Ns2)];
    reader.or("defaults", &kind::one_of("a set of defaults", &words), Defaults::Rfc)
}

//! The plan of a flow: transport, application, addresses, code point, times.

use crate::MESSAGE_HEADER;
use cutline_params::ParameterError;
use cutline_transport::app::Params;
use cutline_transport::endpoint::{Transport as _, TransportParams};
use cutline_transport::wire::DatagramFormat;
use cutline_transport::{tcp, udp};
use cutline_units::{Bytes, Dscp, Duration, Rate};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

/// The plan of a generator's flow.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The flow's number, below [`crate::MeterParams::flows`]. The meter identifies the flow by it.
    pub id: u32,
    /// The flow's name. Its random numbers depend on it.
    pub name: String,
    /// The end that sends. A [`Generator`](crate::Generator) sends reverse flows only over paths that the peer has opened.
    pub direction: PlanDirection,
    /// The transport.
    pub transport: FlowTransport,
    /// The application.
    pub app: Params,
    /// The source address and port. With `None` or port 0 the kernel chooses.
    pub from: Option<SocketAddr>,
    /// The meter's address and port.
    pub to: SocketAddr,
    /// The code point of the flow's packets, and of their acknowledgements and feedback.
    pub dscp: Dscp,
    /// True if the flow's packets are ECN-capable. For TCP this requires `net.ipv4.tcp_ecn = 1`, which
    /// applies to all connections of a network namespace.
    pub ecn: bool,
    /// The start time, since the run's zero. A TCP flow connects at this time.
    pub start: Duration,
    /// The time at which the application stops writing, since the run's zero; `None` for the end of the run.
    pub stop: Option<Duration>,
}

/// The direction of a flow between the two ends of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlanDirection {
    /// From the end that requests the run to the receiver.
    #[default]
    Forward,
    /// From the receiver to the end that requests the run. That end opens the connection.
    Reverse,
}

impl PlanDirection {
    /// Returns the name in files and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }
}

/// The longest message of [`FlowTransport::Direct`], bytes: that of UDP in IPv4, so that both can be compared.
pub const LONGEST_FRAME_MESSAGE: u32 = 65_507;
const _: () = assert!(LONGEST_FRAME_MESSAGE as usize <= cutline_wire::direct::LONGEST_MESSAGE);
/// The name of [`FlowTransport::Direct`].
pub const DIRECT: &str = "direct";

/// The transport of a flow.
#[derive(Clone, Debug)]
pub enum FlowTransport {
    /// The kernel's TCP.
    Tcp(TcpOptions),
    /// A datagram transport of Cutline. A plan is invalid if the transport has no
    /// [`datagram_format`](TransportParams::datagram_format).
    Datagrams(TransportParams),
    /// Messages in frames below IP, over the link to the receiver ([`cutline_direct`]), with the header of UDP's datagrams. A plan is
    /// invalid if the flow is reverse.
    Direct {
        /// The largest message, 1..=65,507 bytes, as with UDP; a longer write of the application is split.
        largest: u32,
    },
}

impl FlowTransport {
    /// Returns the transport's name in files and on the command line.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tcp(_) => tcp::Tcp::NAME,
            Self::Datagrams(params) => params.name(),
            Self::Direct { .. } => DIRECT,
        }
    }
}

/// The options of a TCP socket. `None` keeps the kernel's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpOptions {
    /// The congestion control, by its name in `net.ipv4.tcp_available_congestion_control`.
    pub congestion_control: Option<String>,
    /// The largest payload of a segment, 88..32,767 bytes. With TCP time stamps it is 12 bytes less.
    pub max_segment: Option<u32>,
    /// The size of the sender's buffer in the kernel, bytes (`SO_SNDBUF`; the kernel doubles it for its overhead).
    pub send_buffer: Option<u32>,
    /// The size of the receiver's buffer, bytes (`SO_RCVBUF`, set by the meter). It limits the advertised window.
    pub receive_buffer: Option<u32>,
    /// The size of the queue in the process for data that does not fit into the kernel's buffer, bytes; `None` for no
    /// limit. A message that does not fit is refused and counted. A message of an application that waits for delivery
    /// always fits.
    pub write_queue: Option<u64>,
    /// True if Nagle's algorithm is off: small segments do not wait for acknowledgements (`TCP_NODELAY`).
    pub no_delay: bool,
    /// The limit of unsent data in the kernel's buffer, bytes (`TCP_NOTSENT_LOWAT`).
    pub not_sent_lowat: Option<u32>,
    /// The largest rate at which the kernel sends (`SO_MAX_PACING_RATE`).
    #[serde(with = "crate::sent::optional_rate")]
    pub max_pacing_rate: Option<Rate>,
}

/// The options of the sockets for datagrams of a run. `None` keeps the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramOptions {
    /// The size of the sender's buffer in the kernel, bytes (`SO_SNDBUF`; the kernel doubles it for its overhead).
    pub send_buffer: Option<u32>,
    /// The size of the meter's buffer in the kernel, 1..=67,108,864 bytes (`SO_RCVBUF`); by default 8 MiB.
    pub receive_buffer: Option<u32>,
    /// Rate control of each flow below its application.
    pub shaper: Option<RateShaper>,
}

/// Rate control below an application: datagrams wait in a queue that empties at this rate, and are dropped if it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateShaper {
    /// The rate of IP packets with their headers; above 0.
    pub rate: Rate,
    /// The payload that may wait, bytes.
    pub queue: u64,
    /// The longest IP packet of the path, bytes. Longer datagrams are sent in fragments.
    pub mtu: u32,
}

impl DatagramOptions {
    /// The largest buffer of a meter that a sender may request, bytes.
    pub const LARGEST_BUFFER: u32 = 64 << 20;
}

/// The error for an invalid plan: the field, its value and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("flow {flow:?}: {field} = {value}: {allowed}")]
pub struct PlanError {
    /// The flow's name.
    pub flow: String,
    /// The name of the field.
    pub field: String,
    /// The field's value.
    pub value: String,
    /// The allowed values.
    pub allowed: String,
}

/// Returns the transport of messages in frames: that of UDP's datagrams, with other lengths.
pub(crate) fn frame_params(largest: u32) -> TransportParams {
    TransportParams::Udp(Arc::new(udp::Params { max_datagram: largest, ..udp::Params::default() }))
}

impl FlowPlan {
    /// Checks every field, and whether the transport can carry the application.
    ///
    /// # Errors
    /// Returns the first invalid field.
    pub fn validate(&self) -> Result<(), PlanError> {
        let params = |error: ParameterError| self.refuse(&error.parameter, error.value, error.allowed);
        self.app.validate().map_err(params)?;
        match &self.transport {
            FlowTransport::Tcp(options) => self.check_tcp(options)?,
            FlowTransport::Datagrams(transport) => {
                transport.validate().map_err(params)?;
                self.check_datagrams(transport)?;
            }
            FlowTransport::Direct { largest } => {
                self.check_direct(*largest)?;
                self.check_datagrams(&frame_params(*largest))?;
            }
        }
        self.check_ends()
    }

    fn check_ends(&self) -> Result<(), PlanError> {
        if let Some(from) = self.from.filter(|from| from.is_ipv4() != self.to.is_ipv4()) {
            return Err(self.refuse(
                "from",
                from,
                format!("an address of the same family as `to`, {}", self.to),
            ));
        }
        match self.stop {
            Some(stop) if stop <= self.start => {
                Err(self.refuse("stop", stop, format!("must be after `start`, {}", self.start)))
            }
            _ => Ok(()),
        }
    }

    fn check_tcp(&self, options: &TcpOptions) -> Result<(), PlanError> {
        if let Some(bytes) = options.max_segment.filter(|bytes| !(88..=32_767).contains(bytes)) {
            return Err(self.refuse("max_segment", bytes, "88..32767 bytes".to_owned()));
        }
        if options.max_pacing_rate == Some(Rate::ZERO) {
            return Err(self.refuse("max_pacing_rate", Rate::ZERO, "must be above 0".to_owned()));
        }
        self.check_size(MESSAGE_HEADER)
    }

    fn check_datagrams(&self, transport: &TransportParams) -> Result<(), PlanError> {
        let Some(DatagramFormat { header, largest, .. }) = transport.datagram_format() else {
            let allowed = "must be a datagram transport or the kernel's TCP".to_owned();
            return Err(self.refuse("transport", transport.name(), allowed));
        };
        if self.app.needs_reliability() {
            let allowed = "waits for delivery, which needs TCP";
            return Err(self.refuse("app", self.app.name(), allowed.to_owned()));
        }
        if self.app.is_endless() && !transport.adapts() {
            let allowed = format!("must have a rate, because {} does not adapt its rate", transport.title());
            return Err(self.refuse("app", self.app.name(), allowed));
        }
        if (largest as usize) < header {
            let allowed = format!("at least {header} B, the length of the header");
            return Err(self.refuse("largest datagram", largest, allowed));
        }
        self.check_size(header)?;
        let rest = self.app.message_size().map_or(0, |size| size % u64::from(largest));
        if (1..header as u64).contains(&rest) {
            let allowed = format!(
                "the last of its datagrams of {largest} B has {rest} B; it must have at least {header} B"
            );
            return Err(self.refuse("size", self.shown_size(), allowed));
        }
        Ok(())
    }

    /// Checks a flow in frames below IP.
    fn check_direct(&self, largest: u32) -> Result<(), PlanError> {
        if self.direction == PlanDirection::Reverse {
            let allowed = "forward: the receiver sends no frames".to_owned();
            return Err(self.refuse("direction", self.direction.name(), allowed));
        }
        if self.ecn {
            return Err(self.refuse("ecn", true, "false: frames have no ECN".to_owned()));
        }
        let most = LONGEST_FRAME_MESSAGE;
        if !(1..=most).contains(&largest) {
            return Err(self.refuse("largest message", largest, format!("must be 1..{most} B")));
        }
        Ok(())
    }

    /// Checks that every message has room for its header.
    fn check_size(&self, header: usize) -> Result<(), PlanError> {
        if self.app.least_message().is_some_and(|least| least < header as u64) {
            let allowed = format!("at least {header} B, the length of the header");
            return Err(self.refuse("size", self.shown_size(), allowed));
        }
        Ok(())
    }

    fn shown_size(&self) -> String {
        self.app.least_message().map_or_else(String::new, |least| Bytes::new(least).to_string())
    }

    pub(crate) fn refuse(&self, field: &str, value: impl std::fmt::Display, allowed: String) -> PlanError {
        PlanError { flow: self.name.clone(), field: field.to_owned(), value: value.to_string(), allowed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_transport::app::{CbrParams, FilesParams, PoissonParams};
    use cutline_units::Distribution;

    fn plan(transport: FlowTransport, app: Params) -> FlowPlan {
        FlowPlan {
            id: 0,
            name: "f".to_owned(),
            direction: PlanDirection::Forward,
            transport,
            app,
            from: None,
            to: "127.0.0.1:9".parse().unwrap(),
            dscp: Dscp::DEFAULT,
            ecn: false,
            start: Duration::ZERO,
            stop: None,
        }
    }

    fn cbr(size: u64) -> Params {
        Params::Cbr(CbrParams::new(Rate::from_kbps(128), Bytes::new(size)))
    }

    fn udp() -> FlowTransport {
        FlowTransport::Datagrams(TransportParams::Udp(Arc::default()))
    }

    fn direct() -> FlowTransport {
        FlowTransport::Direct { largest: 65_507 }
    }

    fn tfrc() -> FlowTransport {
        FlowTransport::Datagrams(TransportParams::Tfrc(Arc::default()))
    }

    #[test]
    fn messages_with_room_for_their_header_are_allowed() {
        let tcp = || FlowTransport::Tcp(TcpOptions::default());
        let files = FilesParams { size: Distribution::Fixed(1.0), think_time: Distribution::Fixed(0.0) };
        for good in [
            plan(udp(), cbr(32)),
            plan(direct(), cbr(32)),
            plan(direct(), cbr(65_507)),
            plan(udp(), cbr(1472 + 32)),
            plan(tcp(), cbr(16)),
            plan(tcp(), Params::BULK),
            plan(tcp(), Params::Files(files)),
            plan(tfrc(), cbr(44)),
            plan(tfrc(), Params::BULK),
        ] {
            assert_eq!(good.validate(), Ok(()));
        }
    }

    #[test]
    fn an_error_names_the_invalid_field() {
        let tcp = |options| plan(FlowTransport::Tcp(options), Params::BULK);
        let fixed = Distribution::Fixed(9.0);
        let files = Params::Files(FilesParams { size: fixed, think_time: fixed });
        let poisson = Params::Poisson(PoissonParams { rate: Rate::from_kbps(1), size: fixed });
        let cases = [
            ("size", plan(udp(), cbr(31))),
            ("size", plan(udp(), cbr(1473))),
            ("size", plan(udp(), poisson)),
            ("size", plan(tfrc(), cbr(43))),
            ("size", plan(FlowTransport::Tcp(TcpOptions::default()), cbr(15))),
            ("app", plan(udp(), Params::BULK)),
            ("transport", plan(FlowTransport::Datagrams(TransportParams::Tcp(Arc::default())), Params::BULK)),
            ("app", plan(udp(), files)),
            ("rate", plan(udp(), Params::Cbr(CbrParams::new(Rate::ZERO, Bytes::new(100))))),
            ("max_segment", tcp(TcpOptions { max_segment: Some(20), ..TcpOptions::default() })),
            ("from", FlowPlan { from: Some("[::1]:0".parse().unwrap()), ..tcp(TcpOptions::default()) }),
            ("direction", FlowPlan { direction: PlanDirection::Reverse, ..plan(direct(), cbr(1000)) }),
            ("ecn", FlowPlan { ecn: true, ..plan(direct(), cbr(1000)) }),
            ("largest message", plan(FlowTransport::Direct { largest: 65_508 }, cbr(1000))),
            ("app", plan(direct(), Params::BULK)),
            ("stop", FlowPlan { stop: Some(Duration::ZERO), ..tcp(TcpOptions::default()) }),
        ];
        for (field, bad) in cases {
            let error = bad.validate().unwrap_err();
            assert_eq!((&*error.field, &*error.flow), (field, "f"), "{error}");
        }
        let error = plan(udp(), cbr(31)).validate().unwrap_err();
        assert_eq!(error.to_string(), "flow \"f\": size = 31 B: at least 32 B, the length of the header");
    }
}

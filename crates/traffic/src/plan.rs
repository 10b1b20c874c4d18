//! A flow as it is planned: who sends what to whom, by which transport, when.

use crate::MESSAGE_HEADER;
use cutline_params::ParameterError;
use cutline_transport::app::Params;
use cutline_transport::endpoint::{Transport as _, TransportParams};
use cutline_transport::tcp;
use cutline_transport::wire::DatagramFormat;
use cutline_units::{Bytes, Dscp, Duration, Rate};
use std::net::SocketAddr;

/// A flow of a generator.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// The number that its meter knows it by; below [`crate::MeterParams::flows`].
    pub id: u32,
    /// Its name, which its random numbers depend on.
    pub name: String,
    /// What carries it.
    pub transport: Transport,
    /// What writes.
    pub app: Params,
    /// Where it sends from, port included; `None` leaves it to the kernel, as does port 0.
    pub from: Option<SocketAddr>,
    /// The meter.
    pub to: SocketAddr,
    /// What its packets are marked with; their acknowledgements and feedback, too.
    pub dscp: Dscp,
    /// Whether its packets are ECN-capable. For TCP the kernel has to be told, by `net.ipv4.tcp_ecn = 1`, for all
    /// connections of a network namespace.
    pub ecn: bool,
    /// When it begins, from the run's zero. A TCP flow connects then.
    pub start: Duration,
    /// When its application stops writing; `None`: with the run.
    pub stop: Option<Duration>,
}

/// What carries a flow.
#[derive(Clone, Debug)]
pub enum Transport {
    /// The kernel's TCP.
    Tcp(TcpOptions),
    /// One of our transports over datagrams. A plan with one that has no
    /// [`datagram_format`](TransportParams::datagram_format) is refused.
    Datagrams(TransportParams),
}

impl Transport {
    /// The transport's name in files and on the command line.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tcp(_) => tcp::Tcp::NAME,
            Self::Datagrams(params) => params.name(),
        }
    }
}

/// What is set of a TCP socket; `None` leaves it to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Its congestion control, as `net.ipv4.tcp_available_congestion_control` names it.
    pub congestion_control: Option<String>,
    /// The largest payload of a segment, 88..32,767 bytes. With time stamps, segments have 12 bytes less.
    pub max_segment: Option<u32>,
    /// The sender's buffer in the kernel, bytes (`SO_SNDBUF`; the kernel takes twice as much for its book-keeping).
    pub send_buffer: Option<u32>,
    /// The receiver's buffer, bytes (`SO_RCVBUF`, set by the meter); it bounds the window that the receiver offers.
    pub receive_buffer: Option<u32>,
    /// How much may wait in the process when the kernel's buffer is full, bytes: a message that does not fit is
    /// refused, and counted. `None`: there is no limit. A message of an application that waits for delivery always fits.
    pub write_queue: Option<u64>,
    /// Small segments do not wait for acknowledgements (Nagle's algorithm is off).
    pub no_delay: bool,
    /// How much may wait unsent in the kernel's buffer before it takes more, bytes.
    pub not_sent_lowat: Option<u32>,
    /// The most that the kernel sends.
    pub max_pacing_rate: Option<Rate>,
}

/// Why a flow cannot be as it is planned: which field, what it is, what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("flow {flow:?}: {field} = {value}: {allowed}")]
pub struct PlanError {
    /// The flow's name.
    pub flow: String,
    /// The field.
    pub field: String,
    /// What it is set to.
    pub value: String,
    /// What it may be.
    pub allowed: String,
}

impl FlowPlan {
    /// Checks every field, and whether the transport can carry the application.
    ///
    /// # Errors
    /// The first that cannot be.
    pub fn validate(&self) -> Result<(), PlanError> {
        let params = |error: ParameterError| self.refuse(&error.parameter, error.value, error.allowed);
        self.app.validate().map_err(params)?;
        match &self.transport {
            Transport::Tcp(options) => self.check_tcp(options)?,
            Transport::Datagrams(transport) => {
                transport.validate().map_err(params)?;
                self.check_datagrams(transport)?;
            }
        }
        self.check_ends()
    }

    fn check_ends(&self) -> Result<(), PlanError> {
        if let Some(from) = self.from.filter(|from| from.is_ipv4() != self.to.is_ipv4()) {
            return Err(self.refuse("from", from, format!("an address of the same kind as to, {}", self.to)));
        }
        match self.stop {
            Some(stop) if stop <= self.start => {
                Err(self.refuse("stop", stop, format!("later than start, {}", self.start)))
            }
            _ => Ok(()),
        }
    }

    fn check_tcp(&self, options: &TcpOptions) -> Result<(), PlanError> {
        if let Some(bytes) = options.max_segment.filter(|bytes| !(88..=32_767).contains(bytes)) {
            return Err(self.refuse("max_segment", bytes, "88..32767 bytes".to_owned()));
        }
        if options.max_pacing_rate == Some(Rate::ZERO) {
            return Err(self.refuse("max_pacing_rate", Rate::ZERO, "over 0".to_owned()));
        }
        self.check_size(MESSAGE_HEADER)
    }

    fn check_datagrams(&self, transport: &TransportParams) -> Result<(), PlanError> {
        let Some(DatagramFormat { header, largest, .. }) = transport.datagram_format() else {
            let allowed = "a transport over datagrams, or the kernel's TCP".to_owned();
            return Err(self.refuse("transport", transport.name(), allowed));
        };
        if self.app.needs_reliability() {
            let allowed = "one that does not wait for delivery: that needs TCP";
            return Err(self.refuse("app", self.app.name(), allowed.to_owned()));
        }
        if self.app.is_endless() && !transport.adapts() {
            let allowed = format!("one with a rate: {} takes any", transport.title());
            return Err(self.refuse("app", self.app.name(), allowed));
        }
        if (largest as usize) < header {
            let allowed = format!("{header} bytes at least: the header that is measured by");
            return Err(self.refuse("largest datagram", largest, allowed));
        }
        self.check_size(header)?;
        let rest = self.app.message_size().map_or(0, |size| size % u64::from(largest));
        if (1..header as u64).contains(&rest) {
            let allowed = format!(
                "split into datagrams of {largest} B its last has {rest} B, and {header} are the least"
            );
            return Err(self.refuse("size", self.shown_size(), allowed));
        }
        Ok(())
    }

    /// Every message has to have room for the header that it is measured by.
    fn check_size(&self, header: usize) -> Result<(), PlanError> {
        if self.app.least_message().is_some_and(|least| least < header as u64) {
            let allowed = format!("{header} B at least: the header that is measured by");
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
    use std::sync::Arc;

    fn plan(transport: Transport, app: Params) -> FlowPlan {
        FlowPlan {
            id: 0,
            name: "f".to_owned(),
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

    fn udp() -> Transport {
        Transport::Datagrams(TransportParams::Udp(Arc::default()))
    }

    fn tfrc() -> Transport {
        Transport::Datagrams(TransportParams::Tfrc(Arc::default()))
    }

    #[test]
    fn what_has_room_for_its_header_is_allowed() {
        let tcp = || Transport::Tcp(TcpOptions::default());
        let files = FilesParams { size: Distribution::Fixed(1.0), think_time: Distribution::Fixed(0.0) };
        for good in [
            plan(udp(), cbr(24)),
            plan(udp(), cbr(1472 + 24)),
            plan(tcp(), cbr(16)),
            plan(tcp(), Params::BULK),
            plan(tcp(), Params::Files(files)),
            plan(tfrc(), cbr(36)),
            plan(tfrc(), Params::BULK),
        ] {
            assert_eq!(good.validate(), Ok(()));
        }
    }

    #[test]
    fn each_bad_value_is_named() {
        let tcp = |options| plan(Transport::Tcp(options), Params::BULK);
        let fixed = Distribution::Fixed(9.0);
        let files = Params::Files(FilesParams { size: fixed, think_time: fixed });
        let poisson = Params::Poisson(PoissonParams { rate: Rate::from_kbps(1), size: fixed });
        let cases = [
            ("size", plan(udp(), cbr(23))),
            ("size", plan(udp(), cbr(1473))),
            ("size", plan(udp(), poisson)),
            ("size", plan(tfrc(), cbr(35))),
            ("size", plan(Transport::Tcp(TcpOptions::default()), cbr(15))),
            ("app", plan(udp(), Params::BULK)),
            ("transport", plan(Transport::Datagrams(TransportParams::Tcp(Arc::default())), Params::BULK)),
            ("app", plan(udp(), files)),
            ("rate", plan(udp(), Params::Cbr(CbrParams::new(Rate::ZERO, Bytes::new(100))))),
            ("max_segment", tcp(TcpOptions { max_segment: Some(20), ..TcpOptions::default() })),
            ("from", FlowPlan { from: Some("[::1]:0".parse().unwrap()), ..tcp(TcpOptions::default()) }),
            ("stop", FlowPlan { stop: Some(Duration::ZERO), ..tcp(TcpOptions::default()) }),
        ];
        for (field, bad) in cases {
            let error = bad.validate().unwrap_err();
            assert_eq!((&*error.field, &*error.flow), (field, "f"), "{error}");
        }
        let error = plan(udp(), cbr(23)).validate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "flow \"f\": size = 23 B: 24 B at least: the header that is measured by"
        );
    }
}

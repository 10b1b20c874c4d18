//! The options of a group of flows.

use crate::arguments::{duration, rate};
use crate::exit::Failure;
use clap::builder::PossibleValuesParser;
use cutline_config::quantity;
use cutline_scenario::spec::FlowDirection;
use cutline_text::Printable;
use cutline_traffic::{DIRECT, FlowTransport, LONGEST_FRAME_MESSAGE, TcpOptions, parse_trace};
use cutline_transport::app::{
    CbrParams, FilesParams, OnOffParams, Params, PoissonParams, TalkSpurtParams, TraceParams,
};
use cutline_transport::endpoint::{Defaults, Transport as _, TransportParams};
use cutline_transport::tcp::Tcp;
use cutline_transport::udp::Udp;
use cutline_units::{Bytes, Distribution, Dscp, DscpPool2, Duration, Ecn, HintBits, HintCodec as _, Rate};
use std::path::PathBuf;

/// A group of flows with the same parameters, given by options.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct FlowArgs {
    /// The receiver sends, and this end measures
    #[arg(long, conflicts_with = "plan")]
    reverse: bool,
    /// Both ends send at once: each flow in both directions
    #[arg(long, conflicts_with_all = ["reverse", "plan"])]
    bidirectional: bool,
    /// Transport of the flows; direct: in Ethernet frames below IP, to a receiver on the same link
    #[arg(long, default_value = Tcp::NAME, value_name = "NAME", conflicts_with = "plan",
          value_parser = PossibleValuesParser::new(transports()))]
    transport: String,
    /// Application: bulk, cbr, poisson, on-off, talk-spurt, files or trace [default: trace with --trace, files with
    /// --think, cbr with --rate or over UDP, otherwise bulk]
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "plan")]
    app: Option<App>,
    /// Number of flows
    #[arg(long, default_value_t = 1, value_name = "N", conflicts_with = "plan",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub flows: u32,
    /// Payload rate of each flow, such as 128kbit or "1.5 Mbit/s"
    #[arg(long, value_parser = rate, conflicts_with = "plan")]
    rate: Option<Rate>,
    /// Payload of a message or file, such as "160 B" or 58KB; for files and poisson also exponential:58KB (mean),
    /// pareto:4KB:1.2 or pareto:4KB:1.2:1MB (minimum, shape, maximum), or lognormal:10KB:1.3 (median, sigma)
    #[arg(long, conflicts_with = "plan")]
    size: Option<String>,
    /// Mean duration of the bursts of an on-off source, exponentially distributed [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "plan")]
    on: Option<Duration>,
    /// Mean duration of the silences of an on-off source, exponentially distributed [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "plan")]
    off: Option<Duration>,
    /// Mean time from the arrival of a file to the next file, exponentially distributed [default: none]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "plan")]
    think: Option<Duration>,
    /// Recorded trace; each line has a time in seconds and a size in bytes
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    trace: Option<PathBuf>,
    /// Repeat the trace, each time after this pause
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "trace")]
    repeat: Option<Duration>,
    /// Delay hint in the code point, from 1 (low delay) to 16 (high throughput)
    #[arg(long, value_name = "LEVEL", conflicts_with_all = ["dscp", "plan"])]
    hint: Option<u64>,
    /// Code point, such as EF, AF41, hint-6 or 46
    #[arg(long, value_name = "NAME", value_parser = dscp, conflicts_with = "plan")]
    dscp: Option<Dscp>,
    /// Send ECN-capable packets (for TCP this is a setting of the kernel: docs/guide/tg.md)
    #[arg(long, conflicts_with = "plan")]
    pub ecn: bool,
    /// Congestion control of TCP by its name in the kernel, such as reno, cubic, dctcp or bbr
    #[arg(long, value_name = "NAME", conflicts_with = "plan")]
    congestion_control: Option<String>,
    /// Largest payload of a TCP segment, bytes; with time stamps the payload is 12 bytes smaller
    #[arg(long, value_name = "BYTES", conflicts_with = "plan")]
    max_segment: Option<u32>,
    /// Largest sending rate of each TCP flow
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "plan")]
    pacing: Option<Rate>,
    /// Send small TCP segments at once (no Nagle's algorithm)
    #[arg(long, conflicts_with = "plan")]
    no_delay: bool,
    /// Largest amount of data that waits in addition to the kernel's buffer of TCP; messages that do not fit are dropped [default: unlimited]
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "plan")]
    write_queue: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum App {
    Bulk,
    Cbr,
    Poisson,
    OnOff,
    TalkSpurt,
    Files,
    Trace,
}

/// Returns the names of the transports that a real network carries.
fn transports() -> impl Iterator<Item = &'static str> {
    [Tcp::NAME].into_iter().chain(TransportParams::DATAGRAM_NAMES.iter().copied()).chain([DIRECT])
}

/// The least length of the longest message in frames: the middle block of QUANTA's tables.
const FRAMES: u32 = 8192;
/// The default size of a message. It fits any path.
const MESSAGE: Bytes = Bytes::new(1000);

impl FlowArgs {
    /// Returns the directions of the flows.
    pub const fn direction(&self) -> FlowDirection {
        match (self.reverse, self.bidirectional) {
            (true, _) => FlowDirection::Reverse,
            (false, true) => FlowDirection::Bidirectional,
            (false, false) => FlowDirection::Forward,
        }
    }

    /// Returns the code point of the packets.
    pub fn code_point(&self) -> Result<Dscp, Failure> {
        let Some(level) = self.hint else { return Ok(self.dscp.unwrap_or_default()) };
        let hint = HintBits::PAPER.hint(level).map_err(|error| usage("--hint", &level, &error))?;
        Ok(DscpPool2.encode(hint).unwrap_or_default())
    }

    /// Returns the name of the group.
    pub fn name(&self) -> String {
        use clap::ValueEnum as _;
        let app = self.app().to_possible_value();
        let app = app.as_ref().map_or("", clap::builder::PossibleValue::get_name);
        format!("{}-{app}", self.transport)
    }

    /// Returns the transport of the flows.
    pub fn transport(&self) -> Result<FlowTransport, Failure> {
        let tcp_only = [
            ("--congestion-control", self.congestion_control.is_some()),
            ("--max-segment", self.max_segment.is_some()),
            ("--pacing", self.pacing.is_some()),
            ("--no-delay", self.no_delay),
            ("--write-queue", self.write_queue.is_some()),
        ];
        let Some(datagrams) = self.datagrams() else { return Ok(FlowTransport::Tcp(self.tcp_options())) };
        if let Some((option, _)) = tcp_only.iter().find(|(_, given)| *given) {
            return Err(Failure::Usage(format!(
                "{option} is only allowed with TCP: remove it, or use --transport tcp"
            )));
        }
        let message = match self.app() {
            App::Files | App::Poisson | App::Trace => MESSAGE,
            _ => self.message()?,
        };
        let message = message.get().try_into().unwrap_or(u32::MAX);
        if self.transport == DIRECT {
            // A message of the application is one in frames, if it fits.
            return Ok(FlowTransport::Direct { largest: message.clamp(FRAMES, LONGEST_FRAME_MESSAGE) });
        }
        let ecn = if self.ecn { Ecn::Ect0 } else { Ecn::NotEct };
        Ok(FlowTransport::Datagrams(datagrams.with_message_size(message).with_ecn(ecn)))
    }

    /// Returns the transport over datagrams with its defaults; `None` for the kernel's TCP.
    fn datagrams(&self) -> Option<TransportParams> {
        if self.transport == Tcp::NAME {
            return None;
        }
        let name = if self.transport == DIRECT { Udp::NAME } else { &self.transport };
        let defaults = TransportParams::from_values(name, Defaults::Rfc, []);
        Some(defaults.expect("the parser accepts only known names, and defaults are valid"))
    }

    fn tcp_options(&self) -> TcpOptions {
        TcpOptions {
            congestion_control: self.congestion_control.clone(),
            max_segment: self.max_segment,
            max_pacing_rate: self.pacing,
            no_delay: self.no_delay,
            write_queue: self.write_queue.map(Bytes::get),
            ..TcpOptions::default()
        }
    }

    /// Returns the application of the flows.
    pub fn application(&self) -> Result<Params, Failure> {
        let exponential = |mean: Option<Duration>| Distribution::Exponential {
            mean: mean.unwrap_or(Duration::from_secs(1)).as_secs_f64(),
        };
        self.check_use()?;
        Ok(match self.app() {
            App::Bulk => Params::BULK,
            App::Cbr => Params::Cbr(CbrParams::new(self.rate()?, self.message()?)),
            App::Poisson => Params::Poisson(PoissonParams { rate: self.rate()?, size: self.sizes(MESSAGE)? }),
            App::OnOff => Params::OnOff(OnOffParams {
                rate: self.rate()?,
                size: self.message()?,
                on: exponential(self.on),
                off: exponential(self.off),
            }),
            App::TalkSpurt => {
                let default = TalkSpurtParams::default();
                let size = if self.size.is_some() { self.message()? } else { default.size };
                let rate = self.rate.unwrap_or(default.rate);
                Params::TalkSpurt(TalkSpurtParams { rate, size, ..default })
            }
            App::Files => {
                let think_time =
                    self.think.map_or(Distribution::Fixed(0.0), |think| exponential(Some(think)));
                Params::Files(FilesParams { size: self.sizes(Bytes::new(100_000))?, think_time })
            }
            App::Trace => self.recorded()?,
        })
    }

    fn app(&self) -> App {
        let meant = if self.trace.is_some() {
            App::Trace
        } else if self.think.is_some() {
            App::Files
        } else if self.rate.is_some() || self.datagrams().is_some_and(|datagrams| !datagrams.adapts()) {
            App::Cbr
        } else {
            App::Bulk
        };
        self.app.unwrap_or(meant)
    }

    /// Returns an error if an option has no effect on the application.
    fn check_use(&self) -> Result<(), Failure> {
        let app = self.app();
        let uses = |apps: &[App]| apps.contains(&app);
        let options = [
            ("--rate", self.rate.is_some(), uses(&[App::Cbr, App::Poisson, App::OnOff, App::TalkSpurt])),
            // Over datagrams this is the size of the packets of bulk data.
            (
                "--size",
                self.size.is_some(),
                app != App::Trace && (app != App::Bulk || self.datagrams().is_some_and(|it| it.adapts())),
            ),
            ("--on", self.on.is_some(), uses(&[App::OnOff])),
            ("--off", self.off.is_some(), uses(&[App::OnOff])),
            ("--think", self.think.is_some(), uses(&[App::Files])),
            ("--trace", self.trace.is_some(), uses(&[App::Trace])),
        ];
        match options.iter().find(|(_, given, used)| *given && !used) {
            Some((option, ..)) => {
                Err(Failure::Usage(format!("{option} has no effect on {}: remove it", self.name())))
            }
            None => Ok(()),
        }
    }

    fn rate(&self) -> Result<Rate, Failure> {
        self.rate.ok_or_else(|| Failure::Usage(format!("--rate is missing: {} requires it", self.name())))
    }

    fn message(&self) -> Result<Bytes, Failure> {
        self.size
            .as_deref()
            .map_or(Ok(MESSAGE), |text| size(text).map_err(|error| usage("--size", &text, &error)))
    }

    fn sizes(&self, default: Bytes) -> Result<Distribution, Failure> {
        let Some(text) = &self.size else { return Ok(Distribution::Fixed(default.get() as f64)) };
        sizes(text).map_err(|error| usage("--size", text, &error))
    }

    fn recorded(&self) -> Result<Params, Failure> {
        let path = self.trace.as_ref();
        let path =
            path.ok_or_else(|| Failure::Usage("--trace is missing: --app trace requires it".to_owned()))?;
        let wrong =
            |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", Printable(path.display())));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let messages = parse_trace(&text).map_err(|error| wrong(&error))?;
        Ok(Params::Trace(TraceParams { messages: messages.into(), repeat: self.repeat }))
    }
}

fn usage(option: &str, value: &impl std::fmt::Display, error: &impl std::fmt::Display) -> Failure {
    Failure::Usage(format!("{option} {}: {error}", Printable(value)))
}

fn dscp(text: &str) -> Result<Dscp, String> {
    text.parse().map_err(|error: cutline_units::DscpError| error.to_string())
}

/// Parses a size. A number without a unit is in bytes.
fn size(text: &str) -> Result<Bytes, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let with_unit = if plain { format!("{text} B") } else { text.to_owned() };
    quantity::size(&with_unit).map_err(|error| format!("{error}; write 160, \"160 B\" or 58KB"))
}

/// Parses a size or a distribution of sizes.
fn sizes(text: &str) -> Result<Distribution, String> {
    let bytes = |text: &str| size(text).map(|size| size.get() as f64);
    let number = |text: &str| text.parse::<f64>().map_err(|_| format!("{text:?} is not a number"));
    let parts: Vec<&str> = text.split(':').collect();
    Ok(match parts[..] {
        [fixed] => Distribution::Fixed(bytes(fixed)?),
        ["exponential", mean] => Distribution::Exponential { mean: bytes(mean)? },
        ["lognormal", median, sigma] => {
            Distribution::Lognormal { median: bytes(median)?, sigma: number(sigma)? }
        }
        ["pareto", minimum, shape, ref maximum @ ..] if maximum.len() <= 1 => Distribution::Pareto {
            minimum: bytes(minimum)?,
            shape: number(shape)?,
            maximum: maximum.first().map(|maximum| bytes(maximum)).transpose()?,
        },
        _ => {
            return Err(
                "write 58KB, exponential:MEAN, pareto:MINIMUM:SHAPE[:MAXIMUM] or lognormal:MEDIAN:SIGMA"
                    .to_owned(),
            );
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_fixed_or_drawn() {
        assert_eq!(sizes("58KB"), Ok(Distribution::Fixed(58_000.0)));
        assert_eq!(sizes("160"), Ok(Distribution::Fixed(160.0)));
        assert_eq!(sizes("exponential:58 KB"), Ok(Distribution::Exponential { mean: 58_000.0 }));
        let bounded = Distribution::Pareto { minimum: 4000.0, shape: 1.2, maximum: Some(1e6) };
        assert_eq!(sizes("pareto:4KB:1.2:1MB"), Ok(bounded));
        assert!(sizes("pareto:4KB").unwrap_err().contains("pareto:MINIMUM:SHAPE"));
        assert!(sizes("lognormal:4KB:x").unwrap_err().contains("not a number"));
    }
}

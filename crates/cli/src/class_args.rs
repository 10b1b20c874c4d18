//! Options that `cutline exec` and `cutline gateway` share: the class of an application, and the mark that follows from it.

use crate::arguments;
use cutline_params::Choice as _;
use cutline_quality::spec::Preset;
use cutline_units::{Dscp, DscpPool2, Duration, HintBits, HintCodec as _};

/// Options that choose the application.
#[derive(clap::Args)]
pub struct ClassArgs {
    /// Class of application (audio, video, file, web, game, telemetry): its hint is the one that `cutline translate CLASS` finds
    #[arg(long, value_parser = class, value_name = "CLASS")]
    pub class: Option<Preset>,
    /// Round-trip time of the path without queues, such as 300ms, on which the hint of a class depends [default: 50ms]
    #[arg(long, value_parser = arguments::duration, requires = "class", value_name = "TIME")]
    pub rtt: Option<Duration>,
    /// Delay hint, 1 (as little delay as possible) to 16 (throughput only) [default: that of the class]
    #[arg(long, value_parser = hint, value_name = "LEVEL")]
    pub hint: Option<Dscp>,
}

fn class(text: &str) -> Result<Preset, String> {
    Preset::parse(text).map_err(|_| format!("expected one of: {}", Preset::NAMES.join(", ")))
}

/// Parses a hint into its code point.
fn hint(text: &str) -> Result<Dscp, String> {
    let level = text.parse().map_err(|_| "expected a number from 1 to 16".to_owned())?;
    let hint = HintBits::PAPER.hint(level).map_err(|error| error.to_string())?;
    DscpPool2.encode(hint).ok_or_else(|| "it has no code point".to_owned())
}

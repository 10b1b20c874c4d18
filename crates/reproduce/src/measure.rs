//! Measures of a flow that several studies use.

use cutline_quality::{Codec, EModel};
use cutline_results::FlowRow;
use cutline_units::{Duration, Probability};

/// The bottleneck link of a dumbbell.
pub(crate) const BOTTLENECK: &str = "r1->r2";

/// A measure of a flow; `None` if the flow has no value.
pub(crate) type Measure = fn(&FlowRow) -> Option<f64>;

/// The goodput, kbit/s.
#[expect(clippy::unnecessary_wraps, reason = "a measure returns an option; this one always has a value")]
pub(crate) fn kbps(row: &FlowRow) -> Option<f64> {
    Some(row.goodput_bps / 1e3)
}

/// Packets lost, %.
pub(crate) fn lost(row: &FlowRow) -> Option<f64> {
    Some(100.0 * row.loss_ratio?)
}

/// The quality of a call by the E-model with G.711 and concealment, from the mean one-way delay and the loss. `None` for
/// flows other than audio.
pub(crate) fn voice(row: &FlowRow) -> Option<f64> {
    if &*row.class != "audio" {
        return None;
    }
    let delay = Duration::from_secs_f64(row.one_way_mean_ms? / 1e3);
    let lost = Probability::clamped(row.loss_ratio?);
    Some(EModel::new(Codec::G711_PLC).rating(delay, lost).quality().get())
}

//! Measures of a flow that several studies ask for.

use cutline_quality::{Codec, EModel};
use cutline_results::FlowRow;
use cutline_units::{Duration, Probability};

/// The link behind a dumbbell's bottleneck queue.
pub(crate) const BOTTLENECK: &str = "r1->r2";

/// What is measured of a flow; `None` where there is nothing to measure.
pub(crate) type Measure = fn(&FlowRow) -> Option<f64>;

/// What reached the application, kbit/s.
#[expect(clippy::unnecessary_wraps, reason = "a measure may have nothing to measure; this one always has")]
pub(crate) fn kbps(row: &FlowRow) -> Option<f64> {
    Some(row.goodput_bps / 1e3)
}

/// Packets lost, %.
pub(crate) fn lost(row: &FlowRow) -> Option<f64> {
    Some(100.0 * row.loss_ratio?)
}

/// A call's quality by the E-model, for audio only: its mean one-way delay, and what was lost, with G.711 and
/// concealment.
pub(crate) fn voice(row: &FlowRow) -> Option<f64> {
    if &*row.class != "audio" {
        return None;
    }
    let delay = Duration::from_secs_f64(row.one_way_mean_ms? / 1e3);
    let lost = Probability::clamped(row.loss_ratio?);
    Some(EModel::new(Codec::G711_PLC).rating(delay, lost).quality().get())
}

//! Feedback of a path (QUANTA section 5, global components): network feedback, and monitoring that predicts degradation
//! and lowers flows gracefully inside their regions of operation.
//!
//! - [`Predictor`]: the future position of a flow in its region, from its reports, by a robust trend of delay and backlog
//!   ([`TrendSeries`]).
//! - [`Cutoff`]: one number for the level to which all flows of a path are lowered, in the owner's order.
//! - [`PathController`]: decides on it: before flows leave their regions, and back with hysteresis.
//! - [`PathFeedback`]: all of that at a host, with the [`PathSummary`] that hosts exchange.
//!
//! # Bounds
//!
//! A summary has at most [`PathSummary::LONGEST`] bytes. A host sends one in [`FeedbackParams::interval`] and at most
//! four more while flows are disturbed, keeps the last one of each peer, and refuses those of others. Summaries are not
//! authenticated here: that is the owner's task.

mod controller;
mod cutoff;
mod params;
mod path;
mod predictor;
mod summary;
mod trend;

pub use controller::{ControllerStats, PathController, PathView};
pub use cutoff::{Cutoff, Loads, RANKS, RankLoad};
pub use params::FeedbackParams;
pub use path::{PathFeedback, PathFlow, PathFlowRecord, PathOutput, PathSnapshot, PathStart};
pub use predictor::{FlowEdges, FlowPrediction, FlowReport, Predictor};
pub use summary::{Directive, HostId, HostState, PathId, PathSummary, SummaryError};
pub use trend::{Trend, TrendSeries};

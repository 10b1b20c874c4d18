//! Monitoring of a connection's delivery, in real time at both ends (QoSockets section III).
//!
//! Throughput and loss are measured per interval of 0.5 s, delay and jitter per message (QoSockets eq. 2 to 5):
//!
//! ```text
//! T_i = bits received in i / t_i      L_i = 100 (1 - R_i / S_i)      D(m) = r(m) - s(m)      J(m) = |D(m) - D(m - 1)|
//! ```
//!
//! In the interval i, of length `t_i`, `R_i` messages are received of the `S_i` that the sender has sent, as their sequence numbers
//! show. m was sent at s(m) and received at r(m); m - 1 is the message that arrived before it.
//!
//! Each end has an object for each direction: [`Departures`] for sent messages, [`Arrivals`] for received ones. After each
//! interval it sends a [`Report`] of both to the peer, whose [`PeerReports`] turn it into the same measures again. A
//! [`Report`] has totals, so a lost one does no harm. It is untrusted data: a report that contradicts itself, earlier reports or the traffic that was
//! sent is refused and counted.
//!
//! Example: in 0.5 s 20 of 25 messages of 1000 B arrive. T = 160,000 bit / 0.5 s = 320 kbit/s, L = 100 (1 - 20 / 25) = 20 %.
//!
//! A duplicate counts as nothing but a duplicate. A message that arrives late makes up for one that was counted as lost, so the
//! loss of a single interval may be negative, and that of several is exact.

mod arrivals;
mod departures;
mod measures;
mod numbers;
mod report;
mod schedule;
#[cfg(test)]
mod tests;

pub use arrivals::{Arrivals, Delivery, LONGEST_DELAY, Received, Sample, Spread};
pub use departures::{Departures, OfferedMessages, Sent, SentInterval};
pub use numbers::{MessageArrival, Numbers};
pub use report::{PeerReports, Report, ReportError, ReportStats};

use cutline_params::Parameters;
use cutline_units::Duration;

/// Parameters of the monitoring of a connection.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct MonitorParams {
    /// Length of an interval of measurement.
    #[param(
        default = Duration::from_millis(500),
        range = (Duration::from_millis(10), Duration::from_secs(60)),
        source = "QoSockets eq. 2 and 3"
    )]
    pub interval: Duration,
    /// Quantile of an interval's delays and jitters that is compared with the limit; 1 is the worst message.
    #[param(
        default = 0.99,
        range = (0.5, 1.0),
        source = "ours: one message in a hundred may be an outlier; with less than 50 messages it is nearly the worst"
    )]
    pub quantile: f64,
}

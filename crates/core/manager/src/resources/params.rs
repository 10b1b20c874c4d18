//! Parameters of the resource manager.

use cutline_params::{Choice, Parameters};
use cutline_units::Duration;

/// Order in which flows are lowered, and revoked where lowering does not suffice. Flows are raised in the reverse order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Choice)]
pub enum LoweringOrder {
    /// The lowest priority first; of equal ones the newest.
    #[default]
    Priority,
    /// The largest slack first, which is the share of its rate that a flow can lose: `1 - minimum / desired`; of equal
    /// ones the newest.
    LargestSlack,
    /// The newest first.
    Newest,
}

/// Parameters of the resource manager.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct ResourceParams {
    /// The share of each capacity that may be promised: rates of real-time flows, and minima of time-shared ones.
    #[param(default = 0.75, range = (0.0, 1.0), source = "ours: a quarter stays for time-shared flows, as `share` of RSVP leaves it for best effort")]
    pub committed_share: f64,
    /// The share of the promisable part that one user may hold, unless the user's policy says otherwise.
    #[param(default = 0.5, range = (0.0, 1.0), source = "ours: two users get hard shares on every host")]
    pub user_share: f64,
    /// The most flows of all users.
    #[param(default = 4096, range = (1, 10_000), source = "ours: some 2 MB")]
    pub most_flows: u32,
    /// The most flows of one user.
    #[param(default = 1024, range = (1, 10_000), source = "ours: a quarter of most-flows")]
    pub most_flows_per_user: u32,
    /// Time without a report after which a flow is revoked.
    #[param(
        default = Duration::from_secs(5),
        range = (Duration::from_millis(100), Duration::from_secs(3600)),
        source = "ours: ten intervals of reports"
    )]
    pub lease: Duration,
    /// Significant binary digits of a time-shared rate, which is rounded down to them. A flow is notified of a raise of
    /// at least two steps of the last one: with 6 digits that is 3 % to 6 %.
    #[param(default = 6, range = (2, 53), source = "ours: of 1,000 flows 30 are notified when a flow comes or goes, not all")]
    pub share_digits: u32,
    /// The smallest raise of a real-time flow that does not get all it desires, relative to its rate.
    #[param(default = 0.05, range = (0.0, 1.0), source = "ours: a raise is an event for the application")]
    pub raise_step: f64,
    /// Order in which flows are lowered and revoked if capacities shrink.
    #[param(default = LoweringOrder::Priority, source = "ours: priority is the only order that an application can influence")]
    pub order: LoweringOrder,
}

//! Flows: the packets of a flow ([`FlowSelector`]), and its largest traffic ([`TrafficSpec`]).
//!
//! Everything that makes, carries or installs a reservation has these two values. The encodings of RSVP and of the
//! kernel's traffic control are in the crates for them (`rsvp`, `netlink`).

mod selector;
mod traffic_spec;

pub use selector::FlowSelector;
pub use traffic_spec::TrafficSpec;

//! Flows: the packets of a flow ([`FlowSelector`]), its largest traffic ([`TrafficSpec`]), and the directions of traffic
//! at an end ([`Direction`]).
//!
//! All code that makes, carries or installs a reservation has the first two values. The encodings of RSVP and of the
//! kernel's traffic control are in the crates for them (`rsvp`, `netlink`).

mod direction;
mod selector;
mod traffic_spec;

pub use direction::Direction;
pub use selector::FlowSelector;
pub use traffic_spec::TrafficSpec;

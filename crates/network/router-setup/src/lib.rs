//! A router on a host that routes (docs/guide/router.md, "On a host that routes"): the packets that the host forwards pass between
//! two TUN interfaces, and the router is between those.
//!
//! Everything is done by scripts that a person can read. They are written before the first command runs, so that whatever happens
//! then can be undone.
//!
//! ```text
//! setup        a setup: its interfaces and options, checked, made and taken back
//! plan         the commands of a setup, and those that take them back, as scripts
//! place        name of a setup, and the folder of its scripts
//! firewall     the host's own rules, as far as they matter
//! surroundings the host's other interfaces, as far as they matter
//! router_file  the router's file
//! start        a router in the background
//! units        the units of systemd that do the same at each start of the machine
//! error        why a setup cannot be made or taken back
//! ```

mod error;
mod firewall;
mod place;
mod plan;
mod router_file;
mod setup;
mod start;
mod surroundings;
mod units;

pub use error::SetupError;
pub use place::{SetupPlace, USUAL_FOLDER, USUAL_NAME};
pub use router_file::{FairShares, RouterFile};
pub use setup::{NatMode, RoutedSetup, TABLES, routing_tables};
pub use start::start;
pub use units::SystemdUnits;

//! Parameters of an engine and of its interfaces.

use crate::admission::ShareParams;
use crate::encapsulation::Encapsulation;
use crate::integrity::IntegrityConfig;
use cutline_params::Parameters;
use cutline_units::{Duration, Rate};
use std::net::IpAddr;

/// Parameters of an engine.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct EngineParams {
    /// Refresh period R: state is sent again at random intervals between half of it and one and a half of it.
    #[param(
        default = Duration::from_secs(30),
        range = (Duration::from_millis(100), Duration::from_secs(3600)),
        source = "RFC 2205 section 3.7"
    )]
    pub refresh: Duration,
    /// K: number of consecutive refreshes whose loss ends state.
    #[param(default = 3, range = (1, 20), source = "RFC 2205 section 3.7")]
    pub lifetime: u32,
    /// Kb: time for which a failed reservation keeps larger ones out of merging, in refresh periods.
    #[param(default = 4.0, range = (1.0, 100.0), source = "ours: RFC 2205 section 3.5 leaves it open")]
    pub blockade: f64,
    /// W: time from a change of a route until Path messages take the new one.
    #[param(
        default = Duration::from_secs(2),
        range = (Duration::ZERO, Duration::from_secs(60)),
        source = "RFC 2205 section 3.6"
    )]
    pub local_repair: Duration,
    /// Number of early repetitions of new state, beside the refreshes, to a neighbour that sends no acknowledgements.
    #[param(default = 1, range = (0, 10), source = "ours: RFC 2205 section 3.7 allows it; one lost message costs half a second")]
    pub early_refreshes: u32,
    /// Refresh reduction with neighbours that have it.
    #[param(default = true, source = "RFC 2961")]
    pub refresh_reduction: bool,
    /// Number of refresh periods between whole messages about state that summaries refresh. They repair state
    /// that has been damaged.
    #[param(default = 20, range = (1, 1_000_000), source = "ours: RFC 2961 section 5.5 leaves it open")]
    pub whole_refresh: u32,
    /// Rf: time to wait for an acknowledgement before a message is sent again; it doubles with each repetition.
    #[param(
        default = Duration::from_millis(500),
        range = (Duration::from_millis(1), Duration::from_secs(60)),
        source = "RFC 2961 section 6.2"
    )]
    pub rapid_retransmission: Duration,
    /// Rl: number of transmissions of a message without an acknowledgement, after which it is given up.
    #[param(default = 3, range = (1, 20), source = "RFC 2961 section 6.2")]
    pub rapid_limit: u32,
    /// Time that an acknowledgement waits for others, or for a message that carries it.
    #[param(
        default = Duration::from_millis(20),
        range = (Duration::ZERO, Duration::from_secs(1)),
        source = "ours: well below the default of rapid-retransmission"
    )]
    pub ack_delay: Duration,
    /// The longest message that summarises refreshes or acknowledges, bytes.
    #[param(default = 1400, range = (100, 60_000), unit = "B", source = "ours: with IP's headers it fits Ethernet")]
    pub longest_list: u32,
    /// The TTL of messages.
    #[param(default = 64, range = (1, 255), source = "RFC 1700")]
    pub ttl: u8,
    /// Upper bound of a neighbour's refresh period, or this node's own period if that is longer. State of a neighbour
    /// that sends less often ends between its messages.
    #[param(
        default = Duration::from_secs(120),
        range = (Duration::from_secs(1), Duration::from_secs(3600)),
        source = "ours: four times the default of refresh; RFC 2205 section 3.7 believes everything"
    )]
    pub longest_refresh: Duration,
    /// The most sessions.
    #[param(default = 100_000, range = (1, 10_000_000), source = "ours: some 200 MB")]
    pub most_sessions: u32,
    /// The most senders, and the most reservations, of a session.
    #[param(default = 500, range = (1, 800), source = "ours: a Resv message for more does not fit a datagram")]
    pub most_per_session: u32,
    /// The most paths and reservations of a neighbour.
    #[param(default = 30_000, range = (1, 10_000_000), source = "ours: three times what was measured")]
    pub most_per_neighbour: u32,
    /// The most paths and reservations of all neighbours at an interface.
    #[param(default = 50_000, range = (1, 10_000_000), source = "ours: half of most-sessions")]
    pub most_per_interface: u32,
    /// Maximum number of paths without a reservation at an interface.
    #[param(default = 20_000, range = (1, 10_000_000), source = "ours: some 90 MB")]
    pub most_unconfirmed: u32,
    /// Maximum number of bytes of `POLICY_DATA`, and of objects of unknown classes, in a message that is accepted, and in one that is sent.
    #[param(default = 2048, range = (0, 4096), unit = "B", source = "ours: such objects are kept with the state")]
    pub most_opaque: u32,
    /// The most neighbours.
    #[param(default = 4096, range = (1, 1_000_000), source = "ours")]
    pub most_neighbours: u32,
}

impl EngineParams {
    /// Returns the lifetime of state that a neighbour refreshes with this period (RFC 2205 section 3.7).
    pub fn lifetime_of(&self, refresh: Duration) -> Duration {
        refresh.min(self.longest_refresh.max(self.refresh)).mul_f64((f64::from(self.lifetime) + 0.5) * 1.5)
    }
}

/// An interface, or a tunnel. Its number is the logical interface handle in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InterfaceId(pub u32);

/// Configuration of an interface.
#[derive(Clone, Debug)]
pub struct InterfaceConfig {
    /// Its address.
    pub address: IpAddr,
    /// Rate of the interface's link.
    pub rate: Rate,
    /// The MTU of its link, bytes.
    pub mtu: u32,
    /// Share of the link that can be reserved; `None` if this node does not control the traffic there.
    pub share: Option<ShareParams>,
    /// Authentication of messages; `None` if there is none.
    pub integrity: Option<IntegrityConfig>,
    /// Encapsulation of messages.
    pub encapsulation: Encapsulation,
}

impl InterfaceConfig {
    /// An interface with raw messages, whose traffic is controlled, and without authentication.
    pub fn new(address: IpAddr, rate: Rate) -> Self {
        Self {
            address,
            rate,
            mtu: 1500,
            share: Some(ShareParams::default()),
            integrity: None,
            encapsulation: Encapsulation::Raw,
        }
    }
}

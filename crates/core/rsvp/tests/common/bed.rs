//! Hosts at a router, one of which says things in the name of others.
//!
//! ```text
//! h1 (0) ---- 1  r (1)  2 ---- h2 (2)
//!                3
//!                |
//!              m (3)
//! ```

use super::{SECOND, World, load, session, tspec};
use cutline_rsvp::encapsulation::Carrier;
use cutline_rsvp::engine::{Datagram, EngineParams, InterfaceId, RsvpEvent, Stats};
use cutline_rsvp::integrity::{Algorithm, IntegrityConfig, SecurityKey};
use cutline_rsvp::message::{
    Body, Descriptor, Message, MessageType, Path, PathErr, PathTear, Resv, ResvConf, ResvErr, ResvTear,
};
use cutline_rsvp::object::{ErrorSpec, Hop, Sender, Session, Style, code};
use cutline_units::Rate;
use std::net::IpAddr;

pub const RATE: f32 = 100_000.0;
pub const H1: usize = 0;
pub const R: usize = 1;
pub const H2: usize = 2;
pub const M: usize = 3;

/// The network. The first session goes from `h1` to `h2`.
pub struct Bed {
    pub world: World,
    pub session: Session,
    pub sender: Sender,
}

pub fn key(secret: &[u8]) -> SecurityKey {
    SecurityKey::new(7, Algorithm::HmacSha256, secret)
}

/// Keys of the interface to `h1`, of that to `h2` and of that to `m`.
pub type Keys = [Option<&'static [u8]>; 3];

pub const NONE: Keys = [None; 3];
pub const ALL_BUT_M: Keys = [Some(b"a secret of neighbours"), Some(b"a secret of neighbours"), None];

/// Builds the described network.
pub type MakeBody = fn(&Bed) -> Body;

impl Bed {
    pub fn new(keys: Keys) -> Self {
        Self::with(keys, &EngineParams::default())
    }

    /// The same, with parameters of `r`.
    pub fn with(keys: Keys, params: &EngineParams) -> Self {
        let mut world = World::new(1);
        for node in 0..4 {
            world.add_node(if node == R { params.clone() } else { EngineParams::default() });
        }
        for other in [H1, H2, M] {
            world.join(R, other, Rate::from_mbps(10));
        }
        for ((number, other), secret) in [(1, H1), (2, H2), (3, M)].into_iter().zip(keys) {
            let Some(secret) = secret else { continue };
            let integrity = IntegrityConfig { challenges: false, ..IntegrityConfig::new(vec![key(secret)]) };
            world.set_interface(R, number, |interface| interface.integrity = Some(integrity.clone()));
            world.set_interface(other, 1, |interface| interface.integrity = Some(integrity));
        }
        // It says nothing but what the tests say in its place.
        world.vanish(M);
        world.keeps_messages = true;
        let session = session(world.address(H2, 1), 5004);
        let sender = world.send_path(H1, session, tspec(RATE));
        world.reserve(H2, session, Style::FixedFilter, &[sender], RATE);
        world.run(SECOND * 10);
        let this = Self { world, session, sender };
        this.assert_in_place("before");
        this
    }

    pub fn address(&self, node: usize) -> IpAddr {
        self.world.address(node, 1)
    }

    pub fn assert_in_place(&self, what: &str) {
        assert_eq!((self.world.reserved(H1, 1), self.world.reserved(R, 2)), (100_000, 100_000), "{what}");
    }

    /// Asserts that this rate is reserved on the way, altogether.
    pub fn assert_in_place_all(&self, all: u64) {
        assert_eq!((self.world.reserved(H1, 1), self.world.reserved(R, 2)), (all, all));
    }

    /// The first reservation is there, whatever else is.
    pub fn assert_first_in_place(&self) {
        let mut sessions = self.world.nodes[R].engine.sessions();
        let first = sessions.find(|view| view.session == self.session).expect("its path is there");
        assert!(first.reservations.iter().any(|its| its.senders.contains(&self.sender)));
    }

    pub fn stats(&self) -> Stats {
        self.world.nodes[R].engine.stats().clone()
    }

    /// A message arrives at an interface of `r`.
    pub fn arrives(&mut self, interface: u32, source: IpAddr, bytes: Vec<u8>) {
        let destination = self.world.address(R, interface);
        let carrier = Carrier::Raw;
        let interface = InterfaceId(interface);
        let datagram = Datagram {
            interface,
            source,
            destination,
            next_hop: None,
            ttl: 64,
            router_alert: false,
            carrier,
            bytes,
        };
        self.world.deliver((R, interface), &datagram);
    }

    pub fn says(&mut self, interface: u32, source: IpAddr, body: Body) {
        self.arrives(interface, source, Message::new(64, body).encode());
    }

    /// The messages that `r` has sent to a node since then.
    pub fn sent_to(&self, node: usize, kind: MessageType) -> usize {
        let is_it = |datagram: &Datagram| datagram.bytes[1] == kind as u8;
        self.world
            .passed
            .iter()
            .filter(|passed| (passed.from, passed.to) == (R, node) && is_it(&passed.datagram))
            .count()
    }

    pub fn resv_tear(&self) -> Body {
        let flows = vec![Descriptor { flowspec: None, filters: vec![self.sender] }];
        let hop = Hop { address: self.address(H2), handle: 2 };
        Body::ResvTear(ResvTear { session: self.session, hop, style: Style::FixedFilter, flows })
    }

    pub fn path_tear(&self) -> Body {
        let hop = Hop { address: self.address(H1), handle: 1 };
        Body::PathTear(PathTear { session: self.session, hop, sender: self.sender, tspec: None })
    }

    pub fn path(&self, session: Session, sender: Sender, from: usize) -> Body {
        let hop = Hop { address: self.address(from), handle: 1 };
        let refresh = SECOND * 30;
        let (policy, tspec) = (Vec::new(), tspec(RATE));
        Body::Path(Path { session, polices_entry: false, hop, refresh, policy, sender, tspec, adspec: None })
    }

    pub fn resv(&self, session: Session, sender: Sender, handle: u32) -> Body {
        let flows = vec![Descriptor { flowspec: Some(load(RATE)), filters: vec![sender] }];
        let hop = Hop { address: self.address(H2), handle };
        let (refresh, style) = (SECOND * 30, Style::FixedFilter);
        Body::Resv(Resv {
            session,
            hop,
            refresh,
            confirm: None,
            scope: None,
            policy: Vec::new(),
            style,
            flows,
        })
    }

    pub fn error(&self, code: u8) -> ErrorSpec {
        ErrorSpec { node: self.address(M), in_place: false, not_guilty: false, code, value: 0 }
    }

    pub fn path_error(&self) -> Body {
        let error = self.error(code::RSVP_SYSTEM);
        Body::PathErr(PathErr {
            session: self.session,
            error,
            policy: Vec::new(),
            sender: self.sender,
            tspec: None,
        })
    }

    pub fn resv_error(&self) -> Body {
        let hop = Hop { address: self.address(H1), handle: 1 };
        let flow = Some(Descriptor { flowspec: Some(load(RATE / 2.0)), filters: vec![self.sender] });
        Body::ResvErr(ResvErr {
            session: self.session,
            hop,
            error: self.error(code::ADMISSION),
            scope: None,
            policy: Vec::new(),
            style: Style::FixedFilter,
            flow,
        })
    }

    pub fn confirmation(&self) -> Body {
        let flows = vec![Descriptor { flowspec: Some(load(RATE)), filters: vec![self.sender] }];
        Body::ResvConf(ResvConf {
            session: self.session,
            error: self.error(code::CONFIRMATION),
            receiver: self.address(H2),
            style: Style::FixedFilter,
            flows,
        })
    }

    pub fn errors_heard(&self, node: usize) -> usize {
        let is_error =
            |event: &RsvpEvent| matches!(event, RsvpEvent::PathError { .. } | RsvpEvent::ResvError { .. });
        self.world.events.iter().filter(|(_, at, event)| *at == node && is_error(event)).count()
    }
}

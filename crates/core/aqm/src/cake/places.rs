//! A table of a thousand places in sets of eight: the place of each key, by hash.
//!
//! Source: "Piece of CAKE", section III-A. A key that is in its set has its place there; a new one takes any unused place of its set.
//! Only when all eight are in use do two share a place.

/// Number of places.
pub(super) const PLACES: usize = 1024;
/// Places of a set.
const WAYS: usize = 8;

/// The place of a hash: `tag_at` returns the tag of a place, `is_free` whether it is unused.
pub(super) fn find(hash: u32, tag_at: impl Fn(usize) -> u32, is_free: impl Fn(usize) -> bool) -> usize {
    let own = hash as usize % PLACES;
    let set = own - own % WAYS;
    let in_set = |way: usize| set + (own + way) % WAYS;
    let ways = || (0..WAYS).map(in_set);
    ways().find(|&at| tag_at(at) == hash).or_else(|| ways().find(|&at| is_free(at))).unwrap_or(own)
}

/// The hosts at one end, each with its number of flows here and its number of backlogged flows.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    hosts: Vec<Host>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Host {
    tag: u32,
    flows: u32,
    bulk: u32,
}

impl Hosts {
    pub(super) fn new() -> Self {
        Self { hosts: vec![Host::default(); PLACES] }
    }

    /// Counts a further flow of a host. Returns the host's place.
    pub(super) fn join(&mut self, hash: u32) -> u16 {
        let at = find(hash, |at| self.hosts[at].tag, |at| self.hosts[at].flows == 0);
        let host = &mut self.hosts[at];
        host.tag = hash;
        host.flows += 1;
        at as u16
    }

    /// Counts a flow less of the host at a place.
    pub(super) fn leave(&mut self, at: u16) {
        self.hosts[usize::from(at)].flows -= 1;
    }

    /// Counts a backlogged flow more, or less, of the host at a place.
    pub(super) fn change_bulk(&mut self, at: u16, begins: bool) {
        let bulk = &mut self.hosts[usize::from(at)].bulk;
        *bulk = if begins { *bulk + 1 } else { *bulk - 1 };
    }

    /// Returns the number of backlogged flows of the host.
    pub(super) fn bulk(&self, at: u16) -> u32 {
        self.hosts[usize::from(at)].bulk
    }
}

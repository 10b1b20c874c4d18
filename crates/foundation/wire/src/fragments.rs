//! The flows of fragmented packets, by identification.
//!
//! Only the first fragment of a packet has the ports (RFC 791 section 2.3, RFC 8200 section 4.5). Its flow is remembered in a
//! table of fixed size, where a later packet may replace it. A fragment that is not found there, because it comes before the first one, keeps
//! the flow of addresses and protocol.

/// A fragment of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The hash of the packet's addresses, protocol and identification.
    pub(crate) key: u64,
    /// True if it is the first one.
    pub(crate) is_first: bool,
}

/// The flows of the packets whose first fragments came last.
#[derive(Clone, Debug)]
pub struct FragmentFlows {
    /// Keys and flows, each at the place of its key.
    places: Box<[(u64, u32)]>,
}

/// The number of packets that are remembered. It takes 16 KiB.
const PLACES: usize = 1024;

impl Default for FragmentFlows {
    fn default() -> Self {
        Self { places: vec![(0, 0); PLACES].into_boxed_slice() }
    }
}

impl FragmentFlows {
    /// Returns the flow of a fragment, whose own headers give `flow`.
    pub(crate) fn flow(&mut self, fragment: Fragment, flow: u32) -> u32 {
        // An unused place has the key 0.
        let key = fragment.key | 1;
        let place = &mut self.places[(key >> 32) as usize % PLACES];
        if fragment.is_first {
            *place = (key, flow);
        }
        if place.0 == key { place.1 } else { flow }
    }
}

//! Reading ahead: the state of the flows whose packets are next, so that cache misses overlap.
//!
//! With many flows, each packet needs memory that the processor has to wait for, and it cannot start to wait before it has handled the
//! packets before. A stage knows its next packets. So it first reads a word of everything that a block of packets needs, where no
//! read depends on the one before, and then handles the block.

use super::inbox::Parcel;
use crate::engine::parts::Parts;
use crate::route::Hop;
use std::hint::black_box;

/// The number of packets in a block.
pub(super) const BLOCK: usize = 32;
/// With fewer flows, the state of all of them stays in the cache.
pub(super) const FLOWS: usize = 300;

impl Parts {
    /// Reads the memory for a block of data packets at the sinks: their flows, then the records of delays and the first links of replies.
    #[inline(never)]
    pub(super) fn read_ahead_of_data(&self, block: &[Parcel]) {
        let mut flows = [0_u32; BLOCK];
        for (flow, parcel) in flows.iter_mut().zip(block) {
            *flow = self.routes.at(parcel.packet.position).index() as u32;
        }
        let mut places = [(0_u32, 0_u32); BLOCK];
        let mut sum = 0;
        for (place, flow) in places.iter_mut().zip(&flows[..block.len()]) {
            let flow = &self.receiving[*flow as usize];
            *place = (flow.delays, flow.route);
            sum ^= flow.sink.read_ahead() ^ flow.record.first_word();
        }
        let mut links = [0_u32; BLOCK];
        for (link, (_, route)) in links.iter_mut().zip(&places[..block.len()]) {
            *link = self.routes.at(*route).index() as u32;
        }
        for (link, ((delays, _), parcel)) in links.iter().zip(places.iter().zip(block)) {
            let one_way = parcel.at.saturating_since(parcel.packet.sent_at());
            sum ^= self.read_ahead_of_delays(*delays, parcel.packet.queued, one_way);
            sum ^= u64::from(self.fifo_links[*link as usize].class);
        }
        black_box(sum);
    }

    /// Reads the memory for a block of replies at the sources: their flows, and the first links of data.
    #[inline(never)]
    pub(super) fn read_ahead_of_replies(&self, block: &[Parcel]) {
        let mut routes = [0_u32; BLOCK];
        let mut sum = 0;
        for (route, parcel) in routes.iter_mut().zip(block) {
            let flow = &self.sending[self.routes.at(parcel.packet.position).index()];
            *route = flow.route;
            sum ^= flow.record.total() ^ flow.source.read_ahead();
        }
        for route in &routes[..block.len()] {
            sum ^= u64::from(self.fifo_links[self.routes.at(*route).index()].class);
        }
        black_box(sum);
    }

    /// Reads the FIFO links that packets are about to cross.
    #[inline]
    pub(super) fn read_ahead_of_links(&self, hops: impl Iterator<Item = Hop>) {
        let folded = hops.filter(|hop| hop.is_folded_fifo_link());
        black_box(folded.map(|hop| u64::from(self.fifo_links[hop.index()].class)).sum::<u64>());
    }
}

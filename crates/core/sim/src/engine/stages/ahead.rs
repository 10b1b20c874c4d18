//! Reading ahead: the state of the flows whose packets are next, so that cache misses overlap.
//!
//! With many flows, each packet needs memory that the processor has to wait for, and it cannot start to wait before it has handled the
//! packets before. A stage knows its next packets. So it first reads a word of everything that a block of packets needs, where no
//! read depends on the one before, and then handles the block.

use super::inbox::Parcel;
use crate::engine::parts::Parts;
use crate::places::NONE;
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
        for (link, ((_, route), flow)) in links.iter_mut().zip(places[..block.len()].iter().zip(&flows)) {
            *link = self.routes.at(*route).index() as u32;
            sum ^= self.receiving[*flow as usize].sink.read_ahead_of_ranges();
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
        self.read_ahead_of_fifo_links(routes[..block.len()].iter().map(|route| self.routes.at(*route)));
        black_box(sum);
    }

    /// Reads the memory for a block of packets that queued links and other FIFO links send on: the next links.
    #[inline]
    pub(super) fn read_ahead_of_links(&self, block: &[Parcel]) {
        let mut hops = [Hop::from_tag(0); BLOCK];
        for (hop, parcel) in hops.iter_mut().zip(block) {
            *hop = self.routes.at(parcel.packet.position);
        }
        let hops = hops[..block.len()].iter().copied();
        self.read_ahead_of_fifo_links(hops.filter(|hop| hop.is_folded_fifo_link()));
    }

    /// Reads FIFO links that a block of packets is about to cross, and the packets that wait at them.
    #[inline]
    fn read_ahead_of_fifo_links(&self, hops: impl Iterator<Item = Hop>) {
        let (mut links, mut count) = ([0_u32; BLOCK], 0);
        for hop in hops {
            links[count] = hop.index() as u32;
            count += usize::from(self.fifo_links[hop.index()].has_waiting());
        }
        self.read_ahead_of_waiting(&links[..count]);
    }

    /// Reads the packets that wait at these FIFO links. The first one is behind the last one.
    #[inline(never)]
    fn read_ahead_of_waiting(&self, links: &[u32]) {
        let mut places = [NONE; BLOCK];
        for (place, link) in places.iter_mut().zip(links) {
            *place = self.fifo_links[*link as usize].last_waiting();
        }
        let places = &mut places[..links.len()];
        for place in &mut *places {
            *place = self.waiting.behind(*place);
        }
        black_box(places.iter().fold(0, |sum, place| sum ^ self.waiting.behind(*place)));
    }
}

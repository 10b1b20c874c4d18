//! The stages of links: a queue with its transmitter, and a FIFO link that several links feed.

use super::Stages;
use super::inbox::Parcel;
use super::slab::Packets;
use crate::calendar::EventHandle;
use crate::engine::parts::Parts;
use crate::packet::Packet;
use crate::queued_link::{QueuedLink, Started};
use cutline_aqm::Verdict;
use cutline_units::{Duration, Instant, Rate};
use std::collections::VecDeque;

/// The stage of a queued link: the state outside of the link itself.
pub(super) struct QueueStage {
    /// The packets in the queue.
    packets: Packets,
    /// Time at which the transmission ends, or at which the next delivery opens; [`Instant::FAR_FUTURE`] for an idle link.
    free: Instant,
    /// The rate's changes that have not been made, in the order of time.
    changes: VecDeque<(Instant, Rate)>,
    /// The end of the interval of its series; [`Instant::FAR_FUTURE`] without a series.
    interval_ends: Instant,
    /// The earliest of the next change and the end of the interval.
    changes_at: Instant,
    /// The earlier of `changes_at` and `free`.
    due: Instant,
    /// Packets that are lost on the wire, with the time at which their last bit leaves.
    lost: VecDeque<(Instant, Packet)>,
}

impl QueueStage {
    pub(super) fn new(parts: &Parts, link: usize) -> Self {
        let changes = parts.rate_changes.iter().filter(|change| change.1 == link);
        let mut changes: VecDeque<(Instant, Rate)> = changes.map(|&(at, _, rate)| (at, rate)).collect();
        changes.make_contiguous().sort_by_key(|change| change.0);
        let has_series = parts.queued_links[link].has_series();
        let mut stage = Self {
            packets: Packets::default(),
            free: Instant::FAR_FUTURE,
            changes,
            interval_ends: if has_series {
                Instant::ZERO + parts.settings.interval
            } else {
                Instant::FAR_FUTURE
            },
            changes_at: Instant::FAR_FUTURE,
            due: Instant::FAR_FUTURE,
            lost: VecDeque::new(),
        };
        stage.find_due();
        stage
    }

    /// Returns the time of the next event except arrivals; [`Instant::FAR_FUTURE`] without one.
    pub(super) fn next_event(&self) -> Instant {
        self.lost.front().map_or(self.due, |(departs, _)| self.due.min(*departs))
    }

    fn find_due(&mut self) {
        let change = self.changes.front().map_or(Instant::FAR_FUTURE, |change| change.0);
        self.changes_at = change.min(self.interval_ends);
        self.due = self.changes_at.min(self.free);
    }

    /// Sets the time at which the link is free.
    #[inline]
    fn set_free(&mut self, free: Instant) {
        self.free = free;
        self.due = self.changes_at.min(free);
    }

    /// Waits for the link's next delivery, if a packet waits for it. Returns false if a delivery is open now.
    #[cold]
    fn waits_for_delivery(&mut self, now: Instant, link: &mut QueuedLink) -> bool {
        let next = link.next_delivery(now);
        if next != Some(now) {
            self.set_free(next.unwrap_or(Instant::FAR_FUTURE));
        }
        next != Some(now)
    }
}

impl Stages {
    /// Handles the arrivals and transmissions of a queued link up to and including `until`.
    pub(super) fn run_queue(&mut self, link: usize, until: Instant) {
        let (parcels, first) = self.inboxes.links[link].take();
        let mut next = first;
        while let Some(parcel) = parcels.get(next)
            && parcel.at <= until
        {
            while self.queues[link].due <= parcel.at {
                self.step_queue(link);
            }
            self.enqueue(link, parcel);
            next += 1;
        }
        while self.queues[link].due <= until {
            self.step_queue(link);
        }
        if !self.queues[link].lost.is_empty() {
            self.lose_packets(link, until);
        }
        if self.queues[link].packets.give_back() {
            self.parts.queued_links[link].give_back();
        }
        self.empty_outbox();
        self.events += (next - first) as u64;
        self.inboxes.links[link].put_back(parcels, next);
    }

    /// Sends the packets of a FIFO link that arrive up to and including `until`.
    pub(super) fn run_fifo_link(&mut self, number: usize, until: Instant) {
        let (inbox, fifo_link) = (self.queues.len() + number, self.fifo_links[number]);
        let (parcels, first) = self.inboxes.links[inbox].take();
        let mut next = first;
        while let Some(parcel) = parcels.get(next)
            && parcel.at <= until
        {
            let mut packet = parcel.packet;
            match self.parts.cross_fifo_link(parcel.at, &mut packet, fifo_link) {
                Some(at) => self.forward(at, packet),
                None => self.drop_packet(parcel.at, packet.header(), packet.position),
            }
            next += 1;
        }
        self.empty_outbox();
        self.events += (next - first) as u64;
        self.inboxes.links[inbox].put_back(parcels, next);
    }

    /// Executes the next event of a queued link: ends its interval, changes its rate, or starts the next transmission.
    #[inline]
    fn step_queue(&mut self, link: usize) {
        let stage = &mut self.queues[link];
        let now = stage.due;
        if stage.changes_at == now {
            return self.change_queue(link, now);
        }
        self.events += 1;
        self.serve(now, link);
    }

    #[cold]
    fn change_queue(&mut self, link: usize, now: Instant) {
        let (stage, queued_link) = (&mut self.queues[link], &mut self.parts.queued_links[link]);
        if stage.interval_ends == now {
            queued_link.close_interval(now);
            stage.interval_ends += self.parts.settings.interval;
        } else if let Some((_, rate)) = stage.changes.pop_front() {
            queued_link.set_rate(now, rate);
            self.events += 1;
        }
        stage.find_due();
    }

    /// Offers a packet to a queue.
    #[inline]
    fn enqueue(&mut self, link: usize, parcel: &Parcel) {
        let now = parcel.at;
        let arrival = self.parts.arrival(&parcel.packet);
        let (packets, queued_link) = (&mut self.queues[link].packets, &mut self.parts.queued_links[link]);
        let handle = packets.put(parcel.packet);
        let verdict = queued_link.arrive(now, arrival, handle);
        let (is_busy, may_shed) = (queued_link.busy, queued_link.may_shed());
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark => packets.mark(handle),
            Verdict::Drop(_) => self.drop_arrival(link, parcel, handle),
        }
        if !is_busy && !matches!(verdict, Verdict::Drop(_)) {
            self.serve(now, link);
        }
        if may_shed {
            self.drop_shed(now, link);
        }
    }

    /// Drops a packet that a queue has refused.
    #[cold]
    #[inline(never)]
    fn drop_arrival(&mut self, link: usize, parcel: &Parcel, handle: EventHandle) {
        self.queues[link].packets.take(handle);
        self.drop_packet(parcel.at, parcel.packet.header(), parcel.packet.position);
    }

    /// Drops the packets that a queue had stored and has shed since.
    #[inline(never)]
    fn drop_shed(&mut self, now: Instant, link: usize) {
        while let Some((handle, _)) = self.parts.queued_links[link].shed(now) {
            let packet = self.queues[link].packets.take(handle);
            self.drop_packet(now, packet.header(), packet.position);
        }
    }

    /// Starts the next transmission of a queued link that is free.
    #[inline]
    fn serve(&mut self, now: Instant, link: usize) {
        let (stage, queued_link) = (&mut self.queues[link], &mut self.parts.queued_links[link]);
        if queued_link.deliveries.is_some() && stage.waits_for_delivery(now, queued_link) {
            return;
        }
        let may_shed = queued_link.may_shed();
        if let Some(started) = queued_link.start_next(now) {
            let Started { handle, waited, marked, departs, arrives, .. } = started;
            stage.set_free(departs);
            self.parts.hops += 1;
            if queued_link.impairment.is_some() {
                self.cross_impaired_wire(departs, link, handle, waited, marked);
            } else {
                let packet = stage.packets.take(handle).transmitted(waited, marked, queued_link.pass_on);
                self.forward(arrives, packet);
            }
        } else {
            stage.set_free(Instant::FAR_FUTURE);
        }
        if may_shed {
            self.drop_shed(now, link);
        }
    }

    /// Sends a packet that a link has transmitted over its wire with an impairment.
    #[cold]
    #[inline(never)]
    fn cross_impaired_wire(
        &mut self,
        departs: Instant,
        link: usize,
        handle: EventHandle,
        waited: Duration,
        marked: bool,
    ) {
        let window = self.parts.settings.window;
        let queued_link = &mut self.parts.queued_links[link];
        let packet = self.queues[link].packets.take(handle).transmitted(waited, marked, queued_link.pass_on);
        let impaired = queued_link.impairment.as_mut().expect("the caller has seen it");
        match impaired.send(departs, packet.size(), window) {
            None => self.queues[link].lost.push_back((departs, packet)),
            Some(arrives) => self.forward(arrives, packet),
        }
    }

    /// Ends the packets that were lost on the wire of a link, when their last bit has left.
    #[cold]
    fn lose_packets(&mut self, link: usize, until: Instant) {
        while let Some(&(departs, packet)) = self.queues[link].lost.front()
            && departs <= until
        {
            self.queues[link].lost.pop_front();
            self.events += 1;
            let window = self.parts.settings.window;
            let impaired =
                self.parts.queued_links[link].impairment.as_mut().expect("only such links lose packets");
            impaired.counts.lost += u64::from(window.contains(departs));
            self.drop_packet(departs, packet.header(), packet.position);
        }
    }
}

//! DelTiC: four queues for flows by their response to congestion signals, and a delay controller with an oscillator for each flow and signal.
//!
//! Source: Jonathan Morton, The Tao of DelTiC, 2024 (Delay Time Control), and the published qdisc BOROSHNE of the same author, whose
//! behaviour was read where the text is silent. No code was taken from it.
//!
//! ```text
//! arrival:    a flow with nothing here: to the sparse queue, and a dummy to the quick one
//!             else: to the queue of the flow's direction, which is quick, bulk or hog
//! departure:  the sparse queue first; the other three share the link in proportion to their flows
//! jitter      = interval^2 + jitter (1 - interval), interval = time between departures, at most 1 s
//! sojourn     = now - arrival - jitter, at least 0
//! effective   = sum over quick, bulk and hog of  sojourn x bytes of the flow x flows / bytes of the queue
//! direction:  quick to bulk above twice the target of SCE, bulk to hog above twice that of CE;
//!             hog to bulk below the target of CE, bulk to quick below that of SCE
//! controller: accumulator = max(0, accumulator + ((sojourn - target) interval + sojourn - last sojourn) f)
//!             oscillator += accumulator interval f;  a whole turn is a signal;  target = 1 / f
//! ```
//!
//! The sum of the error over time and of its changes is a delta-sigma controller: an integral term, and a differential one that is
//! added to the same sum, without a proportional term. The sum is a frequency, in units of the resonance f, and the oscillator
//! spaces the signals evenly. There are no random numbers. A packet below half of the target gets no signal. When the oscillator
//! is faster than the packets, the sum loses a sixteenth.
//!
//! Each flow has three controllers: fine marks at 200 Hz (5 ms), CE at 40 Hz (25 ms), and drops at 8 Hz (125 ms) whatever the
//! packet's ECN field is. The strongest signal counts. A packet for CE that cannot be marked is dropped. The last packet of a flow
//! is never dropped.
//!
//! Worked numbers: a queue that rises from 0 to its target of 25 ms and stays there is marked 40 times a second
//! (`a_queue_at_its_target_has_signals_at_the_resonance`). Another 25 ms add 40 marks a second at once, and 40 more with each second
//! (`a_rise_counts_at_once_and_an_error_with_time`). With 30 of 40 packets in a queue of two flows and 40 ms, a flow is judged
//! by 60 ms, and the other by 20 (`effective_sojourn_is_the_wait_times_the_part_of_a_fair_share`).
//!
//! ## SCE and CE
//!
//! DelTiC sets SCE, which is ECT(1), in packets of senders that respond to it. Cutline has no such senders and one mark, CE.
//! With `mark-scalable` a fine mark is CE for packets of scalable senders (ECT(1)), which respond in proportion to marks as senders
//! for SCE do. Other packets get no fine marks. Without `mark-scalable` there are none at all: the published qdisc also leaves packets
//! as they are that are ECT(1) when they arrive. The target of SCE counts in both cases, since directions depend on it.
//!
//! ## Decisions where the source is silent, or differs from itself
//!
//! - *Dummies.* The text keeps a flow out of the sparse queue until its dummy has left. The qdisc looks at packets alone. Here
//!   it is as in the text; a packet that ends an idle time removes all dummies.
//! - *Credits.* The text doubles the weights of the three queues until one may send. The qdisc, as published in 2024, has unsigned deficits that are never
//!   below 0, so that it serves quick before bulk and bulk before hog. Here it is as in the text. Credits are in bytes. When a round ends, a queue
//!   without packets keeps neither debt nor credit.
//! - *Weights* are the numbers of flows that have packets in a queue, without dummies, as in the qdisc.
//! - *Controllers* are those of a flow, as in the qdisc; the text says so of the effective sojourn time alone.
//! - *Sparse packets* are judged by their own sojourn time, and do not change the direction, as in the qdisc.
//! - *A full queue* refuses newcomers. The qdisc sets a limit of 10,240 packets and does not check it.
//! - *The first packet of a flow* counts as one after a long idle time.
//!
//! ## Not implemented
//!
//! - The shaper: links of Cutline have a rate, and the router has a shaper. GSO is not known here.
//! - The masks of code points, for traffic that is not distinguished by flow and for senders that respond to SCE. The qdisc has
//!   fields for them and does not use them either.
//! - POLYA (one FIFO), ZERNO and KHLIB of the same family.
//! - Numbers are floating-point instead of fixed-point.
//!
//! As in the source, packets of a flow can change places when its direction changes.
//!
//! # Validation
//!
//! - The control law: `a_queue_at_its_target_has_signals_at_the_resonance`, `a_rise_counts_at_once_and_an_error_with_time`,
//!   `a_fall_damps_at_once_and_a_short_queue_ends_the_signals`, `below_half_of_the_target_there_are_no_signals`,
//!   `an_oscillator_that_is_faster_than_the_packets_slows_down`, `after_an_idle_second_a_short_queue_begins_at_zero`.
//! - Jitter: `jitter_is_the_time_between_packets_or_bursts`.
//! - The four queues: `sparse_packets_are_first_and_a_flow_has_one_until_its_dummy_has_left`,
//!   `queues_get_bytes_in_proportion_to_their_flows`, `flows_change_their_queue_with_hysteresis`,
//!   `effective_sojourn_is_the_wait_times_the_part_of_a_fair_share`.
//! - Flows: `a_flow_that_does_not_respond_is_a_hog_and_a_sparse_one_does_not_wait`, `a_flow_within_its_share_loses_little`.
//! - Signals: `scalable_packets_get_fine_marks_and_others_none`, `packets_that_cannot_be_marked_are_dropped_instead`,
//!   `the_last_packet_of_a_flow_is_never_dropped`, `a_full_queue_refuses_newcomers`.
//! - Not compared with the qdisc, nor with published measurements.

mod control;
mod tetra;

use crate::buckets::FlowHash;
use crate::pool::Held;
use crate::queue_core::QueueCore;
use crate::queue_core::forward_to_core;
use crate::{Arrival, Departure, Discipline, DropReason, Limit, Queue, Verdict};
use control::{Controller, Jitter};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Instant, RandomStream, Rate};
use tetra::{Class, Taken, Tetra};

const TAO: &str = "Morton, The Tao of DelTiC, 2024";
const FREQUENCIES: (f64, f64) = (0.1, 10_000.0);

/// Parameters of DelTiC.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct DelticParams {
    /// Resonance of the controllers of fine marks (SCE); the target is one over it, 5 ms.
    #[param(default = 200.0, range = FREQUENCIES, hertz, source = TAO)]
    pub sce_frequency: f64,
    /// Resonance of the controllers of CE; the target is one over it, 25 ms.
    #[param(default = 40.0, range = FREQUENCIES, hertz, source = TAO)]
    pub ecn_frequency: f64,
    /// Resonance of the controllers of drops; the target is one over it, 125 ms.
    #[param(default = 8.0, range = FREQUENCIES, hertz, source = TAO)]
    pub drop_frequency: f64,
    /// Number of places into which flows are hashed.
    #[param(default = 4096, range = (1, 65_536), source = "the published qdisc BOROSHNE")]
    pub flows: u64,
    /// Fine marks as CE in packets of scalable senders; without it there are no fine marks.
    #[param(default = true, source = "ours: no sender of Cutline responds to SCE")]
    pub mark_scalable: bool,
}

/// Congestion signal to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Nothing,
    Sce,
    Ce,
    Drop,
}

/// The controllers of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Controllers {
    /// Time of the last packet.
    last: Option<Instant>,
    sce: Controller,
    ce: Controller,
    drop: Controller,
}

impl Controllers {
    /// Returns the strongest signal to a packet of this sojourn time, s.
    fn step(&mut self, params: &DelticParams, now: Instant, sojourn: f64) -> Signal {
        let interval = self.last.map_or(f64::INFINITY, |last| now.saturating_since(last).as_secs_f64());
        self.last = Some(now);
        let sce = self.sce.step(interval, sojourn, params.sce_frequency);
        let ce = self.ce.step(interval, sojourn, params.ecn_frequency);
        if self.drop.step(interval, sojourn, params.drop_frequency) {
            Signal::Drop
        } else if ce {
            Signal::Ce
        } else if sce {
            Signal::Sce
        } else {
            Signal::Nothing
        }
    }
}

/// DelTiC with four queues, as in the qdisc BOROSHNE.
#[derive(Clone, Debug)]
pub struct Deltic<P> {
    params: DelticParams,
    hash: FlowHash,
    queues: Tetra<P>,
    controllers: Vec<Controllers>,
    jitter: Jitter,
    core: QueueCore<P>,
}

impl<P: Copy> Discipline for Deltic<P> {
    type Params = DelticParams;
    const NAME: &'static str = "deltic";
    const TITLE: &'static str = "DelTiC";
    const SOURCE: &'static str = TAO;

    fn build(params: &DelticParams, limit: Limit, ecn: bool, _rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let flows = params.flows as usize;
        Ok(Self {
            params: *params,
            hash: FlowHash::new(params.flows as u32),
            queues: Tetra::new(flows),
            controllers: vec![Controllers::default(); flows],
            jitter: Jitter::default(),
            core: QueueCore::new(limit, ecn),
        })
    }
}

impl<P: Copy> Deltic<P> {
    /// Returns the sojourn time by which a packet is judged, s, and directs its flow.
    fn judged_sojourn(&mut self, now: Instant, taken: &Taken<P>) -> f64 {
        let jitter = self.jitter.update(now);
        let own = (now.saturating_since(taken.held.arrived).as_secs_f64() - jitter).max(0.0);
        if taken.class == Class::Sparse {
            return own;
        }
        self.queues.record_sojourn(taken.class, own);
        let effective = self.queues.effective_sojourn(taken.flow);
        let targets = (self.params.sce_frequency.recip(), self.params.ecn_frequency.recip());
        self.queues.direct(taken.flow, effective, targets);
        effective
    }
}

impl<P: Copy> Queue<P> for Deltic<P> {
    #[inline]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        let Arrival { size, ecn_capable, scalable, .. } = arrival;
        let flow = self.hash.bucket(arrival.flow, random) as u32;
        if !self.core.admits(size) {
            return self.core.count_arrival(Verdict::Drop(DropReason::Overflow), size);
        }
        if self.core.backlog.packets == 0 {
            self.jitter.restart(now);
            self.queues.forget_dummies();
        }
        let may_mark = self.core.ecn && ecn_capable;
        self.queues.push(flow, scalable, Held { packet, size, arrived: now, may_mark });
        self.core.count_arrival(Verdict::Pass, size)
    }

    #[inline]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        loop {
            let taken = self.queues.take()?;
            let sojourn = self.judged_sojourn(now, &taken);
            let signal = self.controllers[taken.flow as usize].step(&self.params, now, sojourn);
            let held = taken.held;
            let is_fine = taken.is_scalable && self.params.mark_scalable;
            let marked = held.may_mark && (signal == Signal::Ce || (signal == Signal::Sce && is_fine));
            let is_hit = signal == Signal::Drop || (signal == Signal::Ce && !held.may_mark);
            if is_hit && self.queues.has_packets(taken.flow) {
                self.core.count_shed(held, DropReason::Early);
            } else {
                return Some(self.core.count_departure(held.leave(marked)));
            }
        }
    }

    forward_to_core!(P);

    fn reset(&mut self, _now: Instant, discard: &mut dyn FnMut(P)) {
        self.queues.reset(|held| self.core.count_flushed(held, discard));
        self.controllers.fill(Controllers::default());
        self.jitter = Jitter::default();
        self.hash.reset();
    }
}

#[cfg(test)]
mod tests;

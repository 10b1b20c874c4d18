//! TSQ's order and TSQ's charge, without a law, a limit or counters: for queues that need more than [`Tsq`] has.
//!
//! A discipline that has a drop probability of its own requests the [insertion point](ChargedLanes::insertion_point) of an
//! arrival, lets [`ChargedLanes::hits`] draw with p' instead of p, and [pushes](ChargedLanes::push) the spared packets.
//! [`ChargedLanes::pop`] answers the packet of least weight. [`Tsq`] itself does no more than that, for any law.
//!
//! [`Tsq`]: crate::Tsq

use crate::lane::Entry;
use crate::lanes::Lanes;
use crate::{Backlog, DrainRate};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Hint, HintBits, Instant, Probability, RandomStream, Rate};

/// Parameters of TSQ.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
pub struct TsqParams {
    /// n: the number of hint bits; hints are 1 to 2^n.
    #[param(default = 4, range = (1, 8), source = "TSQ section 3.2")]
    pub bits: u64,
    /// The delay outside the queue that the charge for cutting in line assumes.
    #[param(
        default = Duration::from_millis(40),
        range = (Duration::from_millis(1), Duration::from_secs(1)),
        source = "TSQ section 3.3; 40 ms to 100 ms is sensible"
    )]
    pub l: Duration,
    /// The largest p'/p allowed.
    #[param(default = None, range = (1.0, 1e6), source = "off: the paper's law has no bound")]
    pub max_ratio: Option<f64>,
    /// Credit for the time that a packet waited in earlier routers: it is ordered as if it had arrived that much
    /// earlier, and charged without the credit.
    #[param(default = false, source = "ours: RED-Worcester section 5 leaves it to future work")]
    pub age_credit: bool,
}

/// Offer to an arriving packet: its place, and the backlog ahead of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The lane of its hint.
    pub lane: usize,
    /// q: the backlog with the rest of the packet in service, as a delay. The same as td.
    pub q: Duration,
    /// w.
    pub weight: Instant,
    /// q': the backlog that would be ahead of it, as a delay.
    pub q_prime: Duration,
}

/// Place at which an arriving packet would be inserted, before q' is computed.
#[derive(Clone, Copy, Debug)]
pub struct InsertionPoint {
    lane: usize,
    q: Duration,
    weight: Instant,
    /// The weight without credit for its age, by which it is charged.
    charged_weight: Instant,
    /// Rest of the packet in service: the lower bound of q'.
    in_service: Duration,
}

/// Lanes in TSQ's order, and the charge for cutting in line.
#[derive(Clone, Debug)]
pub struct ChargedLanes<P> {
    bits: HintBits,
    l: Duration,
    age_credit: bool,
    /// Infinite where there is no bound.
    max_ratio: f64,
    drain: DrainRate,
    lanes: Lanes<P>,
    /// Time at which the packet in service will have left.
    service_ends: Instant,
}

impl<P: Copy> ChargedLanes<P> {
    /// Empty lanes in front of a link of rate `rate`.
    ///
    /// # Errors
    /// When a parameter is outside its range.
    pub fn new(params: &TsqParams, rate: Rate) -> Result<Self, ParameterError> {
        params.validate()?;
        let bits = HintBits::new(params.bits).expect("the range of bits has been checked");
        Ok(Self {
            bits,
            l: params.l,
            age_credit: params.age_credit,
            max_ratio: params.max_ratio.unwrap_or(f64::INFINITY),
            drain: DrainRate::new(rate),
            lanes: Lanes::new(bits),
            service_ends: Instant::ZERO,
        })
    }

    /// Returns the place at which a packet of that hint would be inserted now (TSQ eq. 2), if it has `waited`
    /// in earlier queues. It holds until the next push or pop.
    #[inline]
    pub fn insertion_point(&self, now: Instant, hint: Hint, waited: Duration) -> InsertionPoint {
        let lane = hint.lane().min(self.lanes.len() - 1);
        let in_service = self.service_ends.saturating_since(now);
        let q = self.drain.time(self.lanes.backlog().bytes) + in_service;
        let own = weight(self.bits, lane, q, now);
        let credited =
            if self.age_credit { own - waited.min(own.saturating_since(Instant::ZERO)) } else { own };
        let [weight, charged_weight] = [credited, own].map(|weight| self.lanes.fit(lane, weight));
        InsertionPoint { lane, q, weight, charged_weight, in_service }
    }

    /// Returns the offer to a packet of that hint that arrives now.
    pub fn offer(&mut self, now: Instant, hint: Hint) -> Offer {
        let point = self.insertion_point(now, hint, Duration::ZERO);
        let InsertionPoint { lane, q, weight, .. } = point;
        let q_prime = if self.pays_p(lane) { q } else { self.q_prime(&point) };
        Offer { lane, q, weight, q_prime }
    }

    /// Draws whether a packet at `point` is hit with probability p', where `p` is the probability at the
    /// tail.
    ///
    /// The draw comes before q' is looked for: p' is at most its value with an empty q', so most draws need no q'.
    /// Nothing is drawn if p is 0.
    #[expect(clippy::inline_always, reason = "once per packet; a call costs more than what is drawn")]
    #[inline(always)]
    pub fn hits(&mut self, p: Probability, point: &InsertionPoint, random: &mut RandomStream) -> bool {
        if p == Probability::ZERO || self.pays_p(point.lane) {
            return random.chance(p);
        }
        let drawn = random.uniform();
        let at_most = charge(p, self.l, point.q, point.in_service, self.max_ratio);
        drawn < at_most.get() && drawn < self.p_prime(p, point).get()
    }

    /// p' of a packet at `point` (TSQ eq. 5), where `p` is the probability of a packet at the tail.
    #[inline]
    pub fn p_prime(&mut self, p: Probability, point: &InsertionPoint) -> Probability {
        if self.pays_p(point.lane) {
            return p;
        }
        let q_prime = self.q_prime(point);
        charge(p, self.l, point.q, q_prime, self.max_ratio)
    }

    /// Inserts a packet that has arrived now. Returns false, and inserts nothing, if there is no memory for it: the queue
    /// is full then.
    #[inline]
    #[must_use]
    pub fn push(&mut self, now: Instant, point: &InsertionPoint, size: u32, packet: P) -> bool {
        self.lanes.push(point.lane, Entry { weight: point.weight, arrived: now, size, packet })
    }

    /// Takes the packet of least weight, which goes to the link now.
    #[expect(clippy::inline_always, reason = "once per packet; a call writes the entry to memory once more")]
    #[inline(always)]
    pub fn pop(&mut self, now: Instant) -> Option<Entry<P>> {
        let entry = self.lanes.pop()?;
        self.serve(now, entry.size);
        Some(entry)
    }

    /// Notes that a packet goes to the link now. Only needed where the link also serves packets from elsewhere: the part that is
    /// left of the packet in service is part of q and of q'.
    #[inline]
    pub fn serve(&mut self, now: Instant, size: u32) {
        self.service_ends = now.saturating_add(self.drain.time(u64::from(size)));
    }

    /// Returns the backlog.
    #[inline]
    pub const fn backlog(&self) -> Backlog {
        self.lanes.backlog()
    }

    /// The link's rate from now on. Weights that are given stay, and a packet in service ends as planned.
    pub fn set_rate(&mut self, rate: Rate) {
        self.drain = DrainRate::new(rate);
    }

    /// Empties the lanes, handing every packet to `each`. A packet in service is forgotten as well.
    pub fn reset(&mut self, now: Instant, mut each: impl FnMut(Entry<P>)) {
        while let Some(entry) = self.lanes.pop() {
            each(entry);
        }
        self.service_ends = now;
    }

    /// Returns whether a lane is that of the largest hint, whose packets overtake none.
    #[inline]
    const fn pays_p(&self, lane: usize) -> bool {
        lane + 1 == self.lanes.len()
    }

    #[inline]
    fn q_prime(&mut self, point: &InsertionPoint) -> Duration {
        self.drain.time(self.lanes.bytes_ahead(point.lane, point.charged_weight)) + point.in_service
    }
}

impl InsertionPoint {
    /// The weight that a packet here gets.
    #[inline]
    pub const fn weight(&self) -> Instant {
        self.weight
    }
}

/// w of TSQ eq. 2, rounded down to the nanosecond. Lane k holds hint d = k + 1.
#[inline]
pub fn weight(bits: HintBits, lane: usize, td: Duration, ta: Instant) -> Instant {
    let d = lane as u64 + 1;
    let td = td.as_nanos().min(DrainRate::LONGEST.as_nanos());
    ta.saturating_add(Duration::from_nanos((d * td) >> bits.get()))
}

/// p' of TSQ eq. 5, with p' / p at most `max_ratio`. Never falls as q' does.
#[inline]
pub fn charge(p: Probability, l: Duration, q: Duration, q_prime: Duration, max_ratio: f64) -> Probability {
    Probability::clamped(charge_ratio(l, q, q_prime, max_ratio) * p.get())
}

#[inline]
fn charge_ratio(l: Duration, q: Duration, q_prime: Duration, max_ratio: f64) -> f64 {
    let [l, q, q_prime] = [l, q, q_prime].map(|delay| delay.as_nanos() as f64);
    let ratio = (l + q) / (l + q_prime);
    (ratio * ratio).min(max_ratio)
}

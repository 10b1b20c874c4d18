//! Impairments of a link: random loss, reordering and jitter.
//!
//! They take place on the wire, behind the queue. A packet has left the queue and has occupied the link for its transmission
//! time before it is lost, so neither the queue nor the AQM sees the loss. Each direction of a link has its own
//! impairment.
//!
//! The models are those of Linux's netem, with these differences: the state of the Gilbert-Elliott model is drawn from its
//! stationary distribution at the start, so that its mean loss holds from the first packet on (netem starts in the good
//! state); a reordered packet is late (with netem it is early); jitter keeps the order of packets unless configured
//! otherwise; and there is no correlation between draws.
//!
//! # Loss
//! Either each packet is lost with probability `loss` (Bernoulli), or the link has a good and a bad state
//! (Gilbert 1960, Elliott 1963). At each packet it is lost with the probability of the present state, and then the state changes with
//! the probability `to-bad` (p) or `to-good` (r). With netem's `loss gemodel p r 1-h 1-k`, `loss-in-bad` is 1-h and `loss-in-good` is
//! 1-k. The share of the bad state is p / (p + r). If nothing is lost in the good state, the mean number of packets that are
//! lost in a row is 1 / (1 - (1 - r)(1 - h)): 1 / r if everything is lost in the bad one.
//!
//! On a link with AAL5 the unit of loss may be a cell: each cell of a packet is drawn, and a packet that lacks one is lost.
//!
//! # Jitter and reordering
//! Jitter changes the propagation delay of each packet, by up to `jitter` in either direction (uniform) or with this
//! standard deviation (normal); a delay is never below 0. In order, a packet arrives no earlier than the one before it. The mean
//! delay is then above the link's. A packet that is held back (probability `reorder`) arrives `reorder-delay` later than
//! it would, whatever overtakes it.
//!
//! A packet counts as reordered if one that was sent after it arrives before it (RFC 4737).

use cutline_params::{Choice, ParameterError, Parameters};
use cutline_units::{Duration, Instant, Probability, RandomStream, Streams};
use rand_distr::{Distribution as _, StandardNormal};
use std::collections::VecDeque;

/// Effects of a link on packets on the wire, one direction.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct ImpairmentParams {
    /// Probability that a packet is lost, each independently of the others (Bernoulli).
    #[param(default = 0.0, range = (0.0, 1.0), source = NONE)]
    pub loss: f64,
    /// Gilbert-Elliott: probability of changing from the good to the bad state after a packet (netem's p). Above 0 it
    /// replaces `loss`.
    #[param(default = 0.0, range = (0.0, 1.0), source = NONE)]
    pub to_bad: f64,
    /// Gilbert-Elliott: probability of changing from the bad to the good state after a packet (netem's r).
    #[param(default = 1.0, range = (1e-6, 1.0), source = "a bad state of one packet")]
    pub to_good: f64,
    /// Gilbert-Elliott: probability that a packet is lost in the bad state (netem's 1-h).
    #[param(default = 1.0, range = (0.0, 1.0), source = "netem")]
    pub loss_in_bad: f64,
    /// Gilbert-Elliott: probability that a packet is lost in the good state (netem's 1-k).
    #[param(default = 0.0, range = (0.0, 1.0), source = "netem")]
    pub loss_in_good: f64,
    /// Unit of every draw of a loss: a packet, or a cell of a link with AAL5. A packet is lost if one of its cells is.
    #[param(default = LossUnit::Packet, source = "netem")]
    pub unit: LossUnit,
    /// Probability that a packet is held back for `reorder-delay`, so that others overtake it.
    #[param(default = 0.0, range = (0.0, 1.0), source = NONE)]
    pub reorder: f64,
    /// The additional delay of a packet that is held back.
    #[param(default = Duration::ZERO, range = (Duration::ZERO, LONGEST), source = NONE)]
    pub reorder_delay: Duration,
    /// The variation of the propagation delay; at most the link's delay.
    #[param(default = Duration::ZERO, range = (Duration::ZERO, LONGEST), source = NONE)]
    pub jitter: Duration,
    /// The distribution of the delay: uniform within `jitter` of the link's delay, or normal with this standard deviation.
    #[param(default = JitterDistribution::Uniform, source = "netem")]
    pub jitter_distribution: JitterDistribution,
    /// A packet with less jitter may overtake one with more.
    #[param(default = false, source = "a link is a FIFO; netem on its own reorders")]
    pub jitter_reorders: bool,
}

/// Unit of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum LossUnit {
    /// A whole packet.
    Packet,
    /// A cell of ATM.
    Cell,
}

/// Distribution of the jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum JitterDistribution {
    /// Uniform: the delay plus or minus up to the jitter.
    Uniform,
    /// Normal: the jitter is the standard deviation. A delay below 0 becomes 0.
    Normal,
}

const NONE: &str = "no impairment";

const LONGEST: Duration = Duration::from_secs(10);

/// Counters of an impairment within the measuring window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentCounts {
    /// Packets lost on the wire.
    pub lost: u64,
    /// Packets that were overtaken by one that was sent later.
    pub reordered: u64,
}

/// Fate of a packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The packet is lost.
    Lost,
    /// The packet reaches the other end.
    Arrives {
        /// Time of arrival.
        at: Instant,
        /// The number of packets that it overtakes and that none had overtaken before.
        overtakes: u64,
    },
}

/// The impairment of one direction of a link: the model at work.
///
/// It has a random stream for each of loss, reordering and jitter, so that one does not change the draws of another.
#[derive(Clone, Debug)]
pub struct Impairment {
    delay: Duration,
    loss: Loss,
    reorder: Probability,
    reorder_delay: Duration,
    jitter: Duration,
    distribution: JitterDistribution,
    in_order: bool,
    /// The latest arrival so far, without packets that are held back.
    last: Instant,
    /// Arrivals of packets on the wire that none has overtaken, in order. Empty if the order is kept.
    on_the_wire: VecDeque<Instant>,
    keeps_order: bool,
    streams: [RandomStream; 3],
}

/// The model of loss.
#[derive(Clone, Copy, Debug)]
enum Loss {
    Bernoulli(Probability),
    GilbertElliott { leave: [Probability; 2], lost: [Probability; 2], bad: bool },
}

fn check(params: &ImpairmentParams) -> Result<(), ParameterError> {
    let ImpairmentParams { loss, to_bad, to_good, loss_in_bad, loss_in_good, .. } = *params;
    let wrong = |name, value: f64, allowed| Err(ParameterError::new(name, value, allowed));
    if to_bad > 0.0 && loss > 0.0 {
        return wrong("loss", loss, "0 with to-bad: a link has one model of loss");
    }
    let usual = ImpairmentParams::default();
    let given = [to_good, loss_in_bad, loss_in_good];
    if to_bad <= 0.0 && given != [usual.to_good, usual.loss_in_bad, usual.loss_in_good] {
        return wrong("to-bad", to_bad, "above 0 with to-good, loss-in-bad or loss-in-good");
    }
    let (reorder, late) = (params.reorder, params.reorder_delay);
    if reorder > 0.0 && late.is_zero() {
        return Err(ParameterError::new("reorder-delay", late, "above 0 with reorder"));
    }
    if reorder <= 0.0 && !late.is_zero() {
        return wrong("reorder", reorder, "above 0 with reorder-delay");
    }
    if params.jitter_reorders && params.jitter.is_zero() {
        return Err(ParameterError::new("jitter", params.jitter, "above 0 with jitter-reorders"));
    }
    Ok(())
}

impl ImpairmentParams {
    /// Checks the parameters, and that the jitter suits a link of this delay.
    ///
    /// # Errors
    /// The parameter that is not allowed.
    pub fn validate_on(&self, delay: Duration) -> Result<(), ParameterError> {
        self.validate()?;
        if self.jitter > delay {
            let allowed = format!("at most the link's delay, {delay}");
            return Err(ParameterError::new("jitter", self.jitter, allowed));
        }
        Ok(())
    }

    /// Checks that the unit of loss suits a link, which has cells or not.
    ///
    /// # Errors
    /// When the unit is a cell and the link has none.
    pub fn validate_unit(&self, has_cells: bool) -> Result<(), ParameterError> {
        if self.unit == LossUnit::Cell && !has_cells {
            return Err(ParameterError::new("unit", "cell", "packet on a link without aal5"));
        }
        Ok(())
    }

    /// Returns whether packets always arrive in the order in which they were sent.
    pub const fn keeps_order(&self) -> bool {
        self.reorder <= 0.0 && !self.jitter_reorders
    }

    /// The share of packets that find the link in the bad state (Gilbert-Elliott), in the long run.
    fn share_of_bad(&self) -> f64 {
        self.to_bad / (self.to_bad + self.to_good)
    }
}

impl Impairment {
    /// The impairment of the link called `link`, whose propagation delay is `delay`.
    ///
    /// # Errors
    /// If a parameter is not allowed.
    pub fn new(
        params: &ImpairmentParams,
        delay: Duration,
        streams: Streams,
        link: &str,
    ) -> Result<Self, ParameterError> {
        params.validate_on(delay)?;
        let mut streams = ["wire-loss", "wire-reorder", "wire-jitter"].map(|what| streams.stream(link, what));
        let loss = if params.to_bad > 0.0 {
            let leave = [params.to_bad, params.to_good].map(Probability::clamped);
            let lost = [params.loss_in_good, params.loss_in_bad].map(Probability::clamped);
            let bad = streams[0].chance(Probability::clamped(params.share_of_bad()));
            Loss::GilbertElliott { leave, lost, bad }
        } else {
            Loss::Bernoulli(Probability::clamped(params.loss))
        };
        Ok(Self {
            delay,
            loss,
            reorder: Probability::clamped(params.reorder),
            reorder_delay: params.reorder_delay,
            jitter: params.jitter,
            distribution: params.jitter_distribution,
            in_order: !params.jitter_reorders,
            last: Instant::ZERO,
            on_the_wire: VecDeque::new(),
            keeps_order: params.keeps_order(),
            streams,
        })
    }

    /// Takes a packet whose last bit leaves at `departs`, which is not before that of the previous packet.
    pub fn send(&mut self, departs: Instant) -> Fate {
        self.send_units(departs, 1)
    }

    /// Takes a packet of so many units of loss, each of which may be lost, and the packet with it.
    pub fn send_units(&mut self, departs: Instant, units: u32) -> Fate {
        // All is drawn for a lost packet, too, so that loss does not change the delays of the others.
        let late = self.streams[1].chance(self.reorder);
        let mut at = departs + self.draw_delay();
        if self.loss.takes(&mut self.streams[0], units) {
            return Fate::Lost;
        }
        if self.in_order {
            at = at.max(self.last);
            self.last = at;
        }
        if late {
            at += self.reorder_delay;
        }
        Fate::Arrives { at, overtakes: self.overtake(departs, at) }
    }

    fn draw_delay(&mut self) -> Duration {
        if self.jitter.is_zero() {
            return self.delay;
        }
        let stream = &mut self.streams[2];
        let share = match self.distribution {
            JitterDistribution::Uniform => 2.0 * stream.uniform() - 1.0,
            JitterDistribution::Normal => StandardNormal.sample(stream),
        };
        if share < 0.0 {
            self.delay.saturating_sub(self.jitter.mul_f64(-share))
        } else {
            self.delay + self.jitter.mul_f64(share)
        }
    }

    /// Puts a packet on the wire. Returns the number of packets that it is the first to overtake.
    fn overtake(&mut self, departs: Instant, arrives: Instant) -> u64 {
        if self.keeps_order {
            return 0;
        }
        let wire = &mut self.on_the_wire;
        while wire.front().is_some_and(|first| *first <= departs) {
            wire.pop_front();
        }
        let before = wire.len();
        while wire.back().is_some_and(|last| *last > arrives) {
            wire.pop_back();
        }
        let overtaken = before - wire.len();
        wire.push_back(arrives);
        overtaken as u64
    }
}

impl Loss {
    /// Draws whether one of the next units is lost.
    fn takes(&mut self, stream: &mut RandomStream, units: u32) -> bool {
        match self {
            Self::Bernoulli(p) if units == 1 => stream.chance(*p),
            // 1 - (1 - p)^n, exact for a small p.
            Self::Bernoulli(p) => {
                let any = -(f64::from(units) * (-p.get()).ln_1p()).exp_m1();
                stream.chance(Probability::clamped(any))
            }
            Self::GilbertElliott { leave, lost, bad } => {
                let mut is_lost = false;
                for _ in 0..units {
                    is_lost |= stream.chance(lost[usize::from(*bad)]);
                    *bad ^= stream.chance(leave[usize::from(*bad)]);
                }
                is_lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DELAY: Duration = Duration::from_millis(50);
    const SPACING: Duration = Duration::from_millis(1);

    fn impairment(params: &ImpairmentParams, seed: u64) -> Impairment {
        Impairment::new(params, DELAY, Streams::new(seed), "a->b").unwrap()
    }

    /// The fates of `n` packets, one every [`SPACING`], by the time of departure.
    fn send(params: &ImpairmentParams, n: u64) -> Vec<(Instant, Fate)> {
        let mut impairment = impairment(params, 1);
        let departures = (1..=n).map(|number| Instant::ZERO + SPACING * number);
        departures.map(|departs| (departs, impairment.send(departs))).collect()
    }

    /// The share of packets lost, the mean length of a run of losses, and the number of runs.
    fn losses(fates: &[(Instant, Fate)]) -> (f64, f64, f64) {
        let lost: Vec<bool> = fates.iter().map(|(_, fate)| *fate == Fate::Lost).collect();
        let count = lost.iter().filter(|lost| **lost).count() as f64;
        let bursts = lost.windows(2).filter(|two| !two[0] && two[1]).count() as f64;
        (count / lost.len() as f64, count / bursts, bursts)
    }

    fn overtaken(fates: &[(Instant, Fate)]) -> u64 {
        fates
            .iter()
            .map(|(_, fate)| if let Fate::Arrives { overtakes, .. } = fate { *overtakes } else { 0 })
            .sum()
    }

    /// The mean and the standard deviation of the delays, ms.
    fn delays(fates: &[(Instant, Fate)]) -> (f64, f64) {
        let delays: Vec<f64> = fates
            .iter()
            .filter_map(|(departs, fate)| match fate {
                Fate::Arrives { at, .. } => Some((*at - *departs).as_secs_f64() * 1e3),
                Fate::Lost => None,
            })
            .collect();
        let n = delays.len() as f64;
        let mean = delays.iter().sum::<f64>() / n;
        (mean, (delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    /// The tolerance of every statistical test: five standard errors.
    fn within(measured: f64, expected: f64, standard_error: f64) {
        assert!(
            (measured - expected).abs() < 5.0 * standard_error,
            "{measured} instead of {expected}, standard error {standard_error}"
        );
    }

    #[test]
    fn bernoulli_losses_have_their_share_and_no_memory() {
        let params = ImpairmentParams { loss: 0.02, ..ImpairmentParams::default() };
        let n = 500_000;
        let (share, burst, bursts) = losses(&send(&params, n));
        within(share, 0.02, (0.02 * 0.98 / n as f64).sqrt());
        within(burst, 1.0 / 0.98, (0.02_f64.sqrt() / 0.98) / bursts.sqrt());
    }

    #[test]
    fn gilbert_elliott_losses_have_their_share_and_their_bursts() {
        for (to_bad, to_good, loss_in_bad) in [(0.01, 0.3, 1.0), (0.01, 0.3, 0.8), (0.002, 0.05, 0.9)] {
            let params = ImpairmentParams { to_bad, to_good, loss_in_bad, ..ImpairmentParams::default() };
            let n = 2_000_000;
            let (share, burst, bursts) = losses(&send(&params, n));
            let expected = to_bad / (to_bad + to_good) * loss_in_bad;
            // States are correlated from packet to packet by 1 - p - r, which widens the error.
            let correlation = 1.0 - to_bad - to_good;
            let inflation = (1.0 + correlation) / (1.0 - correlation);
            within(share, expected, (expected * (1.0 - expected) * inflation / n as f64).sqrt());
            // The length is geometric.
            let another = (1.0 - to_good) * loss_in_bad;
            within(burst, 1.0 / (1.0 - another), another.sqrt() / (1.0 - another) / bursts.sqrt());
        }
    }

    #[test]
    fn a_packet_is_lost_if_one_of_its_cells_is() {
        let n = 200_000;
        let share = |params: &ImpairmentParams| {
            let mut impairment = impairment(params, 1);
            let departures = (1..=n).map(|number| Instant::ZERO + SPACING * number);
            let lost =
                departures.filter(|departs| impairment.send_units(*departs, 191) == Fate::Lost).count();
            lost as f64 / n as f64
        };
        let params = ImpairmentParams { loss: 1e-4, unit: LossUnit::Cell, ..ImpairmentParams::default() };
        let expected = 1.0 - (1.0 - 1e-4_f64).powi(191);
        assert!((expected - 0.0189).abs() < 5e-5, "{expected}");
        within(share(&params), expected, (expected * (1.0 - expected) / n as f64).sqrt());
        // The same share of cells in bursts of ten hits fewer packets: about one for each burst, and the second of two
        // that a burst joins.
        let bursts = ImpairmentParams { loss: 0.0, to_bad: 1e-5, to_good: 0.1, ..params };
        let per_packet = 1.0 - (1.0 - 1e-5_f64).powi(191);
        let joined = share(&bursts) / per_packet;
        assert!((1.0..1.15).contains(&joined), "{joined}");
    }

    #[test]
    fn both_states_may_lose() {
        let (loss_in_bad, loss_in_good) = (0.5, 0.01);
        let params = ImpairmentParams {
            to_bad: 0.1,
            to_good: 0.4,
            loss_in_bad,
            loss_in_good,
            ..ImpairmentParams::default()
        };
        let n = 1_000_000;
        let expected = 0.2 * 0.5 + 0.8 * 0.01;
        let inflation = 1.5 / 0.5;
        within(
            losses(&send(&params, n)).0,
            expected,
            (expected * (1.0 - expected) * inflation / n as f64).sqrt(),
        );
    }

    /// The state at the start is drawn, so that the first packet is lost as often as any other.
    #[test]
    fn the_first_packet_is_lost_with_the_mean_loss() {
        let params = ImpairmentParams { to_bad: 0.1, to_good: 0.3, ..ImpairmentParams::default() };
        let n = 40_000;
        let first = |seed| impairment(&params, seed).send(Instant::ZERO) == Fate::Lost;
        let lost = (0..n).filter(|seed| first(*seed)).count() as f64;
        within(lost / n as f64, 0.25, (0.25 * 0.75 / n as f64).sqrt());
    }

    /// A packet that is held back for 3.5 spacings is overtaken unless the three behind it are held back, too.
    #[test]
    fn held_back_packets_are_reordered() {
        let (p, late) = (0.1, SPACING * 7 / 2);
        let params = ImpairmentParams { reorder: p, reorder_delay: late, ..ImpairmentParams::default() };
        let n = 500_000;
        let expected = p * (1.0 - p.powi(3));
        let share = overtaken(&send(&params, n)) as f64 / n as f64;
        within(share, expected, (expected * (1.0 - expected) / n as f64).sqrt());
    }

    /// With a jitter of one spacing only the next packet can overtake: the difference of two jitters, which is triangular, must
    /// exceed the spacing, with a probability of 1/8.
    #[test]
    fn jitter_that_reorders_has_its_share() {
        let params =
            ImpairmentParams { jitter: SPACING, jitter_reorders: true, ..ImpairmentParams::default() };
        let n = 500_000;
        let share = overtaken(&send(&params, n)) as f64 / n as f64;
        // Neighbours exclude each other more often than not; independent draws bound the error.
        within(share, 0.125, (0.125 * 0.875 / n as f64).sqrt());
    }

    #[test]
    fn jitter_has_its_mean_and_deviation() {
        let n = 200_000_u64;
        for (jitter_distribution, deviation, kurtosis) in
            [(JitterDistribution::Uniform, 5.0 / 3.0_f64.sqrt(), 1.8), (JitterDistribution::Normal, 5.0, 3.0)]
        {
            let params = ImpairmentParams {
                jitter: Duration::from_millis(5),
                jitter_distribution,
                jitter_reorders: true,
                ..ImpairmentParams::default()
            };
            let (mean, measured) = delays(&send(&params, n));
            within(mean, 50.0, deviation / (n as f64).sqrt());
            within(measured, deviation, deviation * ((kurtosis - 1.0) / (4.0 * n as f64)).sqrt());
        }
    }

    /// A normal delay of 50 ms with a jitter of 50 ms would be below 0 for 16 % of the packets.
    #[test]
    fn a_delay_is_never_negative() {
        let params = ImpairmentParams {
            jitter: DELAY,
            jitter_distribution: JitterDistribution::Normal,
            jitter_reorders: true,
            ..ImpairmentParams::default()
        };
        let fates = send(&params, 10_000);
        let at_once =
            fates.iter().filter(|(departs, fate)| matches!(fate, Fate::Arrives { at, .. } if at == departs));
        within(at_once.count() as f64 / 1e4, 0.158_655, (0.158_655_f64 * 0.841_345 / 1e4).sqrt());
    }

    #[test]
    fn loss_changes_no_delay_and_jitter_no_loss() {
        let jitter = Duration::from_millis(5);
        let plain = ImpairmentParams { jitter, jitter_reorders: true, ..ImpairmentParams::default() };
        let lossy = ImpairmentParams { loss: 0.3, ..plain.clone() };
        let only_lossy = ImpairmentParams { loss: 0.3, ..ImpairmentParams::default() };
        let (plain, lossy, only_lossy) = (send(&plain, 5000), send(&lossy, 5000), send(&only_lossy, 5000));
        let arrival = |fate: &Fate| if let Fate::Arrives { at, .. } = fate { Some(*at) } else { None };
        for ((plain, lossy), only) in plain.iter().zip(&lossy).zip(&only_lossy) {
            assert_eq!(lossy.1 == Fate::Lost, only.1 == Fate::Lost);
            assert!(lossy.1 == Fate::Lost || arrival(&lossy.1) == arrival(&plain.1));
        }
    }

    #[test]
    fn parameters_that_contradict_are_refused() {
        let usual = ImpairmentParams::default;
        let late = Duration::from_millis(1);
        for (params, parameter) in [
            (ImpairmentParams { loss: 1.1, ..usual() }, "loss"),
            (ImpairmentParams { loss: 0.1, to_bad: 0.1, ..usual() }, "loss"),
            (ImpairmentParams { to_good: 0.1, ..usual() }, "to-bad"),
            (ImpairmentParams { to_bad: 0.1, to_good: 0.0, ..usual() }, "to-good"),
            (ImpairmentParams { reorder: 0.1, ..usual() }, "reorder-delay"),
            (ImpairmentParams { reorder_delay: late, ..usual() }, "reorder"),
            (ImpairmentParams { jitter_reorders: true, ..usual() }, "jitter"),
            (ImpairmentParams { jitter: DELAY + late, ..usual() }, "jitter"),
        ] {
            assert_eq!(params.validate_on(DELAY).unwrap_err().parameter, parameter, "{params:?}");
        }
        assert_eq!(usual().validate_on(Duration::ZERO), Ok(()));
    }

    /// Any impairment. `order` makes it one that keeps the order.
    fn impairments(order: bool) -> impl Strategy<Value = ImpairmentParams> {
        let probability = || 0.0..=1.0;
        let ms = |most: u64| (1..=most).prop_map(Duration::from_millis);
        (probability(), probability(), ms(40), prop::option::of(ms(50)), any::<bool>(), any::<bool>())
            .prop_map(move |(loss, reorder, late, jitter, normal, jitter_reorders)| {
                let held_back = !order && reorder > 0.0;
                ImpairmentParams {
                    loss,
                    reorder: if held_back { reorder } else { 0.0 },
                    reorder_delay: if held_back { late } else { Duration::ZERO },
                    jitter: jitter.unwrap_or(Duration::ZERO),
                    jitter_distribution: if normal {
                        JitterDistribution::Normal
                    } else {
                        JitterDistribution::Uniform
                    },
                    jitter_reorders: !order && jitter.is_some() && jitter_reorders,
                    ..ImpairmentParams::default()
                }
            })
    }

    fn arrivals(params: &ImpairmentParams, gaps: &[u64], seed: u64) -> (Vec<Instant>, u64) {
        let mut impairment = impairment(params, seed);
        let (mut departs, mut found, mut overtaken) = (Instant::ZERO, Vec::new(), 0);
        for gap in gaps {
            departs += Duration::from_micros(*gap);
            if let Fate::Arrives { at, overtakes } = impairment.send(departs) {
                assert!(at >= departs);
                found.push(at);
                overtaken += overtakes;
            }
        }
        (found, overtaken)
    }

    proptest! {
        #[test]
        fn order_is_kept_without_reordering(
            params in impairments(true), gaps in prop::collection::vec(0u64..20_000, 1..200), seed: u64,
        ) {
            prop_assert!(params.keeps_order());
            let (arrivals, overtaken) = arrivals(&params, &gaps, seed);
            prop_assert!(arrivals.is_sorted());
            prop_assert_eq!(overtaken, 0);
        }

        /// A packet is reordered if any that was sent after it arrives before it.
        #[test]
        fn reordered_packets_are_counted_as_they_arrive(
            params in impairments(false), gaps in prop::collection::vec(0u64..20_000, 1..200), seed: u64,
        ) {
            let (arrivals, overtaken) = arrivals(&params, &gaps, seed);
            let is_overtaken =
                |(i, at): &(usize, &Instant)| arrivals[i + 1..].iter().any(|later| later < *at);
            prop_assert_eq!(overtaken, arrivals.iter().enumerate().filter(is_overtaken).count() as u64);
        }

        #[test]
        fn the_seed_decides(
            params in impairments(false), gaps in prop::collection::vec(0u64..20_000, 1..50), seed: u64,
        ) {
            prop_assert_eq!(arrivals(&params, &gaps, seed), arrivals(&params, &gaps, seed));
        }
    }
}

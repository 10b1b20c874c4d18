//! Impairments of a link: random loss, reordering and jitter.
//!
//! They take place on the wire, behind the queue. A packet has left the queue and has occupied the link for its transmission
//! time before it is lost, so neither the queue nor the AQM sees the loss. Each direction of a link has its own
//! impairment.
//!
//! The models are those of Linux's netem, with these differences: the state of the Gilbert-Elliott model is drawn from its
//! stationary distribution at the start, so that its mean loss holds from the first packet on (netem starts in the good
//! state); a reordered packet is late (with netem it is early); jitter keeps the order of packets unless it is told
//! otherwise; and there is no correlation between draws.
//!
//! # Loss
//! Either each packet is lost with probability `loss` (Bernoulli), or the link has a good and a bad state
//! (Gilbert 1960, Elliott 1963). At each packet it is lost with the probability of the present state, and then the state changes with
//! the probability `to-bad` (p) or `to-good` (r). With netem's `loss gemodel p r 1-h 1-k`, `loss-in-bad` is 1-h and `loss-in-good` is
//! 1-k. The share of the bad state is p / (p + r). If nothing is lost in the good state, the mean number of packets that are
//! lost in a row is 1 / (1 - (1 - r)(1 - h)): 1 / r if everything is lost in the bad one.
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

/// What a link does to packets on the wire, one direction.
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

/// How jitter is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum JitterDistribution {
    /// Uniform: the delay plus or minus up to the jitter.
    Uniform,
    /// Normal: the jitter is the standard deviation. A delay below 0 becomes 0.
    Normal,
}

const NONE: &str = "no impairment";

const LONGEST: Duration = Duration::from_secs(10);

/// What an impairment has done within the measuring window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairmentCounts {
    /// Packets lost on the wire.
    pub lost: u64,
    /// Packets that were overtaken by one that was sent later.
    pub reordered: u64,
}

/// What becomes of a packet on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is lost.
    Lost,
    /// It reaches the other end.
    Arrives {
        /// When.
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

    /// Whether packets always arrive in the order in which they were sent.
    pub const fn keeps_order(&self) -> bool {
        self.reorder <= 0.0 && !self.jitter_reorders
    }

    /// The share of the packets that are lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        if self.to_bad <= 0.0 {
            return self.loss;
        }
        let bad = self.share_of_bad();
        bad * self.loss_in_bad + (1.0 - bad) * self.loss_in_good
    }

    /// The mean number of packets that are lost in a row; `None` where both states lose packets, or none does.
    pub fn mean_burst(&self) -> Option<f64> {
        if self.to_bad <= 0.0 {
            return (self.loss > 0.0).then(|| 1.0 / (1.0 - self.loss));
        }
        let another = (1.0 - self.to_good) * self.loss_in_bad;
        (self.loss_in_good <= 0.0 && self.loss_in_bad > 0.0).then(|| 1.0 / (1.0 - another))
    }

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
        // All is drawn for a lost packet, too, so that loss does not change the delays of the others.
        let late = self.streams[1].chance(self.reorder);
        let mut at = departs + self.draw_delay();
        if self.loss.takes(&mut self.streams[0]) {
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

    /// Puts a packet on the wire. Returns how many packets it is the first to overtake.
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
    /// Draws whether the next packet is lost.
    fn takes(&mut self, stream: &mut RandomStream) -> bool {
        match self {
            Self::Bernoulli(p) => stream.chance(*p),
            Self::GilbertElliott { leave, lost, bad } => {
                let is_lost = stream.chance(lost[usize::from(*bad)]);
                *bad ^= stream.chance(leave[usize::from(*bad)]);
                is_lost
            }
        }
    }
}

//! The check that TSQ charges packets that overtake, over any law.
//!
//! TSQ raises a law's probability p for a packet that overtakes others, but a p of 0 stays 0 and a p of 1 stays 1. The claim
//! therefore follows from the law's answers:
//!
//! - A law that answered anything between 0 and 1 is graded. Of the packets that overtake, a larger share is hit.
//! - A law that answered nothing but 0 and 1 is not. A packet is hit exactly when the answer is 1, whether it overtakes or not.

use super::{Link, RATE};
use crate::external::DynLaw;
use crate::{
    AqmSpec, Arrival, Backlog, DropProbability, DropReason, Limit, Readings, Tsq, TsqParams, Verdict,
};
use cutline_units::{Duration, Instant, Probability, Rate};
use std::cell::Cell;
use std::rc::Rc;

/// One arrival that the limit admits.
#[derive(Clone, Copy, Debug)]
struct Sample {
    overtakes: bool,
    /// The law's answer.
    p: Probability,
    hit: bool,
}

/// Under TSQ, packets that overtake are hit more often than the others, with the parameters of
/// [`Aqm::moderate_params`](crate::Aqm::moderate_params). Over a law that answers nothing but 0 and 1, each packet gets that
/// answer. Disciplines and laws that never drop early pass.
pub fn packets_that_overtake_have_a_higher_probability(aqm: &AqmSpec) {
    let name = aqm.name();
    if let Some(samples) = samples(name)
        && let Err(why) = judge(&samples)
    {
        panic!("{name} under TSQ: {why}");
    }
}

/// Returns whether the law of that name answers probabilities between 0 and 1, so that TSQ can raise them.
/// `None` for a discipline, and for a law that never drops early.
pub fn is_graded(name: &str) -> Option<bool> {
    samples(name).map(|samples| samples.iter().any(between))
}

/// Returns the arrivals of 27 s of overload by a fifth, in which every tenth packet overtakes; `None` as for [`is_graded`].
fn samples(name: &str) -> Option<Vec<Sample>> {
    let aqm = AqmSpec::moderate(name).expect("the moderate parameters are allowed");
    let law = aqm.boxed_law(RATE).expect("the moderate parameters are allowed")?;
    law.probability()?;
    let answer = Rc::new(Cell::new(Probability::ZERO));
    let law = Observed { law, answer: Rc::clone(&answer) };
    let tsq = Tsq::new(&TsqParams::default(), Limit::Packets(400), true, RATE, law);
    let mut link = Link::new(tsq.expect("the defaults of TSQ are allowed"), RATE);
    let mut samples = Vec::new();
    for i in 0..60_000_u32 {
        let overtakes = i % 10 == 3;
        let verdict = link.arrive(1000, if overtakes { 1 } else { 16 }, false);
        if verdict != Verdict::Drop(DropReason::Overflow) {
            samples.push(Sample { overtakes, p: answer.get(), hit: verdict != Verdict::Pass });
        }
        link.wait(Duration::from_micros(450));
    }
    Some(samples)
}

fn between(sample: &Sample) -> bool {
    sample.p != Probability::ZERO && sample.p != Probability::ONE
}

/// Returns an error that describes the fault in the order of the packets.
fn judge(samples: &[Sample]) -> Result<(), String> {
    let share = |overtakes| {
        let of = |hit: &dyn Fn(&Sample) -> bool| {
            samples.iter().filter(|one| one.overtakes == overtakes && hit(one)).count() as f64
        };
        of(&|one| one.hit) / of(&|_| true).max(1.0)
    };
    let (bulk, overtaking) = (share(false), share(true));
    if !(0.005..=0.5).contains(&bulk) {
        return Err(format!(
            "in an overload by a fifth 0.5 to 50 % of the packets should be hit, but {:.2} % were: \
             `Aqm::moderate_params` should return parameters with which the law acts on a link of 15 Mbit/s",
            bulk * 100.0
        ));
    }
    if samples.iter().any(between) {
        let higher = overtaking > 1.3 * bulk;
        return if higher {
            Ok(())
        } else {
            Err(format!("{overtaking} of the packets that overtake are hit, and {bulk} of the others"))
        };
    }
    let wrong = samples.iter().position(|one| one.hit != (one.p == Probability::ONE));
    wrong.map_or(Ok(()), |at| {
        Err(format!("packet {at} is treated against the law's answer: {:?}", samples[at]))
    })
}

/// A law whose last answer can be read.
struct Observed {
    law: Box<dyn DynLaw>,
    answer: Rc<Cell<Probability>>,
}

#[deny(clippy::missing_trait_methods)]
impl DropProbability for Observed {
    fn advance(&mut self, now: Instant, backlog: Backlog) {
        self.law.advance(now, backlog);
    }

    fn arrive(&mut self, now: Instant, arrival: Arrival, backlog: Backlog) -> Probability {
        let p = self.law.arrive(now, arrival, backlog);
        self.answer.set(p);
        p
    }

    fn probability(&self) -> Option<Probability> {
        self.law.probability()
    }

    fn may_mark(&self) -> bool {
        self.law.may_mark()
    }

    fn readings(&self) -> Readings {
        self.law.readings()
    }

    fn judged(&mut self, now: Instant, arrival: Arrival, verdict: Verdict) {
        self.law.judged(now, arrival, verdict);
    }

    fn departed(&mut self, now: Instant, size: u32, arrived: Instant, backlog: Backlog) {
        self.law.departed(now, size, arrived, backlog);
    }

    fn reorders(&mut self) {
        self.law.reorders();
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.law.set_rate(now, rate);
    }

    fn reset(&mut self, now: Instant) {
        self.law.reset(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand arrivals, of which every tenth overtakes: their answers, and whether they are hit.
    fn arrivals(of: impl Fn(usize, bool) -> (f64, bool)) -> Vec<Sample> {
        let each = |i| {
            let overtakes = i % 10 == 3;
            let (p, hit) = of(i, overtakes);
            Sample { overtakes, p: Probability::clamped(p), hit }
        };
        (0..1000).map(each).collect()
    }

    fn complaint(samples: &[Sample]) -> String {
        judge(samples).expect_err("it should be refused")
    }

    #[test]
    fn a_graded_law_is_checked_by_the_higher_share() {
        // Every 7th packet is hit, and half of those that overtake.
        let charged = arrivals(|i, overtakes| (0.1, i % 7 == 0 || (overtakes && i % 20 == 3)));
        assert_eq!(judge(&charged), Ok(()));
        let alike = arrivals(|i, _| (0.1, i % 7 == 0));
        assert!(complaint(&alike).contains("of the packets that overtake are hit"), "{}", complaint(&alike));
    }

    #[test]
    fn one_answer_between_0_and_1_makes_a_law_graded() {
        let nearly =
            arrivals(|i, _| (if i == 500 { 0.5 } else { f64::from(u8::from(i % 7 == 0)) }, i % 7 == 0));
        assert!(
            complaint(&nearly).contains("of the packets that overtake are hit"),
            "{}",
            complaint(&nearly)
        );
    }

    #[test]
    fn a_law_of_0_and_1_is_checked_by_its_verdicts() {
        let obeyed = arrivals(|i, _| (f64::from(u8::from(i % 7 == 0)), i % 7 == 0));
        assert_eq!(judge(&obeyed), Ok(()));
        let one_more = arrivals(|i, _| (f64::from(u8::from(i % 7 == 0)), i % 7 == 0 || i == 503));
        assert!(
            complaint(&one_more).starts_with("packet 503 is treated against"),
            "{}",
            complaint(&one_more)
        );
    }

    #[test]
    fn a_law_that_does_not_act_shows_nothing() {
        for share in [0, 1] {
            let idle = arrivals(|_, _| (f64::from(share), share == 1));
            assert!(complaint(&idle).contains("moderate_params"), "{}", complaint(&idle));
        }
    }
}

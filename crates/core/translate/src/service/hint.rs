//! Delay hints: a level from 1, as little delay as possible, to 16, throughput only (TSQ section 3.1).
//!
//! **The level.** A level means 5 ms in a queue, as in RED-Worcester's experiments. A queue of the path may use one share
//! of the delay budget, and neither more than `jitter` nor more than the time that `max-gap` leaves between two messages. The
//! level is the largest whose delay is within that, at least 1.
//!
//! **Cost.** TSQ drops a packet that cuts in line with p' = ((l + q) / (l + q'))^2 p instead of p (TSQ eq. 5), with
//! l = 40 ms. With the whole queue at level 16, q = 80 ms and q' = 5 ms times the level, so level 1 is charged 7.1 times p, level 6
//! 2.9 times. The level does not go so low that p' exceeds the acceptable loss. If delay and loss contradict each other, loss
//! decides: a late message may still be of use.
//!
//! Worked: audio (400 ms) over the TSQ paper's path (round trip 300 ms) has a share of (400 - 150) / 8 = 31.25 ms: level 6, the best in
//! TSQ figures 10 and 13. If 2 % are lost there, as with PI, and 3 % are acceptable, the charge may be 1.5: level 12.

use super::{NetworkTranslator, Traffic};
use crate::decision::{Chosen, Decisions};
use crate::settings::NetworkSettings;
use crate::stream::Stream;
use cutline_quality::spec::CapacityProfile;
use cutline_units::{Dscp, DscpPool2, Duration, HintBits, HintBudget, HintCodec as _};
use std::fmt::Write as _;

/// Rest of a round trip in TSQ (TSQ section 3.3).
const L: Duration = Duration::from_millis(40);
/// The largest share of packets that TCP may have to repeat if nothing may be lost: each costs a round trip.
const REPEATED: f64 = 0.01;

pub(super) struct Hint;

impl NetworkTranslator for Hint {
    fn name(&self) -> &'static str {
        "hint"
    }

    fn title(&self) -> &'static str {
        "delay hints in the packets, for routers with TSQ"
    }

    fn settings(&self, traffic: &Traffic<'_>, log: &mut Decisions) -> NetworkSettings {
        if let Some(why) = traffic.unmarkable() {
            log.network("hint", Chosen::<cutline_units::Hint>::leave("", why));
            return NetworkSettings::default();
        }
        let hint = log.network("hint", level(traffic));
        let dscp = hint.and_then(|hint| log.network("dscp", code_point(hint)));
        NetworkSettings { hint, dscp, reservation: None }
    }
}

fn level(traffic: &Traffic<'_>) -> Chosen<cutline_units::Hint> {
    let largest = HintBits::PAPER.largest();
    let stated = [CapacityProfile::Scavenger, CapacityProfile::CapacitySeeking];
    if let Some(profile) = traffic.profile.filter(|profile| stated.contains(profile)) {
        let why = format!("the application states the profile {profile}: throughput only");
        return Chosen::set(largest, "RFC 9622 section 8.1.6", why);
    }
    let stream = Stream { spec: traffic.marked(), ..traffic.ends.send };
    let Some((patience, because)) = patience(&stream) else {
        return Chosen::set(
            largest,
            "TSQ section 3.1",
            "no delay, jitter or gap is demanded: throughput only",
        );
    };
    let step = HintBudget::STEP.as_nanos();
    let wanted = (patience.as_nanos() / step).clamp(1, u64::from(largest.level())) as u16;
    let (least, accepted) = least_level(&stream);
    let level = wanted.max(least);
    let mut why = format!("a queue may take {patience}, {because}; a level stands for {}", HintBudget::STEP);
    let (loss, charge) = (stream.path.loss_ratio() * 100.0, charge(level));
    if least > wanted {
        let _ = write!(
            why,
            ". That is level {wanted}, but TSQ charges cutting in line with drops: with {loss} % lost at level 16, only from level \
             {level} on ({charge:.1} times that) at most {accepted:.3} % are lost"
        );
    } else {
        let _ = write!(why, ". TSQ charges level {level} up to {charge:.1} times the drops of level 16");
    }
    Chosen::set(cutline_units::Hint::from_level(level), "TSQ section 3", why)
}

/// Returns the acceptable waiting time of a packet in a queue with the reason; `None` if any time is
/// acceptable.
fn patience(stream: &Stream<'_>) -> Option<(Duration, String)> {
    let share = stream.budget().map(|budget| (budget.share, budget.because(stream.path)));
    let jitter = stream.spec.jitter.map(|jitter| (jitter, "the acceptable jitter".to_owned()));
    let gap = stream.spec.max_gap.map(|gap| {
        let between = stream.interval().unwrap_or_default();
        (gap.saturating_sub(between), format!("max-gap ({gap}) without the {between} between two messages"))
    });
    [share, jitter, gap].into_iter().flatten().min_by_key(|(time, _)| *time)
}

/// The smallest level whose charge the acceptable loss allows, and that loss, per cent of packets.
fn least_level(stream: &Stream<'_>) -> (u16, f64) {
    let packets = stream.spec.size.map_or(1, |size| stream.packets_of(size)) as f64;
    let accepted = match stream.spec.loss {
        Some(0.0) => REPEATED,
        // A message of several packets is lost with any of them.
        Some(percent) => percent / 100.0 / packets,
        None => 1.0,
    };
    let levels = HintBits::PAPER.levels();
    let least = (1..levels).find(|level| charge(*level) * stream.path.loss_ratio() <= accepted);
    (least.unwrap_or(levels), accepted * 100.0)
}

/// Returns the largest drop probability of a packet of this level, in multiples of p: (l + q)^2 / (l + q')^2,
/// TSQ eq. 5.
fn charge(level: u16) -> f64 {
    let delay = |level: u16| (L + HintBudget::STEP * u64::from(level)).as_secs_f64();
    (delay(HintBits::PAPER.levels()) / delay(level)).powi(2)
}

/// The code point of a level. The largest is that of unmarked packets, so they stay unmarked.
fn code_point(hint: cutline_units::Hint) -> Chosen<Dscp> {
    match DscpPool2.encode(hint).filter(|_| hint < HintBits::PAPER.largest()) {
        Some(dscp) => Chosen::set(
            dscp,
            "RFC 2474 section 6",
            "the code point of that level in pool 2: (level - 1) * 4 + 3",
        ),
        None => Chosen::leave("RFC 2474 section 4.1", "unmarked packets have level 16 in every router"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TSQ eq. 5 with l = 40 ms, q = 80 ms and q' = 5 ms a level.
    #[test]
    fn cutting_in_line_is_charged() {
        let worked = [(1, 7.11), (6, 2.94), (12, 1.44), (16, 1.0)];
        for (level, expected) in worked {
            assert!((charge(level) - expected).abs() < 0.005, "level {level}: {}", charge(level));
        }
    }

    #[test]
    fn a_level_is_the_step_of_red_worcester() {
        let queue = cutline_aqm::registry::describe().into_iter().find(|aqm| aqm.name == "red-worcester");
        let parameters = queue.expect("it is in the registry").parameters;
        let step = parameters.iter().find(|about| about.name == "step").expect("it has a step");
        assert_eq!(step.default, cutline_params::ParameterValue::Duration(HintBudget::STEP));
    }
}

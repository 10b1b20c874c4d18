//! The controller on hills that are known: a receiver that measures a quality by hint, with noise.

use super::*;
use cutline_units::Streams;
use proptest::prelude::*;

const BITS: HintBits = HintBits::PAPER;

/// A path whose one-way delay makes the quality of audio what the hill says, and a receiver that reports.
struct Bed {
    control: HintControl,
    now: Instant,
    noise: RandomStream,
    report: DeliveryReport,
    sent: u64,
    /// The share of packets lost, by hint.
    loss: fn(u16) -> f64,
}

/// Packets of 160 B that arrive in a second: audio's full rate.
const RATE: u64 = 100;
const SECOND: Duration = Duration::from_secs(1);

impl Bed {
    fn new(params: &HintParams, seed: u64) -> Self {
        let streams = Streams::new(seed);
        let control = streams.stream("flow", "hint");
        let control =
            HintControl::new(params, Class::Audio, Combination::Min, Instant::ZERO, control).unwrap();
        Self {
            control,
            now: Instant::ZERO,
            noise: streams.stream("path", "noise"),
            report: DeliveryReport::default(),
            sent: 0,
            loss: |_| 0.0,
        }
    }

    /// A second at the hint's quality, give or take `noise`.
    fn second(&mut self, hill: impl Fn(u16) -> f64, noise: f64) {
        let off = noise * (self.noise.uniform() * 2.0 - 1.0) * 3.0_f64.sqrt();
        let quality = (hill(self.control.hint().level()) + off).clamp(0.6, 0.97);
        // Only the delay is left to judge: Qd = 1.268 - 0.00192 d.
        let delay = Duration::from_secs_f64((1.268 - quality) / 1.92);
        self.now += SECOND;
        self.sent += RATE + self.lost();
        self.report.at = self.now;
        self.report.received += RATE;
        self.report.delivered_bytes += RATE * 160;
        self.report.delay += delay * RATE;
        self.control.on_report(self.now, &self.report, self.sent);
    }

    /// Packets lost until the second's have arrived.
    fn lost(&mut self) -> u64 {
        let loss = (self.loss)(self.control.hint().level());
        let mut lost = 0;
        let mut arrived = 0;
        while loss > 0.0 && arrived < RATE {
            if self.noise.uniform() < loss { lost += 1 } else { arrived += 1 }
        }
        lost
    }

    fn run(&mut self, seconds: u32, hill: impl Fn(u16) -> f64 + Copy, noise: f64) {
        (0..seconds).for_each(|_| self.second(hill, noise));
    }

    fn centre(&self) -> u16 {
        self.control.centre().level()
    }
}

/// The hill of the TSQ paper: steep to the left of its top, 0.011 a level to the right.
fn hill(top: u16) -> impl Fn(u16) -> f64 + Copy {
    move |level| {
        let off = f64::from(level) - f64::from(top);
        0.88 - if off > 0.0 { 0.011 * off } else { -0.02 * off }
    }
}

fn from(level: u16) -> HintParams {
    HintParams { start: Hint::from_level(level), ..HintParams::new(BITS) }
}

#[test]
fn without_noise_the_hint_reaches_the_maximum_from_either_end_and_stays() {
    for start in [1, 16] {
        for top in [3, 6, 10, 14] {
            let mut bed = Bed::new(&from(start), 1);
            bed.run(1200, hill(top), 0.0);
            assert!(bed.centre().abs_diff(top) <= 2, "from {start} to {}, the top is {top}", bed.centre());
        }
    }
}

/// In half a noisy hour, nine of ten end within 0.03 of the best quality.
#[test]
fn with_noise_the_hint_approaches_the_maximum() {
    for start in [1, 8, 16] {
        let near = |seed: &u64| {
            let mut bed = Bed::new(&from(start), *seed);
            bed.run(1800, hill(6), 0.06);
            hill(6)(6) - hill(6)(bed.centre()) < 0.03
        };
        let arrived = (0..100).filter(near).count();
        assert!(arrived >= 90, "{arrived} of 100 arrive from {start}");
    }
}

#[test]
fn the_hint_follows_a_moving_maximum() {
    let follows = |seed: &u64| {
        let mut bed = Bed::new(&from(16), *seed);
        bed.run(1500, hill(4), 0.03);
        let before = bed.centre();
        bed.run(1500, hill(12), 0.03);
        before <= 7 && bed.centre() >= 9
    };
    let following = (0..100).filter(follows).count();
    assert!(following >= 90, "{following} of 100 follow");
}

/// Quality falls by 0.1 at rest: the alarm comes within minutes, long before the next look.
#[test]
fn a_sudden_change_starts_new_trials() {
    let params =
        HintParams { rest: Duration::from_secs(3000), longest_rest: Duration::from_secs(3000), ..from(6) };
    let mut bed = Bed::new(&params, 3);
    bed.run(900, hill(6), 0.03);
    assert!(bed.control.is_at_rest());
    let trials = bed.control.stats().trials;
    bed.run(120, |level| hill(6)(level) - 0.1, 0.03);
    assert_eq!(bed.control.stats().alarms, 1);
    assert!(bed.control.stats().trials > trials);
}

#[test]
fn on_a_plateau_the_hint_stays_and_trials_become_rarer() {
    let mut bed = Bed::new(&from(9), 1);
    bed.run(600, |_| 0.9, 0.0);
    let (early, moves) = (bed.control.stats().trials, bed.control.stats().moves);
    bed.run(600, |_| 0.9, 0.0);
    assert_eq!((moves, bed.control.stats().moves, bed.centre()), (0, 0, 9));
    let late = bed.control.stats().trials - early;
    assert!(late < early, "{late} trials after {early}");
}

/// A plateau with noise is no hill: in an hour the centre hardly moves.
#[test]
fn on_a_noisy_plateau_the_hint_rarely_moves() {
    let moves = |seed| {
        let mut bed = Bed::new(&from(9), seed);
        bed.run(3600, |_| 0.85, 0.05);
        bed.control.stats().moves
    };
    let moves: u64 = (0..50).map(moves).sum();
    assert!(moves <= 150, "{} moves an hour", moves as f64 / 50.0);
}

#[test]
fn the_loss_of_every_packet_has_the_worst_quality() {
    let control = Bed::new(&from(4), 1).control;
    let later = DeliveryReport { at: Instant::ZERO + SECOND, ..DeliveryReport::default() };
    assert_eq!(control.judge(&DeliveryReport::default(), &later, 20).quality, 0.0);
    assert_eq!(control.judge(&DeliveryReport::default(), &later, 0).quality, 1.0);
}

/// 128 kbit/s at 150 ms with a fifth lost: Q = 0.98005, less twice 0.2.
#[test]
fn loss_counts_with_its_weight() {
    let report = DeliveryReport {
        at: Instant::ZERO + SECOND,
        received: 16,
        delivered_bytes: 16_000,
        delay: Duration::from_millis(150) * 16,
    };
    let judged = |loss_weight| {
        let control = Bed::new(&HintParams { loss_weight, ..from(4) }, 1).control;
        control.judge(&DeliveryReport::default(), &report, 20).quality
    };
    assert!((judged(0.0) - 0.98005).abs() < 1e-9);
    assert!((judged(2.0) - 0.58005).abs() < 1e-9);
}

/// A limit of 3 %, which hints below 8 exceed: 10 % at the top of the hill, 4.
fn costly(level: u16) -> f64 {
    (1.6 / f64::from(level).powi(2)).min(0.5)
}

#[test]
fn the_hint_keeps_the_limit_of_the_loss_and_the_goal_of_quality_does_not() {
    assert!((costly(8) - 0.025).abs() < 1e-9 && (costly(4) - 0.1).abs() < 1e-9);
    let end = |goal, start: u16, seed| {
        let mut bed = Bed::new(&HintParams { goal, ..from(start) }, seed);
        bed.loss = costly;
        bed.control.set_loss_limit(Some(0.03));
        bed.run(1800, hill(4), 0.03);
        bed.centre()
    };
    for start in [1, 8, 16] {
        let ends: Vec<u16> = (0..50).map(|seed| end(HintGoal::WithinLimit, start, seed)).collect();
        let kept = ends.iter().filter(|level| costly(**level) <= 0.03).count();
        assert!(kept >= 48, "from {start}: {ends:?}");
        let used = ends.iter().filter(|level| **level <= 12).count();
        assert!(used >= 45, "the quality within the limit is used, from {start}: {ends:?}");
        let pure = (0..50).filter(|seed| end(HintGoal::Quality, start, *seed) <= 6).count();
        assert!(pure >= 45, "from {start}: {pure} of 50 come near the top");
    }
}

/// A trial below the centre that loses too much ends with its first interval: 10 s, and 5 s to settle.
#[test]
fn a_trial_outside_the_limit_takes_one_interval() {
    for seed in 0..20 {
        let mut bed = Bed::new(&from(9), seed);
        bed.loss = |level| if level < 9 { 0.2 } else { 0.0 };
        bed.control.set_loss_limit(Some(0.03));
        let mut longest = 0;
        let mut outside = 0;
        for _ in 0..900 {
            bed.second(hill(4), 0.01);
            outside = if bed.control.hint().level() < 9 { outside + 1 } else { 0 };
            longest = longest.max(outside);
        }
        assert!((1..=16).contains(&longest), "seed {seed}: {longest} s");
        assert_eq!(bed.centre(), 9, "seed {seed}");
    }
}

/// The hint that loses least is the best if every hint loses too much.
#[test]
fn without_a_hint_within_the_limit_the_loss_is_the_least() {
    let largest = (0..50).filter(|seed| {
        let mut bed = Bed::new(&from(6), *seed);
        bed.loss = |level| 0.4 - 0.02 * f64::from(level);
        bed.control.set_loss_limit(Some(0.03));
        bed.run(1800, hill(4), 0.03);
        bed.centre() >= 15
    });
    let largest = largest.count();
    assert!(largest >= 48, "{largest} of 50 end at the largest hint");
}

/// 3 % of 100 packets is the limit: with 6 lost the excess is once the limit.
#[test]
fn an_excess_costs_one_for_each_limit() {
    let report = |received| DeliveryReport {
        at: Instant::ZERO + SECOND,
        received,
        delivered_bytes: 16_000,
        delay: Duration::from_millis(150) * received,
    };
    let judged = |limit, received| {
        let mut control = Bed::new(&from(4), 1).control;
        control.set_loss_limit(limit);
        control.judge(&DeliveryReport::default(), &report(received), 100)
    };
    let free = judged(None, 94);
    assert!(!free.is_outside);
    assert_eq!(judged(Some(0.03), 97), judged(None, 97));
    let outside = judged(Some(0.03), 94);
    assert!(outside.is_outside && (free.quality - outside.quality - 1.0).abs() < 1e-9, "{outside:?}");
    // A limit of 0 counts as 1 %.
    assert!((free.quality - judged(Some(0.0), 94).quality - 6.0).abs() < 1e-9);
    let none = judged(Some(0.03), 0);
    assert!(none.is_outside && none.quality < -30.0, "{none:?}");
}

#[test]
fn parameters_outside_their_range_are_refused() {
    let refused = |params: HintParams| params.validate().unwrap_err().to_string();
    let usual = HintParams::new(BITS);
    assert_eq!(usual.validate(), Ok(()));
    assert_eq!(
        refused(HintParams { start: Hint::from_level(17), ..usual }),
        "start = 17: allowed is from 1 to 16"
    );
    assert_eq!(refused(HintParams { span: 9, ..usual }), "span = 9: allowed is from 1 to 8");
    assert_eq!(refused(HintParams { finest: 5, ..usual }), "finest = 5: allowed is from 1 to 4");
    assert_eq!(
        refused(HintParams { measure: Duration::ZERO, ..usual }),
        "measure = 0 ns: allowed is a time from 100 ms to 600 s"
    );
    assert_eq!(
        refused(HintParams { confidence: f64::NAN, ..usual }),
        "confidence = NaN: allowed is a number from 0.1 to 10"
    );
    for bits in 1..=8 {
        assert_eq!(HintParams::new(HintBits::new(bits).unwrap()).validate(), Ok(()), "{bits}");
    }
}

proptest! {
    /// The hint stays within its levels, whatever is reported in whatever order.
    #[test]
    fn the_hint_stays_within_its_levels(
        bits in 1u64..=8,
        start in 0u16..256,
        seed: u64,
        reports in prop::collection::vec((0u64..40_000, 0u64..50, 0u64..50, 0u64..3000), 1..300),
    ) {
        let bits = HintBits::new(bits).unwrap();
        let params = HintParams { start: Hint::from_level(1 + start % bits.levels()), ..HintParams::new(bits) };
        let random = Streams::new(seed).stream("flow", "hint");
        let mut control = HintControl::new(&params, Class::Audio, Combination::Min, Instant::ZERO, random).unwrap();
        let (mut report, mut sent, mut now) = (DeliveryReport::default(), 0, Instant::ZERO);
        for (gap, lost, received, delay) in reports {
            now += Duration::from_millis(gap);
            sent += received + lost;
            report.at = now;
            report.received += received;
            report.delivered_bytes += 1000 * received;
            report.delay += Duration::from_millis(delay * received);
            let hint = control.on_report(now, &report, sent);
            prop_assert!((1..=bits.levels()).contains(&hint.level()));
            prop_assert!((1..=bits.levels()).contains(&control.centre().level()));
        }
    }

    /// A report that comes late says nothing new.
    #[test]
    fn an_old_report_changes_nothing(seed in 0u64..1000, seconds in 1u32..400) {
        let mut bed = Bed::new(&from(9), seed);
        bed.run(seconds, hill(6), 0.03);
        let before = (bed.control.hint(), bed.control.stats());
        let old = DeliveryReport { at: Instant::ZERO + SECOND, received: 1, delivered_bytes: 1000, delay: SECOND };
        bed.control.on_report(bed.now, &old, bed.sent);
        prop_assert_eq!((bed.control.hint(), bed.control.stats()), before);
    }
}

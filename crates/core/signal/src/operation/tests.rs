use super::*;
use crate::monitor::Spread;
use crate::violation::{Watch, WatchParams};
use cutline_params::{ParameterValue, conformance};
use cutline_quality::spec::Specification;
use proptest::prelude::*;
use std::collections::VecDeque;

const INTERVAL: Duration = Duration::from_millis(500);

fn spec() -> Specification {
    let ms = Duration::from_millis;
    Specification::builder().rates(20.0, 80.0, 100.0).max_delay(ms(100)).loss(1.0).build().unwrap()
}

/// A bottleneck with a queue: messages above its rate wait, and those without room are lost.
struct Path {
    /// Messages/s.
    rate: f64,
    /// Messages.
    room: f64,
    queue: f64,
    /// Fractions of messages that have not been counted.
    left: f64,
    lost_left: f64,
    /// The delay without a queue, ms, and its varying part.
    base: f64,
    varies: f64,
}

impl Path {
    fn new(rate: f64, room: f64) -> Self {
        Self { rate, room, queue: 0.0, left: 0.0, lost_left: 0.0, base: 10.0, varies: 0.0 }
    }

    /// An interval in which so many messages/s are sent.
    fn interval(&mut self, number: u64, sent: f64) -> Delivery {
        let seconds = INTERVAL.as_secs_f64();
        let before = self.queue;
        let offered = self.queue + sent * seconds;
        let served = offered.min(self.rate * seconds);
        self.queue = offered - served;
        let dropped = (self.queue - self.room).max(0.0);
        self.queue -= dropped;
        let (messages, lost) = ((served + self.left).floor(), (dropped + self.lost_left).floor());
        self.left += served - messages;
        self.lost_left += dropped - lost;
        // A number from 0 to 1 that looks random.
        let random = (number as f64 * 0.618_033_988_749_895).fract();
        let base = (self.base + self.varies * random) / 1000.0;
        let waits = |queue: f64| Duration::from_secs_f64(queue / self.rate + base);
        let (first, last) = (waits(before), waits(self.queue));
        let delay = Spread { mean: (first + last) / 2, quantile: first.max(last), worst: first.max(last) };
        let since = Instant::ZERO + INTERVAL * number;
        Delivery {
            since,
            until: since + INTERVAL,
            sent: (messages + lost) as u64,
            messages: messages as u64,
            lost: lost as i64,
            delay: (messages > 0.0).then_some(delay),
            ..Delivery::default()
        }
    }
}

/// A sender that does as its controller says.
struct Sender {
    watch: Watch,
    control: Operation,
    interval: u64,
    /// The rate of this interval and of the next ones: reports come so many intervals late.
    rates: VecDeque<f64>,
}

impl Sender {
    fn new(spec: &Specification) -> Self {
        Self::late(spec, 0)
    }

    /// A sender whose reports come so many intervals late.
    fn late(spec: &Specification, intervals: usize) -> Self {
        let watch = Watch::new(spec, WatchParams::default()).unwrap();
        let control = Operation::new(Instant::ZERO, watch.operation().region(), OperationParams::default());
        let control = control.unwrap().unwrap();
        let rates = std::iter::repeat_n(control.target(), intervals).collect();
        Self { watch, control, interval: 0, rates }
    }

    /// Runs for so many intervals, and returns for each the position and the headroom.
    fn run(&mut self, path: &mut Path, intervals: u64) -> Vec<(f64, f64)> {
        (0..intervals).map(|_| self.step(path, 1.0)).collect()
    }

    /// One interval in which the application uses a share of its rate.
    fn step(&mut self, path: &mut Path, used: f64) -> (f64, f64) {
        self.rates.push_back(self.control.target());
        let rate = self.rates.pop_front().expect("it has one") * used;
        let delivery = path.interval(self.interval, rate);
        let demand = OfferedMessages { messages: (rate * INTERVAL.as_secs_f64()) as u64, time: INTERVAL };
        let assessment = self.watch.on_interval(&delivery, Duration::ZERO, Some(demand));
        self.control.on_interval(delivery.until, &delivery, demand, &assessment);
        self.interval += 1;
        (self.control.position(), assessment.worst(&DEPENDENT).unwrap_or(1.0))
    }
}

/// The intervals whose measures were outside their limits.
fn outside(seen: &[(f64, f64)]) -> usize {
    seen.iter().filter(|(_, headroom)| *headroom < 0.0).count()
}

#[test]
fn the_parameters_are_described_and_bad_ones_refused() {
    let parameters = OperationParams::describe();
    let make = |values: &[(&str, ParameterValue)]| {
        OperationParams::from_values(values.iter().map(|(name, value)| (*name, value.clone())))
            .map(|params| params.values())
    };
    conformance::parameters_are_complete("operation", &parameters);
    conformance::defaults_are_what_the_description_says("operation", &parameters, &make);
    conformance::bad_parameters_are_refused_by_name("operation", &parameters, &make);
    let ordered = OperationParams { near: 0.5, inside: 0.4, ..OperationParams::default() };
    assert!(ordered.validate().unwrap_err().to_string().contains("at most inside"));
}

#[test]
fn a_region_with_one_rate_or_any_needs_no_controller() {
    for spec in [Specification::OPEN, Specification::builder().rates(50.0, 50.0, 50.0).build().unwrap()] {
        let region = Region::new(&spec);
        let control = Operation::new(Instant::ZERO, &region, OperationParams::default());
        assert!(control.unwrap().is_none(), "{spec:?}");
    }
}

#[test]
fn the_example_of_the_module_docs_holds() {
    let ms = Duration::from_millis;
    let spec = Specification::builder().rates(60.0, 80.0, 100.0).max_delay(ms(100)).build().unwrap();
    let (mut sender, mut path) = (Sender::new(&spec), Path::new(70.0, 1000.0));
    // After 0.5 s 5 messages wait: 71 ms and 10 ms of the path.
    let first = sender.step(&mut path, 1.0);
    assert!((first.1 - 0.186).abs() < 0.001 && first.0 == 1.0, "{first:?}");
    let second = sender.step(&mut path, 1.0);
    assert_eq!((second.0, sender.control.target()), (0.0, 60.0));
    assert!((sender.control.axis.at(sender.control.ceiling) - 69.0).abs() < 1e-9);
}

#[test]
fn with_room_enough_the_best_rate_stays() {
    let mut sender = Sender::new(&spec());
    let seen = sender.run(&mut Path::new(81.0, 1000.0), 400);
    assert!(seen.iter().all(|(position, _)| *position == 1.0));
    assert_eq!(sender.control.stats(), OperationStats::default());
}

#[test]
fn without_a_better_rate_the_region_is_exhausted() {
    let (mut sender, mut path) = (Sender::new(&spec()), Path::new(10.0, 1000.0));
    sender.run(&mut path, 20);
    assert_eq!((sender.control.position(), sender.control.target()), (0.0, 20.0));
    let since = sender.control.worst_since().unwrap();
    sender.run(&mut path, 10);
    assert_eq!(sender.control.worst_since(), Some(since));
    path.rate = 1000.0;
    sender.run(&mut path, 100);
    assert_eq!(sender.control.worst_since(), None);
}

#[test]
fn a_sender_that_does_not_use_its_rate_gets_no_higher_one() {
    let (mut sender, mut path) = (Sender::new(&spec()), Path::new(40.0, 1000.0));
    sender.run(&mut path, 20);
    path.rate = 1000.0;
    let position = sender.control.position();
    for _ in 0..200 {
        sender.step(&mut path, 0.5);
    }
    assert!(sender.control.position() <= position.max(sender.control.ceiling));
    assert!(sender.control.position() < 0.5);
}

#[test]
fn gaps_do_not_slow_a_sender_down() {
    // At 20 messages/s the gaps are 50 ms by themselves.
    let spec = spec().change().max_gap(Duration::from_millis(50)).build().unwrap();
    let mut watch = Watch::new(&spec, WatchParams::default()).unwrap();
    let region = watch.operation().region().clone();
    let mut control = Operation::new(Instant::ZERO, &region, OperationParams::default()).unwrap().unwrap();
    let mut path = Path::new(200.0, 1.0);
    for number in 0..20 {
        let delivery = Delivery { gap: Duration::from_millis(60), ..path.interval(number, control.target()) };
        let assessment = watch.on_interval(&delivery, Duration::ZERO, None);
        assert!(assessment.get(Measure::Gap).unwrap().is_violated);
        assert_eq!(control.on_interval(delivery.until, &delivery, delivery.demand(), &assessment), 80.0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// A bottleneck with a long or a short queue that shrinks and recovers.
    #[test]
    fn a_sender_enters_its_region_stays_and_returns(
        rate in 25.0_f64..78.0, room in prop_oneof![Just(1.0_f64), Just(5.0), Just(1000.0)], used in 20_u64..60,
        varies in 0.0_f64..15.0, late in 0_usize..2,
    ) {
        let mut sender = Sender::late(&spec(), late);
        let mut path = Path { varies, ..Path::new(200.0, room) };
        sender.run(&mut path, used);
        path.rate = rate;
        // Comes inside: within 3 intervals of the report that shows it, and the time in which what waits by then leaves at
        // 0.85 of the bottleneck's rate, or at the least rate.
        let waits = ((80.0 - rate) * 0.5 * (2 + late) as f64).min(room);
        let leaves = (rate - (0.85 * rate).max(20.0)) * 0.5;
        let few = 3 + 2 * late + (waits / leaves).ceil() as usize;
        let shrunk = sender.run(&mut path, few as u64 + 1);
        // A probe may lead outside again at the end of this time.
        let mut outside_first = shrunk.iter().map(|(_, headroom)| *headroom).skip_while(|headroom| *headroom >= 0.0);
        let is_inside = outside_first.clone().next().is_none() || outside_first.any(|headroom| headroom >= 0.0);
        prop_assert!(is_inside, "{rate} {room}: {few} {shrunk:?}");
        // Stays: 5 minutes, the last 4 of which are examined.
        sender.run(&mut path, 120);
        let stats = sender.control.stats();
        let steady = sender.run(&mut path, 480);
        let falls = sender.control.stats().falls - stats.falls;
        let probes = sender.control.stats().probes - stats.probes;
        let retreats = sender.control.stats().retreats - stats.retreats;
        // A fall and two probes in each of the 7 times that 32 s and a trial fit into 4 minutes.
        prop_assert!(falls <= 7 && probes <= 21, "{falls} falls, {probes} probes");
        prop_assert!(retreats <= 7, "{retreats} retreats");
        // Each is outside for two intervals, and for as many more as reports come late.
        prop_assert!(outside(&steady) <= 7 * (2 + late), "{rate} {room}: outside in {}", outside(&steady));
        // Uses what there is: within three steps of what the bottleneck carries.
        let carried = sender.control.axis.position(rate).min(1.0);
        let mean = steady.iter().map(|(position, _)| position).sum::<f64>() / steady.len() as f64;
        prop_assert!(mean >= carried - 0.15 && mean <= carried + 0.05, "{rate} {room}: {mean} of {carried}");
        // Returns within the longest rest and 2 s for each of 20 steps.
        path.rate = 200.0;
        let back = sender.run(&mut path, 2 * (32 + 2 * 20 + 8));
        prop_assert_eq!(back.last().unwrap().0, 1.0, "{} {}", rate, room);
        prop_assert_eq!(outside(&back[8..]), 0);
    }

    /// Nothing that is measured leads outside the region, or to a panic.
    #[test]
    fn the_position_is_always_in_the_region(
        intervals in prop::collection::vec((0_u64..100, -5_i64..50, prop::option::of(0_u64..500), 0_u64..3000), 1..200),
    ) {
        let mut watch = Watch::new(&spec(), WatchParams::default()).unwrap();
        let region = Region::new(&spec());
        let mut control = Operation::new(Instant::ZERO, &region, OperationParams::default()).unwrap().unwrap();
        let mut now = Instant::ZERO;
        for (messages, lost, delay, wait) in intervals {
            let since = now;
            now += Duration::from_millis(wait);
            let delay = delay.map(Duration::from_millis);
            let delay = delay.map(|delay| Spread { mean: delay, quantile: delay, worst: delay });
            let sent = messages.saturating_add_signed(lost);
            let delivery = Delivery { since, until: now, sent, messages, lost, delay, ..Delivery::default() };
            let assessment = watch.on_interval(&delivery, Duration::ZERO, None);
            let target = control.on_interval(now, &delivery, delivery.demand(), &assessment);
            prop_assert!((20.0..=80.0).contains(&target) && (0.0..=1.0).contains(&control.position()));
            prop_assert!(control.patience <= Duration::from_secs(32));
        }
    }
}

//! What every AQM of the registry must keep to, as a FIFO and under TSQ. A new one is covered by its line there.

mod support;

use cutline_aqm::{AnyQueue, AqmSpec, DropReason, Limit, Queue, QueueSpec, TsqParams, Verdict, registry};
use cutline_params::{Kind, Parameter, Parameters, Value};
use cutline_units::{Duration, Instant, Probability, Rate};
use std::collections::BTreeSet;
use support::Link;

const RATE: Rate = Rate::from_mbps(15);

/// Every AQM with its defaults, alone and under TSQ, without and with ECN, limited in packets and in bytes.
fn specs() -> Vec<QueueSpec> {
    let mut specs = Vec::new();
    for about in registry::describe() {
        specs.extend(variants(about.name, about.takes_tsq));
    }
    specs
}

/// One AQM with its defaults, and those settings that make it another algorithm.
fn variants(name: &str, takes_tsq: bool) -> Vec<QueueSpec> {
    let (mut specs, mut settings) = (Vec::new(), vec![vec![]]);
    if name == "drr" {
        let weights = Value::Counts((1..=16).rev().collect());
        settings.push(vec![("by", Value::Choice("hint".into())), ("weights", weights)]);
    }
    for values in settings {
        let aqm = AqmSpec::from_values(name, values).expect("the settings are allowed");
        for tsq in [None, Some(TsqParams::default())].into_iter().take(1 + usize::from(takes_tsq)) {
            for (ecn, limit) in [(false, Limit::Packets(400)), (true, Limit::Bytes(300_000))] {
                specs.push(QueueSpec { limit, ecn, aqm: aqm.clone(), tsq, rate: RATE });
            }
        }
    }
    specs
}

fn link(spec: &QueueSpec) -> Link<AnyQueue<u32>> {
    Link::new(spec.build().expect("the specification is allowed"), RATE)
}

/// What a run shows: verdicts and probabilities.
type Trace = Vec<(Verdict, Option<Probability>)>;

/// Nine seconds of overload by a third, underload and silence in turn: every law gets to act and to rest.
fn run(link: &mut Link<AnyQueue<u32>>) -> Trace {
    let mut trace = Vec::new();
    for i in 0..15_000_u32 {
        let (size, hint) = (300 + i * 7919 % 1200, 1 + (i * 31 % 16) as u16);
        let verdict = link.arrive(size, hint, i % 3 == 0);
        trace.push((verdict, link.queue.probability()));
        let us = match i / 1500 % 3 {
            0 | 1 => 360,
            _ => 700,
        };
        link.wait(Duration::from_micros(us));
        if i % 5000 == 4999 {
            link.wait(Duration::from_secs(1));
        }
    }
    trace
}

#[test]
fn what_comes_in_goes_out_or_is_counted() {
    for spec in specs() {
        let mut link = link(&spec);
        let trace = run(&mut link);
        let mut flushed = 0;
        link.arrive_many(100, 9);
        let waiting = link.queue.backlog();
        link.queue.reset(link.now, &mut |_| flushed += 1);
        let stats = link.queue.stats();
        assert_eq!(stats.arrived().packets, trace.len() as u64 + 100, "{spec:?}");
        assert_eq!(stats.flushed.packets, flushed, "{spec:?}");
        assert_eq!(stats.flushed.bytes, waiting.bytes, "{spec:?}");
        assert_eq!(stats.shed().packets, link.shed.len() as u64, "{spec:?}");
        let gone = stats.dequeued.packets + stats.shed().packets;
        assert_eq!(stats.enqueued.packets, gone + flushed, "{spec:?}");
        let gone = stats.dequeued.bytes + stats.shed().bytes;
        assert_eq!(stats.enqueued.bytes, gone + waiting.bytes, "{spec:?}");
        assert_eq!(stats.dequeued.packets, link.sent.len() as u64, "{spec:?}");
        let sent = link.sent.iter().map(|(_, departure)| departure.packet);
        let gone: BTreeSet<u32> = sent.chain(link.shed.iter().map(|shed| shed.packet)).collect();
        let times = link.sent.len() + link.shed.len();
        assert_eq!(gone.len(), times, "a packet was sent or shed twice: {spec:?}");
    }
}

#[test]
fn verdicts_agree_with_the_counters() {
    for spec in specs() {
        let mut link = link(&spec);
        let trace = run(&mut link);
        let count = |kind: fn(&Verdict) -> bool| trace.iter().filter(|(v, _)| kind(v)).count() as u64;
        let stats = link.queue.stats();
        let marked_later = link.sent.iter().filter(|(_, departure)| departure.marked).count() as u64;
        assert_eq!(stats.marked.packets, count(|v| *v == Verdict::Mark) + marked_later, "{spec:?}");
        let refused = count(|v| matches!(v, Verdict::Drop(_)));
        assert_eq!(stats.dropped_in_all().packets, refused + link.shed.len() as u64, "{spec:?}");
        assert!(spec.ecn || stats.marked.packets == 0, "{spec:?}");
        assert!(stats.dropped_in_all().packets > 0, "the overload should show: {spec:?}");
        let law_acts = trace.iter().any(|(_, p)| p.is_none_or(|p| p > Probability::ZERO));
        assert!(law_acts, "the law should answer the overload: {spec:?}");
    }
}

#[test]
fn a_limit_is_never_passed() {
    for spec in specs() {
        let mut link = link(&spec);
        for i in 0..3000_u32 {
            link.arrive(40 + i * 7919 % 1460, 1 + (i % 16) as u16, true);
            let backlog = link.queue.backlog();
            match spec.limit {
                Limit::Packets(most) => assert!(backlog.packets <= most, "{spec:?}"),
                Limit::Bytes(most) => assert!(backlog.bytes <= most, "{spec:?}"),
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for spec in specs() {
        let (mut one, mut other) = (link(&spec), link(&spec));
        assert_eq!(run(&mut one), run(&mut other), "{spec:?}");
        assert_eq!(one.sent, other.sent, "{spec:?}");
    }
}

#[test]
fn looking_changes_nothing() {
    for spec in specs() {
        let (mut seen, mut unseen) = (link(&spec), link(&spec));
        for i in 0..6000_u32 {
            let (size, hint) = (300 + i * 7919 % 1200, 1 + (i * 31 % 16) as u16);
            assert_eq!(seen.arrive(size, hint, false), unseen.arrive(size, hint, false), "{spec:?}");
            for _ in 0..4 {
                seen.wait(Duration::from_micros(90));
                seen.queue.advance(seen.now);
            }
            unseen.wait(Duration::from_micros(360));
        }
        assert_eq!(seen.sent, unseen.sent, "{spec:?}");
    }
}

#[test]
fn a_queue_that_was_reset_is_new() {
    for spec in specs() {
        let (mut used, mut new) = (link(&spec), link(&spec));
        run(&mut used);
        used.arrive_many(50, 3);
        used.wait(Duration::from_secs(1));
        used.queue.reset(used.now, &mut |_| {});
        new.wait(used.now - Instant::ZERO);
        new.queue.reset(new.now, &mut |_| {});
        used.random = new.random.clone();
        assert_eq!(run(&mut used), run(&mut new), "{spec:?}");
        assert_eq!(used.queue.backlog(), new.queue.backlog(), "{spec:?}");
    }
}

/// Settings under which a queue of some 100 packets stands and is hit now and then.
fn moderate(name: &'static str) -> AqmSpec {
    let thresholds = |max_p| {
        let packets = |n| Value::Number(n);
        vec![("min-th", packets(20.0)), ("max-th", packets(300.0)), ("max-p", packets(max_p))]
    };
    let values = match name {
        "red" => thresholds(0.8),
        "ared" | "red-worcester" => thresholds(0.3),
        "pie" | "pi2" => vec![("target", Value::Duration(Duration::from_millis(60)))],
        "pi" => {
            vec![("q-ref", Value::Number(100.0)), ("a", Value::Number(2e-4)), ("b", Value::Number(1.9e-4))]
        }
        "sfc" => vec![("q-ref", Value::Number(150.0)), ("flows", Value::Count(100))],
        _ => vec![],
    };
    AqmSpec::from_values(name, values).expect("the test's parameters are allowed")
}

type AnyLink = Link<AnyQueue<u32>>;

/// Every law that may drop early, as a FIFO and under TSQ.
fn fifo_and_tsq() -> Vec<(&'static str, AnyLink, AnyLink)> {
    let names = registry::describe().into_iter().map(|about| about.name);
    let is_law = |name: &&'static str| {
        let queue = link(&spec(moderate(name), None)).queue;
        moderate(name).takes_tsq() && queue.probability().is_some()
    };
    let laws = names.filter(is_law);
    laws.map(|name| {
        (name, link(&spec(moderate(name), None)), link(&spec(moderate(name), Some(TsqParams::default()))))
    })
    .collect()
}

fn spec(aqm: AqmSpec, tsq: Option<TsqParams>) -> QueueSpec {
    QueueSpec { limit: Limit::Packets(400), ecn: true, aqm, tsq, rate: RATE }
}

#[test]
fn tsq_leaves_the_largest_hint_what_every_law_gives_it() {
    for (name, mut fifo, mut tsq) in fifo_and_tsq() {
        let mut hits = 0;
        for i in 0..15_000 {
            let verdict = fifo.arrive(1000, 16, i % 2 == 0);
            assert_eq!(tsq.arrive(1000, 16, i % 2 == 0), verdict, "{name}, packet {i}");
            assert_eq!(tsq.queue.readings(), fifo.queue.readings(), "{name}, packet {i}");
            hits += u32::from(verdict != Verdict::Pass);
            fifo.wait(Duration::from_micros(450));
            tsq.wait(Duration::from_micros(450));
        }
        assert_eq!(tsq.sent, fifo.sent, "{name}");
        assert!(hits > 100, "the law acts: {name} {hits}");
    }
}

#[test]
fn whoever_cuts_in_line_pays_more_over_every_law() {
    let mut laws = 0;
    for (name, _, mut tsq) in fifo_and_tsq() {
        // Of each hint: packets, and those that were hit.
        let mut counts = [(0_u32, 0_u32); 2];
        for i in 0..60_000_u32 {
            let jumps = i % 10 == 3;
            let verdict = tsq.arrive(1000, if jumps { 1 } else { 16 }, false);
            let hit = verdict == Verdict::Drop(DropReason::Early);
            let count = &mut counts[usize::from(jumps)];
            *count = (count.0 + 1, count.1 + u32::from(hit));
            tsq.wait(Duration::from_micros(450));
        }
        let [bulk, jumping] = counts.map(|(n, hits)| f64::from(hits) / f64::from(n));
        assert!(bulk > 0.005 && jumping > 1.3 * bulk, "{name}: {jumping} against {bulk}");
        laws += 1;
    }
    assert!(laws >= 8, "PI, RED, ARED, RED-Worcester, BLUE, SFC, PIE, PI2: {laws}");
}

#[test]
fn a_long_silence_is_cheap_and_forgiven() {
    for spec in specs() {
        let mut link = link(&spec);
        run(&mut link);
        link.drain();
        // A century of samples taken one by one would not end.
        link.wait(Duration::from_secs(100 * 365 * 86_400));
        link.queue.advance(link.now);
        assert_eq!(link.arrive(1000, 1, false), Verdict::Pass, "{spec:?}");
    }
}

/// Every parameter with the function that builds what it belongs to.
fn each_parameter(check: impl Fn(&Parameter, &dyn Fn(Value) -> Result<(), String>)) {
    for about in registry::describe() {
        for parameter in about.parameters {
            let set = |value| {
                let built = AqmSpec::from_values(about.name, [(parameter.name, value)]);
                built.map(drop).map_err(|error| error.to_string())
            };
            check(parameter, &set);
        }
    }
    for parameter in registry::describe_tsq() {
        let set = |value| {
            let built = TsqParams::from_values([(parameter.name, value)]);
            built.map(drop).map_err(|error| error.to_string())
        };
        check(parameter, &set);
    }
}

/// Values that a parameter must refuse: beyond either end, no number, of another kind.
fn bad_values(kind: Kind) -> Vec<Value> {
    let mut bad = match kind {
        Kind::Number { least, most } => {
            [least - 1.0, most * 2.0 + 1.0, f64::NAN, f64::INFINITY].map(Value::Number).to_vec()
        }
        Kind::Frequency { least, most } => {
            [least - 1.0, 0.0, most * 2.0, f64::NAN].map(Value::Frequency).to_vec()
        }
        Kind::Count { least, most } | Kind::CountOr { least, most, .. } => {
            let below = least.checked_sub(1).into_iter();
            below.chain(most.checked_add(1)).map(Value::Count).collect()
        }
        Kind::Duration { least, most } => {
            let one = Duration::from_nanos(1);
            [least.saturating_sub(one), most + one]
                .into_iter()
                .filter(|t| !(least..=most).contains(t))
                .map(Value::Duration)
                .collect()
        }
        Kind::Durations { len, least, most } => {
            let one = Duration::from_nanos(1);
            let lists = [vec![least; len + 1], vec![most + one; len], vec![]];
            lists.map(|list| Value::Durations(list.into())).into()
        }
        Kind::Counts { len, least, most } => {
            let lists = [vec![least; len + 1], vec![most + 1; len], vec![]];
            lists.map(|list| Value::Counts(list.into())).into()
        }
        Kind::Choice(_) => vec![Value::Choice("no such choice".into())],
        Kind::Flag => vec![],
    };
    bad.push(if kind == Kind::Flag { Value::Count(1) } else { Value::Flag(true) });
    bad
}

#[test]
fn bad_parameters_are_refused_by_name() {
    each_parameter(|parameter, set| {
        for bad in bad_values(parameter.kind) {
            let error = set(bad.clone()).expect_err(&format!("{} = {bad} is bad", parameter.name));
            assert!(error.starts_with(&format!("{} = {bad}: allowed is ", parameter.name)), "{error}");
        }
    });
}

#[test]
fn descriptions_tell_the_defaults_that_hold() {
    for about in registry::describe() {
        let spec = AqmSpec::from_values(about.name, []).unwrap();
        let told: Vec<_> = about.parameters.iter().map(|p| (p.name, p.default.clone())).collect();
        assert_eq!(spec.values(), told, "{}", about.name);
        assert_eq!(spec.name(), about.name);
    }
    let told: Vec<_> = registry::describe_tsq().iter().map(|p| (p.name, p.default.clone())).collect();
    assert_eq!(TsqParams::default().values(), told);
}

#[test]
fn what_is_set_is_what_holds() {
    each_parameter(|parameter, set| {
        assert_eq!(set(parameter.default.clone()), Ok(()), "{}", parameter.name);
    });
    let q_ref = [("q-ref", Value::Count(50)), ("mean-packet", Value::Count(500))];
    let values = AqmSpec::from_values("pi", q_ref).unwrap().values();
    assert!(values.contains(&("q-ref", Value::Number(50.0))), "{values:?}");
    assert!(values.contains(&("mean-packet", Value::Count(500))), "{values:?}");
    let others = [
        ("mode", Value::Choice("bytes".into())),
        ("gentle", Value::Flag(false)),
        ("delays", Value::Durations(vec![Duration::from_millis(7); 16].into())),
    ];
    let weights = Value::Counts(vec![3; 16].into());
    let values = AqmSpec::from_values("drr", [("weights", weights.clone())]).unwrap().values();
    assert!(values.contains(&("weights", weights)), "{values:?}");
    let values = AqmSpec::from_values("red-worcester", others.clone()).unwrap().values();
    for (name, value) in others {
        assert!(values.contains(&(name, value.clone())), "{name} = {value}");
    }
}

#[test]
fn descriptions_are_complete() {
    let mut names = BTreeSet::new();
    for about in registry::describe() {
        assert!(names.insert(about.name), "two AQMs are called {}", about.name);
        assert!(!about.title.is_empty() && !about.source.is_empty(), "{}", about.name);
    }
    each_parameter(|parameter, _| {
        let kebab =
            |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        assert!(kebab(parameter.name), "{}", parameter.name);
        assert!(!parameter.source.is_empty() && !parameter.doc.is_empty(), "{}", parameter.name);
    });
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let refused = |aqm, name| AqmSpec::from_values(aqm, [(name, Value::Count(3))]).unwrap_err().to_string();
    assert_eq!(
        refused("pi", "qref"),
        "qref = 3: allowed is one of the names a, b, frequency, q-ref, mean-packet; did you mean q-ref?"
    );
    assert_eq!(refused("drop-tail", "limit"), "limit = 3: allowed is no parameter at all");
    assert!(refused("droptail", "limit").ends_with("did you mean drop-tail?"));
}

#[test]
fn tsq_on_what_is_no_law_is_refused() {
    let disciplines = registry::describe().into_iter().filter(|about| !about.takes_tsq);
    let mut refused = 0;
    for about in disciplines {
        let aqm = AqmSpec::from_values(about.name, []).unwrap();
        let error = spec(aqm, Some(TsqParams::default())).build::<u32>().unwrap_err().to_string();
        let expected = format!("tsq = true: allowed is false with {}, which is a queue", about.name);
        assert!(error.starts_with(&expected), "{error}");
        refused += 1;
    }
    assert!(refused >= 6, "CoDel, FQ-CoDel, strict priority, DRR, DualPI2, ABE: {refused}");
}

#[test]
fn impossible_queues_are_refused() {
    let fine = QueueSpec::drop_tail(Limit::Packets(1), RATE);
    let refused = |spec: QueueSpec| spec.build::<u32>().unwrap_err().to_string();
    assert!(fine.build::<u32>().is_ok());
    let limit = QueueSpec { limit: Limit::Bytes(0), ..fine.clone() };
    assert_eq!(refused(limit), "limit = 0: allowed is at least 1 packet or 1 B");
    assert_eq!(
        refused(QueueSpec { rate: Rate::ZERO, ..fine.clone() }),
        "rate = 0: allowed is at least 1 bit/s"
    );
    let tsq = Some(TsqParams { bits: 0, ..TsqParams::default() });
    assert_eq!(refused(QueueSpec { tsq, ..fine }), "bits = 0: allowed is a whole number from 1 to 8");
}

//! The conformance suite over every AQM of this crate, and what only this crate's own can be asked.

use cutline_aqm::conformance::{self, CHECKS, RATE};
use cutline_aqm::{AqmSpec, DropReason, Limit, QueueSpec, TsqParams, Verdict, registry};
use cutline_params::{Parameters as _, Value};
use cutline_units::{Duration, Rate};

/// Every AQM with its defaults, and with those settings that make it another algorithm.
fn aqms() -> Vec<AqmSpec> {
    let of = |name, values| AqmSpec::from_values(name, values).expect("the settings are allowed");
    let mut aqms: Vec<_> = registry::describe().iter().map(|about| of(about.name, vec![])).collect();
    let weights = Value::Counts((1..=16).rev().collect());
    aqms.push(of("drr", vec![("by", Value::Choice("hint".into())), ("weights", weights)]));
    // Strict priority over a law that drops on arrival, a queue that drops at its head, and one that sheds others.
    for below in ["pie", "codel", "fq-codel"] {
        aqms.push(of("strict-priority", vec![]).with_below(of(below, vec![])).expect("it may be below"));
    }
    aqms
}

/// One test for each check, over every AQM.
macro_rules! over_every_aqm {
    ($($check:ident),+ $(,)?) => {
        $(#[test]
        fn $check() {
            aqms().iter().for_each(conformance::$check);
        })+

        #[test]
        fn no_check_is_left_out() {
            assert_eq!(CHECKS.map(|(name, _)| name), [$(stringify!($check)),+]);
        }
    };
}

over_every_aqm! {
    packets_are_conserved,
    verdicts_agree_with_the_counters,
    a_limit_is_never_exceeded,
    the_same_seed_gives_the_same_run,
    advancing_changes_no_verdict,
    a_queue_that_was_reset_is_new,
    a_long_silence_is_cheap,
    tsq_works_on_laws_only,
    description_is_complete,
    defaults_are_what_the_description_says,
    bad_parameters_are_refused_by_name,
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

/// The laws that may drop early, by name.
fn laws_that_drop_early() -> Vec<&'static str> {
    let laws = registry::describe().into_iter().filter(|about| about.takes_tsq);
    laws.map(|about| about.name).filter(|name| *name != "drop-tail").collect()
}

#[test]
fn tsq_leaves_the_largest_hint_what_every_law_gives_it() {
    for name in laws_that_drop_early() {
        let hits = conformance::tsq_leaves_the_largest_hint_alone(&moderate(name));
        assert!(hits > 100, "the law acts: {name} {hits}");
    }
}

#[test]
fn packets_that_overtake_have_a_higher_probability_over_every_law() {
    let mut laws = 0;
    for name in laws_that_drop_early() {
        let tsq = Some(TsqParams::default());
        let spec = QueueSpec { limit: Limit::Packets(400), ecn: true, aqm: moderate(name), tsq, rate: RATE };
        let mut tsq = conformance::link(&spec);
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
fn parameters_that_are_set_apply() {
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

#[test]
fn parameters_of_tsq_are_refused_like_those_of_an_aqm() {
    for parameter in TsqParams::describe() {
        for bad in cutline_params::conformance::bad_values(parameter.kind) {
            let error = TsqParams::from_values([(parameter.name, bad.clone())]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{} = {bad}: allowed is ", parameter.name)), "{error}");
        }
    }
    let described: Vec<_> =
        TsqParams::describe().iter().map(|about| (about.name, about.default.clone())).collect();
    assert_eq!(TsqParams::default().values(), described);
}

#[test]
fn there_are_disciplines_and_laws() {
    let all = registry::describe();
    let laws = all.iter().filter(|about| about.takes_tsq).count();
    assert!(
        laws >= 9 && all.len() - laws >= 6,
        "PI, RED, ...; CoDel, FQ-CoDel, ...: {laws} of {}",
        all.len()
    );
}

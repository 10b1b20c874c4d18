//! The conformance suite over every AQM of this crate, and further checks of this crate's own AQMs.

use cutline_aqm::conformance::{self, CHECKS, RATE};
use cutline_aqm::{AqmSpec, Limit, QueueSpec, TsqParams, registry};
use cutline_params::{ParameterValue, Parameters as _};
use cutline_units::{Duration, Rate};

/// Every AQM with its defaults, and with those settings that make it another algorithm.
fn aqms() -> Vec<AqmSpec> {
    let of = |name, values| AqmSpec::from_values(name, values).expect("the settings are allowed");
    let mut aqms: Vec<_> = registry::describe().iter().map(|about| of(about.name, vec![])).collect();
    let weights = ParameterValue::Counts((1..=16).rev().collect());
    aqms.push(of("drr", vec![("by", ParameterValue::Choice("hint".into())), ("weights", weights)]));
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
    packets_that_overtake_have_a_higher_probability,
    description_is_complete,
    defaults_are_what_the_description_says,
    bad_parameters_are_refused_by_name,
}

/// The laws that may drop early, and whether they answer probabilities between 0 and 1.
fn laws_that_drop_early() -> Vec<(&'static str, bool)> {
    let names = registry::describe().into_iter().map(|about| about.name);
    names.filter_map(|name| Some((name, conformance::is_graded(name)?))).collect()
}

#[test]
fn tsq_keeps_the_probability_of_the_law_for_the_largest_hint() {
    for (name, _) in laws_that_drop_early() {
        let hits = conformance::tsq_leaves_the_largest_hint_alone(&AqmSpec::moderate(name).unwrap());
        assert!(hits > 100, "the law acts: {name} {hits}");
    }
}

/// The laws of this list are graded, so the check holds them to the higher share.
#[test]
fn packets_that_overtake_have_a_higher_probability_over_every_law() {
    let laws = laws_that_drop_early();
    for name in ["pi", "red", "ared", "red-worcester", "blue", "sfc", "pie", "pi2"] {
        assert!(laws.contains(&(name, true)), "{name}: {laws:?}");
    }
    for (name, _) in laws {
        conformance::packets_that_overtake_have_a_higher_probability(&AqmSpec::moderate(name).unwrap());
    }
}

#[test]
fn parameters_that_are_set_apply() {
    let q_ref = [("q-ref", ParameterValue::Count(50)), ("mean-packet", ParameterValue::Count(500))];
    let values = AqmSpec::from_values("pi", q_ref).unwrap().values();
    assert!(values.contains(&("q-ref", ParameterValue::Number(50.0))), "{values:?}");
    assert!(values.contains(&("mean-packet", ParameterValue::Count(500))), "{values:?}");
    let others = [
        ("mode", ParameterValue::Choice("bytes".into())),
        ("gentle", ParameterValue::Flag(false)),
        ("delays", ParameterValue::Durations(vec![Duration::from_millis(7); 16].into())),
    ];
    let weights = ParameterValue::Counts(vec![3; 16].into());
    let values = AqmSpec::from_values("drr", [("weights", weights.clone())]).unwrap().values();
    assert!(values.contains(&("weights", weights)), "{values:?}");
    let values = AqmSpec::from_values("red-worcester", others.clone()).unwrap().values();
    for (name, value) in others {
        assert!(values.contains(&(name, value.clone())), "{name} = {value}");
    }
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let refused =
        |aqm, name| AqmSpec::from_values(aqm, [(name, ParameterValue::Count(3))]).unwrap_err().to_string();
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

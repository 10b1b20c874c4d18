//! The derive produces names, units, ranges, defaults, sources, groups and checks of a struct.

use cutline_params::{Choice, ParameterError, ParameterKind, ParameterValue, Parameters};
use cutline_units::{Bytes, Distribution, Duration, Rate};

const PAPER: &str = "the paper, section 1";

#[derive(Clone, Copy, Debug, PartialEq, Choice)]
enum Mode {
    Packets,
    WholeBytes,
    #[choice("k")]
    Kibibytes,
}

/// Parameters of every queue.
#[derive(Clone, Debug, PartialEq, Parameters)]
struct Common {
    /// The delay to hold,
    /// in two lines.
    ///
    /// More than the listing needs.
    #[param(default = Duration::from_millis(5), range = (Duration::ZERO, Duration::from_secs(1)), source = PAPER)]
    target: Duration,
    /// Unit in which the queue is measured.
    #[param(default = Mode::Packets, source = PAPER)]
    mode: Mode,
    /// A length; off counts nothing.
    #[param(default = None, range = (1, 9), unit = "packets", source = "ours")]
    most: Option<u32>,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
struct Special {
    /// Parameters of every queue.
    #[group(
        default = Common { mode: Mode::Kibibytes, ..Common::default() },
        source = "another paper",
        sources(mode = "a third"),
        without(most)
    )]
    common: Common,
    /// Sampling frequency.
    #[param(name = "how-often", default = 170.0, range = (1.0, 1e3), hertz, source = PAPER)]
    frequency: f64,
    /// Weights.
    #[param(default = [1, 2], range = (1, 5), source = PAPER)]
    weights: [u64; 2],
    /// No parameter.
    #[param(default = 7, skip)]
    scratch: u8,
}

fn check(params: &Special) -> Result<(), ParameterError> {
    let [first, second] = params.weights;
    if first <= second { Ok(()) } else { Err(ParameterError::new("weights", first, "at most the second")) }
}

#[test]
fn each_field_of_an_entry_is_there_once() {
    let [target, mode, most] = Common::describe()[..] else { panic!("there are three parameters") };
    assert_eq!(
        (target.name, target.doc, target.source),
        ("target", "The delay to hold, in two lines", PAPER)
    );
    assert_eq!(target.default, ParameterValue::Duration(Duration::from_millis(5)));
    assert_eq!(mode.kind, ParameterKind::Choice(&["packets", "whole-bytes", "k"]));
    assert_eq!((most.optional, &most.default, most.unit), (true, &ParameterValue::Off, "packets"));
    assert_eq!(most.kind, ParameterKind::Count { least: 1, most: 9 });
}

#[test]
fn a_group_has_its_own_defaults_and_sources() {
    let about = Special::describe();
    let names: Vec<_> = about.iter().map(|parameter| parameter.name).collect();
    assert_eq!(names, ["target", "mode", "how-often", "weights"]);
    assert_eq!((about[0].source, about[1].source), ("another paper", "a third"));
    assert_eq!(about[1].default, ParameterValue::Choice("k".into()));
    assert_eq!(about[2].default, ParameterValue::Frequency(170.0));
}

#[test]
fn values_are_set_read_and_checked() {
    let values = [
        ("target", ParameterValue::Duration(Duration::from_millis(9))),
        ("mode", ParameterValue::Choice("whole-bytes".into())),
        ("how-often", ParameterValue::Frequency(2.0)),
        ("weights", ParameterValue::Counts(vec![2, 3].into())),
    ];
    let special = Special::from_values(values.clone()).unwrap();
    assert_eq!((special.common.target, special.common.mode), (Duration::from_millis(9), Mode::WholeBytes));
    assert_eq!((special.frequency, special.weights, special.scratch), (2.0, [2, 3], 7));
    assert_eq!(special.values(), values);
    let refused = |name, value| Special::from_values([(name, value)]).unwrap_err().to_string();
    assert_eq!(
        refused("weights", ParameterValue::Counts(vec![3, 2].into())),
        "weights = 3: allowed is at most the second"
    );
    assert!(
        refused("most", ParameterValue::Count(3))
            .starts_with("most = 3: allowed is one of the names target, mode")
    );
    assert!(refused("targt", ParameterValue::Flag(true)).ends_with("did you mean target?"));
    assert!(
        refused("how-often", ParameterValue::Frequency(0.0)).contains("a frequency from 1 Hz to 1000 Hz")
    );
}

#[test]
fn only_optional_values_can_be_switched_off() {
    let common = Common { most: Some(3), ..Common::default() };
    assert_eq!(common.clone().with_values([("most", ParameterValue::Off)]).unwrap().most, None);
    assert!(common.with_values([("mode", ParameterValue::Off)]).is_err());
}

#[test]
fn parameters_set_in_code_are_checked() {
    let special = Special { common: Common { most: Some(99), ..Common::default() }, ..Special::default() };
    assert_eq!(special.validate(), Ok(()), "the group's `most` is not among the parameters");
    assert_eq!(
        Common { most: Some(99), ..Common::default() }.validate().unwrap_err().to_string(),
        "most = 99: allowed is a whole number from 1 to 9 packets, or off"
    );
}

/// A source.
#[derive(Clone, Debug, PartialEq, Parameters)]
struct Source {
    /// Sending rate.
    #[param(example = Rate::from_kbps(64), range = (1, 1_000_000), unit = "bit/s")]
    rate: Rate,
    /// Packet size.
    #[param(default = Distribution::Fixed(9.0), range = (1.0, 1e3), unit = "B", source = PAPER)]
    size: Distribution,
}

/// A source whose group has a default.
#[derive(Clone, Debug, PartialEq, Parameters)]
struct Speaker {
    /// Parameters of every source.
    #[group(default = Source { rate: Rate::from_kbps(8), ..Source::default() }, source = PAPER)]
    source: Source,
    /// A packet.
    #[param(default = Bytes::new(160), range = (1, 1500), unit = "B", source = PAPER)]
    frame: Bytes,
}

#[test]
fn a_required_parameter_must_be_given() {
    let [rate, _] = Source::describe()[..] else { panic!("there are two parameters") };
    assert_eq!((rate.required, rate.default_text()), (true, "required".to_owned()));
    assert_eq!(Source::default().rate, Rate::from_kbps(64), "the example");
    let error =
        Source::from_values([("size", ParameterValue::Distribution(Distribution::Fixed(5.0)))]).unwrap_err();
    assert!(error.is_missing());
    assert_eq!(error.to_string(), "rate is missing: it must be a whole number from 1 to 1000000 bit/s");
    let source = Source::from_values([("rate", ParameterValue::Count(9))]).unwrap();
    assert_eq!(source, Source { rate: Rate::from_bps(9), size: Distribution::Fixed(9.0) });
}

#[test]
fn a_group_with_a_default_requires_nothing() {
    assert!(Speaker::describe().iter().all(|parameter| !parameter.required));
    let speaker = Speaker::from_values([("frame", ParameterValue::Count(9))]).unwrap();
    assert_eq!((speaker.source.rate, speaker.frame), (Rate::from_kbps(8), Bytes::new(9)));
}

#[test]
fn distributions_are_checked_in_each_of_their_quantities() {
    let refused = |size| {
        let values = [("rate", ParameterValue::Count(9)), ("size", ParameterValue::Distribution(size))];
        Source::from_values(values).unwrap_err().to_string()
    };
    let range = "allowed is a number from 1 to 1000 B, or a distribution of such numbers";
    assert_eq!(refused(Distribution::Fixed(0.5)), format!("size = 0.5: {range}"));
    let long = Distribution::Pareto { minimum: 5.0, shape: 1.5, maximum: Some(5e3) };
    assert_eq!(refused(long), format!("size = Pareto with minimum 5, shape 1.5, maximum 5000: {range}"));
    assert!(refused(Distribution::Lognormal { median: 5.0, sigma: 0.0 }).ends_with(range));
}

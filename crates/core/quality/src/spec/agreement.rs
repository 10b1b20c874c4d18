//! Agreement of two ends that have a specification each.

use super::{Coerced, ConnectionSpecification, SpecParameter, Specification};
use cutline_params::ParameterValue;
use std::fmt;

/// Agreement of both ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// The specification that holds for both.
    pub effective: Specification,
    /// Each parameter that an end has set, with its values.
    pub items: Vec<AgreementItem>,
}

/// One parameter of an [`Agreement`].
#[derive(Clone, Debug, PartialEq)]
pub struct AgreementItem {
    /// The parameter.
    pub parameter: SpecParameter,
    /// Value that the first end requested; `None` if it left the parameter open.
    pub offered: Option<ParameterValue>,
    /// Value that the other end requested; `None` if it left the parameter open.
    pub requested: Option<ParameterValue>,
    /// Effective value.
    pub effective: ParameterValue,
}

/// Reason why two ends cannot agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The parameter that would have to be weakened, and that its end does not coerce.
    pub parameter: SpecParameter,
    /// The value that its end keeps.
    pub kept: ParameterValue,
    /// The parameter of the other end that this contradicts; often the same.
    pub against: SpecParameter,
    /// The other end's value.
    pub value: ParameterValue,
}

impl Agreement {
    /// Returns the specification of the first end. Parameters that it may weaken are not known here.
    pub fn offered(&self) -> Specification {
        self.asked(|item| item.offered.as_ref())
    }

    /// Returns the specification of the other end. Parameters that it may weaken are not known here.
    pub fn requested(&self) -> Specification {
        self.asked(|item| item.requested.as_ref())
    }

    fn asked(&self, of: impl Fn(&AgreementItem) -> Option<&ParameterValue>) -> Specification {
        let mut asked = Specification::OPEN;
        for item in &self.items {
            if let Some(value) = of(item) {
                item.parameter.field().set(&mut asked, value);
            }
        }
        asked
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { parameter, kept, against, value } = self;
        write!(
            f,
            "{parameter} = {kept} contradicts {against} = {value} of the peer: coerce {parameter}, or weaken it"
        )
    }
}

/// Everything that two ends cannot agree on; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflicts(pub Vec<Conflict>);

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

impl std::error::Error for Conflicts {}

impl ConnectionSpecification {
    /// Returns the agreements of this end and its peer: on the traffic that this end sends, and on the
    /// traffic that it receives.
    pub fn agree(&self, peer: &Self) -> [Result<Agreement, Conflicts>; 2] {
        [agree(&self.send, &peer.receive), agree(&self.receive, &peer.send)]
    }
}

/// The weaker of both specifications, parameter by parameter (QoSockets section II). It does not matter which end is the
/// first, except for the names of values in [`AgreementItem`]. A parameter is coerced in the result if no end minds.
///
/// An end whose value is stronger than the result must coerce that parameter. Limits of different ends may contradict
/// each other, such as a `min-rate` of 50 and a `max-rate` of 40: then the stronger demand yields. That is the lower limit
/// of a rate and the upper limit of a delay.
///
/// # Errors
/// When parameters would have to be weakened that their end does not coerce.
pub fn agree(first: &Specification, second: &Specification) -> Result<Agreement, Conflicts> {
    let mut effective = Specification::OPEN;
    let mut conflicts = Vec::new();
    for parameter in SpecParameter::ALL {
        match meet(parameter, first, second) {
            Ok(Some(value)) => parameter.field().set(&mut effective, &value),
            Ok(None) => {}
            Err(conflict) => conflicts.push(conflict),
        }
    }
    if !conflicts.is_empty() {
        return Err(Conflicts(conflicts));
    }
    while let Some([lower, upper]) = effective.contradiction() {
        let ((parameter, kept), (against, value)) =
            if lower.0.larger_is_weaker() { (upper, lower) } else { (lower, upper) };
        if [first, second].iter().any(|end| !gives_way(end, parameter)) {
            return Err(Conflicts(vec![Conflict { parameter, kept, against, value }]));
        }
        parameter.field().set(&mut effective, &value);
    }
    effective.coerced = SpecParameter::ALL
        .into_iter()
        .filter(|parameter| [first, second].iter().all(|end| gives_way(end, *parameter)))
        .collect::<Coerced>();
    let item = |parameter| {
        let [offered, requested] = [first, second].map(|end| end.get(parameter));
        effective.get(parameter).map(|effective| AgreementItem { parameter, offered, requested, effective })
    };
    let items = SpecParameter::ALL.into_iter().filter_map(item).collect();
    Ok(Agreement { effective, items })
}

/// Returns whether an end accepts any value of a parameter.
fn gives_way(end: &Specification, parameter: SpecParameter) -> bool {
    end.coerced.contains(parameter) || end.get(parameter).is_none()
}

/// The weaker value of a parameter; `None` where both ends leave it open.
fn meet(
    parameter: SpecParameter,
    first: &Specification,
    second: &Specification,
) -> Result<Option<ParameterValue>, Conflict> {
    let [one, other] = [first, second].map(|end| end.get(parameter));
    let (Some(one), Some(other)) = (one.clone(), other.clone()) else { return Ok(one.or(other)) };
    if one == other {
        return Ok(Some(one));
    }
    let (weaker, stronger, end) =
        if parameter.is_weaker(&one, &other) { (one, other, second) } else { (other, one, first) };
    if end.coerced.contains(parameter) {
        return Ok(Some(weaker));
    }
    Err(Conflict { parameter, kept: stronger, against: parameter, value: weaker })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_params::Parameters as _;
    use cutline_units::{Bytes, Duration};
    use proptest::prelude::*;

    #[test]
    fn peaks_of_64_and_60_become_60() {
        // The example of QoSockets section II.
        let end = |peak| Specification::builder().peak_rate(peak).coerce_all().build().unwrap();
        let agreed = agree(&end(64.0), &end(60.0)).unwrap();
        let [offered, requested, effective] = [64.0, 60.0, 60.0].map(ParameterValue::Number);
        let [offered, requested] = [offered, requested].map(Some);
        let item = AgreementItem { parameter: SpecParameter::PeakRate, offered, requested, effective };
        assert_eq!(agreed.items, [item]);
    }

    #[test]
    fn only_the_end_that_demands_more_has_to_coerce() {
        let strict = Specification::builder().max_delay(Duration::from_millis(50)).build().unwrap();
        let lax = Specification::builder().max_delay(Duration::from_millis(80)).build().unwrap();
        let conflict = agree(&lax, &strict).unwrap_err();
        assert_eq!(agree(&strict, &lax), Err(conflict.clone()));
        assert_eq!(
            conflict.to_string(),
            "max-delay = 50 ms contradicts max-delay = 80 ms of the peer: coerce max-delay, or weaken it"
        );
        let willing = strict.change().coerce(SpecParameter::MaxDelay).build().unwrap();
        assert_eq!(agree(&willing, &lax).unwrap().effective.max_delay, lax.max_delay);
    }

    #[test]
    fn every_conflict_is_named() {
        let end = |rate, loss| Specification::builder().peak_rate(rate).loss(loss).build().unwrap();
        let conflicts = agree(&end(64.0, 1.0), &end(60.0, 0.0)).unwrap_err();
        let named = conflicts.0.iter().map(|conflict| conflict.parameter);
        assert!(named.eq([SpecParameter::PeakRate, SpecParameter::Loss]));
    }

    #[test]
    fn an_end_sends_what_its_peer_receives() {
        let sends = Specification::builder().max_rate(9.0).build().unwrap();
        let one = ConnectionSpecification { send: sends, ..ConnectionSpecification::default() };
        let limits = Specification::builder().max_delay(Duration::from_millis(5)).build().unwrap();
        let other = ConnectionSpecification { receive: limits, ..ConnectionSpecification::default() };
        let [send, receive] = one.agree(&other).map(|agreed| agreed.unwrap().effective);
        assert_eq!((send.max_rate, send.max_delay), (Some(9.0), Some(Duration::from_millis(5))));
        assert_eq!(receive.get(SpecParameter::MaxRate), None);
    }

    #[test]
    fn an_open_parameter_takes_the_other_ends_value() {
        let sized = Specification::builder().size(Bytes::new(1280)).build().unwrap();
        let agreed = agree(&sized, &Specification::OPEN).unwrap();
        assert_eq!(agreed.effective.size, sized.size);
        assert!(!agreed.effective.coerced.contains(SpecParameter::Size));
        assert!(agreed.effective.coerced.contains(SpecParameter::Loss), "nobody minds");
        assert_eq!(agreed.items[0].requested, None);
    }

    #[test]
    fn limits_of_different_ends_that_contradict_each_other_meet_or_are_refused() {
        let at_least = Specification::builder().min_rate(50.0).build().unwrap();
        let at_most = Specification::builder().max_rate(40.0).build().unwrap();
        let conflict = agree(&at_least, &at_most).unwrap_err();
        let (parameter, against) = (SpecParameter::MinRate, SpecParameter::MaxRate);
        let (kept, value) = (ParameterValue::Number(50.0), ParameterValue::Number(40.0));
        assert_eq!(conflict.0, [Conflict { parameter, kept, against, value }]);
        let willing = at_least.change().coerce(SpecParameter::MinRate).build().unwrap();
        assert_eq!(agree(&at_most, &willing).unwrap().effective.min_rate, Some(40.0));

        let ms = Duration::from_millis;
        let late = Specification::builder().min_delay(ms(90)).build().unwrap();
        let soon = Specification::builder().max_delay(ms(50)).coerce_all().build().unwrap();
        assert_eq!(agree(&late, &soon).unwrap().effective.max_delay, Some(ms(90)));
        assert_eq!(agree(&late, &soon.change().build().unwrap()).unwrap().effective.validate(), Ok(()));
    }

    fn any_specification() -> impl Strategy<Value = Specification> {
        let rate = || prop::option::of((1_u32..20).prop_map(f64::from));
        let time = || prop::option::of((1_u64..20).prop_map(Duration::from_millis));
        let throughput = (rate(), rate(), rate(), prop::option::of((1_u64..9).prop_map(Bytes::new)));
        let delays = (time(), time(), time(), time());
        let rest = (rate(), time(), any::<Option<bool>>(), 0..1_u16 << 11);
        let spec = |(throughput, delays, rest): ((_, _, _, _), (_, _, _, _), (_, _, _, u16))| {
            let bits = |at: SpecParameter| rest.3 & (1 << at as u16) != 0;
            Specification {
                min_rate: throughput.0,
                max_rate: throughput.1,
                peak_rate: throughput.2,
                size: throughput.3,
                min_delay: delays.0,
                max_delay: delays.1,
                max_gap: delays.2,
                jitter: delays.3,
                loss: rest.0,
                recovery: rest.1,
                reordering: rest.2,
                coerced: SpecParameter::ALL.into_iter().filter(|parameter| bits(*parameter)).collect(),
            }
        };
        (throughput, delays, rest).prop_map(spec).prop_filter("it is allowed", |spec| spec.validate().is_ok())
    }

    proptest! {
        /// An agreement is allowed, is the same from both sides, demands of no end more than it asked for,
        /// and weakens nothing that an end keeps. An agreement agrees with itself.
        #[test]
        fn an_agreement_is_fair(first in any_specification(), second in any_specification()) {
            let swapped = agree(&second, &first).map(|agreed| agreed.effective);
            match agree(&first, &second) {
                Err(conflicts) => {
                    prop_assert!(!conflicts.0.is_empty());
                    for conflict in conflicts.0 {
                        let keeps = |end: &&Specification| !gives_way(end, conflict.parameter);
                        prop_assert!([&first, &second].iter().any(keeps), "{conflict}");
                    }
                }
                Ok(Agreement { effective, .. }) => {
                    prop_assert_eq!(effective.validate(), Ok(()));
                    prop_assert_eq!(Ok(&effective), swapped.as_ref());
                    for parameter in SpecParameter::ALL {
                        for asked in [&first, &second] {
                            let (Some(asks), Some(gets)) = (asked.get(parameter), effective.get(parameter)) else { continue };
                            prop_assert!(!parameter.is_weaker(&asks, &gets), "{parameter}");
                            prop_assert!(asks == gets || asked.coerced.contains(parameter), "{parameter}");
                        }
                    }
                    prop_assert_eq!(agree(&effective, &effective).map(|agreed| agreed.effective), Ok(effective));
                }
            }
        }
    }
}

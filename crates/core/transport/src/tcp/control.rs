//! All congestion controls by name. The list is at the end of this file.
//!
//! Congestion controls of other crates are registered while the program runs. Files choose them by name in the same way,
//! their parameters are additional keys of TCP, and each call goes through a pointer.

use super::congestion::{
    Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, ControlDescription, NoParams, Window,
};
use super::external::{self, DynControl, ExternalAlgorithm, ExternalControl, Typed};
use super::{Bbr, Bbr3, Cubic, Dctcp, Ledbat, LostSegment, NewReno, Params, Prague, RateSample, RttSampling};
use cutline_params::{
    Configured, Parameter, ParameterError, ParameterKind, ParameterType, ParameterValue, Parameters as _,
    Registered, Registry, RegistryError,
};
use cutline_units::{Instant, Rate};
use std::fmt::Debug;

/// The keys of TCP's table in a file that are not parameters.
const TCP_KEYS: &[&str] = &["protocol", "defaults"];

static CONTROLS: Registry<dyn ExternalAlgorithm> = Registry::new(NAMES, TCP_KEYS);

/// Adds a congestion control under its name, for as long as the process runs.
///
/// # Errors
/// When the name is taken or not in kebab-case, the parameters are not sound, or a parameter has the name of one of TCP.
pub fn register_external_control(algorithm: Box<dyn ExternalAlgorithm>) -> Result<(), RegistryError> {
    let is_tcps = |name| Params::fields().iter().any(|field| field.about.name == name);
    if let Some(parameter) = algorithm.parameters().iter().find(|parameter| is_tcps(parameter.name)) {
        return Err(RegistryError::Key(parameter.name.to_owned()));
    }
    CONTROLS.register(algorithm)
}

/// Adds a type's congestion control under its name, for as long as the process runs.
///
/// # Errors
/// As [`register_external_control`].
pub fn register_congestion_control<A>() -> Result<(), RegistryError>
where
    A: CongestionAlgorithm + Clone + Debug + Send + Sync + 'static,
{
    register_external_control(Box::new(Typed::<A>::new(A::NAME)))
}

/// Returns the parameters of the registered control that the values choose; none for a control of this crate.
pub(super) fn chosen(values: &[(&str, ParameterValue)]) -> Vec<&'static Parameter> {
    let control = values.iter().rev().find(|(name, _)| *name == "congestion-control");
    let Some((_, ParameterValue::Choice(name))) = control else { return Vec::new() };
    CONTROLS.get(name).map(Registered::parameters).unwrap_or_default()
}

/// Returns whether the values choose a paced control.
fn chooses_paced(values: &[(&str, ParameterValue)]) -> bool {
    let control = values.iter().rev().find(|(name, _)| *name == "congestion-control");
    let Some((_, ParameterValue::Choice(name))) = control else { return false };
    congestion_controls().into_iter().any(|about| about.name == &**name && about.paced)
}

/// Returns TCP's parameters with these values. Some of them may belong to a registered congestion control. A paced control
/// turns on SACK and RACK-TLP by default.
pub(super) fn with_values(
    mut defaults: Params,
    values: Vec<(&str, ParameterValue)>,
) -> Result<Params, ParameterError> {
    if chooses_paced(&values) {
        (defaults.sack, defaults.rack) = (true, true);
        if defaults.variant.rtt_sampling == RttSampling::OneSegment {
            defaults.variant.rtt_sampling = RttSampling::OncePerRoundTrip;
        }
    }
    let keys = chosen(&values);
    let is_the_controls =
        |(name, _): &(&str, ParameterValue)| keys.iter().any(|parameter| parameter.name == *name);
    let (own, tcps): (Vec<_>, Vec<_>) = values.into_iter().partition(is_the_controls);
    let mut params = defaults.with_values(tcps)?;
    if let Algorithm::External(algorithm) = &params.algorithm {
        params.algorithm = Algorithm::from_values(algorithm.thing().name(), own)?;
    }
    Ok(params)
}

/// Writes the enums of all congestion controls and their matches.
macro_rules! controls {
    ($($(#[$doc:meta])* $variant:ident($control:ty)),+ $(,)?) => {
        /// Growth and reduction of the window.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Algorithm {
            $($(#[$doc])* $variant,)+
            /// A congestion control that another crate has registered.
            External(Configured<dyn ExternalAlgorithm>),
        }

        /// The congestion control of one connection. Its tag is a separate number, because every acknowledgement reads it
        /// twice, and a tag in a niche takes four instructions to read.
        #[derive(Clone, Debug)]
        #[repr(u32)]
        pub(crate) enum Control {
            $($variant($control),)+
            External(Box<ExternalControl>),
        }

        /// The names of the congestion controls of this crate.
        const NAMES: &[&str] = &[$(<$control>::NAME),+];

        /// Returns all congestion controls: those of this crate, then the registered ones by name.
        pub fn congestion_controls() -> Vec<ControlDescription> {
            let mut all = vec![$(ControlDescription::from_algorithm::<$control>()),+];
            all.extend(CONTROLS.all().into_iter().map(ExternalAlgorithm::describe));
            all
        }

        impl Algorithm {
            /// The value of `congestion-control` in scenario files.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant => <$control>::NAME,)+
                    Self::External(algorithm) => algorithm.thing().name(),
                }
            }

            /// Returns whether the response to marks is proportional to their share.
            pub fn is_scalable(&self) -> bool {
                match self {
                    $(Self::$variant => <$control>::SCALABLE,)+
                    Self::External(algorithm) => algorithm.thing().describe().scalable,
                }
            }

            /// Returns whether the control sets a pacing rate from samples of the delivery rate. It then needs
            /// [`Params::rack`].
            pub fn is_paced(&self) -> bool {
                match self {
                    $(Self::$variant => <$control>::PACED,)+
                    Self::External(algorithm) => algorithm.thing().describe().paced,
                }
            }

            /// Returns the parameters of a registered control with their values.
            pub fn values(&self) -> Vec<(&'static str, ParameterValue)> {
                match self {
                    $(Self::$variant => Vec::new(),)+
                    Self::External(algorithm) => algorithm.values().to_vec(),
                }
            }

            /// Returns the control of a new connection with TCP's parameters `tcp`.
            #[cfg_attr(not(feature = "applications"), expect(dead_code, reason = "only the checks of the feature call it"))]
            pub(crate) fn begin(&self, tcp: &Params) -> Box<dyn DynControl> {
                match self {
                    $(Self::$variant => Box::new(<$control>::begin(&NoParams {}, tcp)),)+
                    Self::External(algorithm) => algorithm.thing().begin(algorithm.values(), tcp),
                }
            }

            /// Returns the congestion control with this name and these parameters. Only registered controls have parameters.
            ///
            /// # Errors
            /// When there is no such control or parameter, a required one is missing, or a value is not allowed.
            pub fn from_values<'v>(
                name: &str,
                values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
            ) -> Result<Self, ParameterError> {
                match name {
                    $(<$control>::NAME => match values.into_iter().next() {
                        None => Ok(Self::$variant),
                        Some((parameter, value)) => Err(ParameterError::unknown(parameter, value, &[])),
                    },)+
                    _ => CONTROLS.configure("congestion-control", name, values).map(Self::External),
                }
            }
        }

        impl Control {
            pub(crate) fn new(params: &Params) -> Self {
                match &params.algorithm {
                    $(Algorithm::$variant => Self::$variant(<$control>::begin(&NoParams {}, params)),)+
                    Algorithm::External(algorithm) => Self::External(Box::new(external::begin(algorithm, params))),
                }
            }

            /// Handles the acknowledgement of new data. The closure is only called for a control that uses the acknowledgement.
            #[inline]
            pub(crate) fn acknowledged(&mut self, acknowledgement: impl FnOnce() -> Acknowledgement) {
                match self {
                    $(Self::$variant(control) => control.acknowledged(&acknowledgement()),)+
                    Self::External(control) => control.acknowledged(&acknowledgement()),
                }
            }

            /// Increases the window in slow start or congestion avoidance.
            // Always: as Sender::on_ack.
            #[inline(always)]
            pub(crate) fn grow(&mut self, window: &mut Window, acked: &Acked, params: &Params) {
                let mss = u64::from(params.mss);
                if window.cwnd < window.ssthresh {
                    let most = mss * u64::from(params.abc_limit);
                    match self {
                        $(Self::$variant(control) => control.slow_start(window, acked, most),)+
                        Self::External(control) => control.slow_start(window, acked, most),
                    }
                } else {
                    match self {
                        $(Self::$variant(control) => control.avoid(window, acked, mss),)+
                        Self::External(control) => control.avoid(window, acked, mss),
                    }
                }
            }

            /// Returns the slow start threshold after a loss.
            pub(crate) fn congested(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
                match self {
                    $(Self::$variant(control) => control.congested(window, flight, mss),)+
                    Self::External(control) => control.congested(window, flight, mss),
                }
            }

            /// Returns the slow start threshold after a mark.
            pub(crate) fn marked(&mut self, window: &Window, flight: u64, mss: u64) -> u64 {
                match self {
                    $(Self::$variant(control) => control.marked(window, flight, mss),)+
                    Self::External(control) => control.marked(window, flight, mss),
                }
            }

            pub(crate) fn timed_out(&mut self) {
                match self {
                    $(Self::$variant(control) => control.timed_out(),)+
                    Self::External(control) => control.timed_out(),
                }
            }

            #[inline(never)]
            pub(crate) fn delivered(&mut self, window: &mut Window, sample: &RateSample) {
                match self {
                    $(Self::$variant(control) => control.delivered(window, sample),)+
                    Self::External(control) => control.delivered(window, sample),
                }
            }

            pub(crate) fn lost(&mut self, window: &Window, loss: &LostSegment) {
                match self {
                    $(Self::$variant(control) => control.lost(window, loss),)+
                    Self::External(control) => control.lost(window, loss),
                }
            }

            pub(crate) fn restarted(&mut self, window: &mut Window, now: Instant) {
                match self {
                    $(Self::$variant(control) => control.restarted(window, now),)+
                    Self::External(control) => control.restarted(window, now),
                }
            }

            pub(crate) fn spurious(&mut self) {
                match self {
                    $(Self::$variant(control) => control.spurious(),)+
                    Self::External(control) => control.spurious(),
                }
            }

            pub(crate) fn pacing_rate(&self) -> Option<Rate> {
                match self {
                    $(Self::$variant(control) => control.pacing_rate(),)+
                    Self::External(control) => control.pacing_rate(),
                }
            }

            pub(crate) fn limits_itself(&self) -> bool {
                match self {
                    $(Self::$variant(control) => control.limits_itself(),)+
                    Self::External(control) => control.limits_itself(),
                }
            }

            #[inline(never)]
            pub(crate) fn application_limited(&mut self, now: Instant) {
                match self {
                    $(Self::$variant(control) => control.application_limited(now),)+
                    Self::External(control) => control.application_limited(now),
                }
            }
        }
    };
}

/// A registered control has the defaults of its parameters, and example values for required ones.
impl ParameterType for Algorithm {
    type Range = ();

    fn kind((): ()) -> ParameterKind {
        ParameterKind::Registered(&CONTROLS)
    }

    fn to_value(&self) -> ParameterValue {
        ParameterValue::Choice(self.name().into())
    }

    fn from_value(value: &ParameterValue) -> Self {
        let ParameterValue::Choice(name) = value else { panic!("{value} has been checked to be a name") };
        let examples = CONTROLS
            .get(name)
            .map(|algorithm| cutline_params::conformance::required(&algorithm.parameters()));
        Self::from_values(name, examples.unwrap_or_default())
            .unwrap_or_else(|error| panic!("the name and the defaults have been checked: {error}"))
    }
}

controls! {
    /// RFC 5681: one segment a round trip, half at a loss.
    NewReno(NewReno),
    /// RFC 9438: a cubic of the time since the last loss, 0.7 at a loss.
    Cubic(Box<Cubic>),
    /// RFC 8257: as `NewReno`, but the reduction after marks is proportional to their share. Needs ECN.
    Dctcp(Box<Dctcp>),
    /// BBR as in Linux: a model of the rate and the round trip sets a pacing rate and the window. Turns on `sack` and `rack`.
    Bbr(Box<Bbr>),
    /// draft-ietf-ccwg-bbr: as `Bbr`, with bounds that losses and marks set. Turns on `sack` and `rack`.
    Bbr3(Box<Bbr3>),
    /// draft-briscoe-iccrg-prague-congestion-control: as `Dctcp`, paced, and less dependent on the round trip. Needs ECN, and turns
    /// on `sack` and `rack`.
    Prague(Box<Prague>),
    /// RFC 6817: background traffic, which keeps the delay that it adds at `ledbat-target`.
    Ledbat(Box<Ledbat>),
}

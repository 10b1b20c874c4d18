//! All congestion controls by name. The list is at the end of this file.
//!
//! Congestion controls of other crates are registered while the program runs. Files choose them by name in the same way,
//! their parameters are additional keys of TCP, and each call goes through a pointer.

use super::congestion::{Acked, Acknowledgement, CongestionAlgorithm, CongestionControl, NoParams, Window};
use super::external::{self, CONTROLS, DynControl, ExternalAlgorithm, ExternalControl};
use super::{Cubic, Dctcp, NewReno, Params};
use cutline_params::{Configured, Kind, Parameter, ParameterError, ParameterType, Value};
use cutline_units::Instant;

/// The description of a congestion control.
#[derive(Clone, Debug)]
pub struct ControlDescription {
    /// The value of `congestion-control` in scenario files.
    pub name: &'static str,
    /// The title.
    pub title: &'static str,
    /// The paper or RFC.
    pub source: &'static str,
    /// The parameters in addition to those of TCP.
    pub parameters: Vec<&'static Parameter>,
    /// Whether the response to marks is proportional to their share.
    pub scalable: bool,
}

impl ControlDescription {
    pub(super) fn from_algorithm<A: CongestionAlgorithm>() -> Self {
        use cutline_params::Parameters as _;
        Self {
            name: A::NAME,
            title: A::TITLE,
            source: A::SOURCE,
            parameters: A::Params::describe(),
            scalable: A::SCALABLE,
        }
    }
}

/// Writes the enums of all congestion controls and their matches.
macro_rules! controls {
    ($($(#[$doc:meta])* $variant:ident($control:ty)),+ $(,)?) => {
        /// How the window grows and shrinks.
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
        pub(super) const NAMES: &[&str] = &[$(<$control>::NAME),+];

        /// Returns all congestion controls: those of this crate, then the registered ones by name.
        pub fn congestion_controls() -> Vec<ControlDescription> {
            let mut all = vec![$(ControlDescription::from_algorithm::<$control>()),+];
            all.extend(external::describe());
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

            /// Whether the response to marks is proportional to their share.
            pub fn is_scalable(&self) -> bool {
                match self {
                    $(Self::$variant => <$control>::SCALABLE,)+
                    Self::External(algorithm) => algorithm.thing().describe().scalable,
                }
            }

            /// Returns the parameters of a registered control with their values.
            pub fn values(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant => Vec::new(),)+
                    Self::External(algorithm) => algorithm.values().to_vec(),
                }
            }

            /// Returns the control of a new connection with TCP's parameters `tcp`.
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
                values: impl IntoIterator<Item = (&'v str, Value)>,
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
            #[inline(always)]
            #[allow(clippy::inline_always, reason = "as Sender::on_ack")]
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

    fn kind((): ()) -> Kind {
        Kind::Registered(&CONTROLS)
    }

    fn to_value(&self) -> Value {
        Value::Choice(self.name().into())
    }

    fn from_value(value: &Value) -> Self {
        let Value::Choice(name) = value else { panic!("{value} has been checked to be a name") };
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
}

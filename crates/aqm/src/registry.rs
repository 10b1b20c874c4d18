//! Every AQM by name: one line each, at the end of this file's first half.
//!
//! [`AqmSpec`] is an AQM with its parameters, [`AnyAqm`] the law built from it, which dispatches by a `match`
//! rather than through a pointer: a queue of it costs a predicted branch more than one of the law itself.

use crate::drop_probability::{Aqm, DropProbability};
use crate::{Arrival, Backlog, Parameter, ParameterError, Parameters, Readings, TsqParams, Value, Verdict};
use cutline_units::{Instant, Probability, Rate};

/// All there is to say about an AQM.
#[derive(Clone, Debug)]
pub struct AqmDescription {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// The name as people write it.
    pub title: &'static str,
    /// The paper or RFC.
    pub source: &'static str,
    /// What can be set.
    pub parameters: Vec<&'static Parameter>,
}

/// Writes the enums and their matches from the list of AQMs.
macro_rules! registry {
    ($($(#[$doc:meta])* $variant:ident($law:ty)),+ $(,)?) => {
        /// An AQM and its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AqmSpec { $($(#[$doc])* $variant(<$law as Aqm>::Params)),+ }

        /// Any law of the registry.
        #[derive(Clone, Debug)]
        pub enum AnyAqm { $($(#[$doc])* $variant($law)),+ }

        /// Every AQM there is.
        pub fn describe() -> Vec<AqmDescription> {
            vec![$(AqmDescription {
                name: <$law>::NAME,
                title: <$law>::TITLE,
                source: <$law>::SOURCE,
                parameters: <$law as Aqm>::Params::describe(),
            }),+]
        }

        impl AqmSpec {
            /// The AQM of that name with its defaults, changed by `values`.
            ///
            /// # Errors
            /// When there is no such AQM or parameter, or a value is not allowed.
            pub fn from_values<'v>(
                name: &str,
                values: impl IntoIterator<Item = (&'v str, Value)>,
            ) -> Result<Self, ParameterError> {
                match name {
                    $(<$law>::NAME => <$law as Aqm>::Params::from_values(values).map(Self::$variant),)+
                    _ => Err(ParameterError::unknown_choice("aqm", name, &[$(<$law>::NAME),+])),
                }
            }

            /// The AQM's name.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$law>::NAME),+ }
            }

            /// Every parameter with what it is set to.
            pub fn values(&self) -> Vec<(&'static str, Option<Value>)> {
                match self { $(Self::$variant(params) => params.values()),+ }
            }

            /// The law in front of a link of that rate.
            ///
            /// # Errors
            /// When a parameter was set in code to what is not allowed.
            pub fn build(&self, rate: Rate) -> Result<AnyAqm, ParameterError> {
                match self { $(Self::$variant(params) => <$law>::build(params, rate).map(AnyAqm::$variant)),+ }
            }
        }

        impl DropProbability for AnyAqm {
            #[inline]
            fn advance(&mut self, now: Instant, backlog: Backlog) {
                match self { $(Self::$variant(law) => law.advance(now, backlog)),+ }
            }
            #[inline]
            fn arrive(&mut self, now: Instant, arrival: Arrival, backlog: Backlog) -> Probability {
                match self { $(Self::$variant(law) => law.arrive(now, arrival, backlog)),+ }
            }
            fn probability(&self) -> Option<Probability> {
                match self { $(Self::$variant(law) => law.probability()),+ }
            }
            #[inline]
            fn may_mark(&self) -> bool {
                match self { $(Self::$variant(law) => law.may_mark()),+ }
            }
            fn readings(&self) -> Readings {
                match self { $(Self::$variant(law) => law.readings()),+ }
            }
            #[inline]
            fn judged(&mut self, now: Instant, arrival: Arrival, verdict: Verdict) {
                match self { $(Self::$variant(law) => law.judged(now, arrival, verdict)),+ }
            }
            #[inline]
            fn departed(&mut self, now: Instant, size: u32, arrived: Instant, backlog: Backlog) {
                match self { $(Self::$variant(law) => law.departed(now, size, arrived, backlog)),+ }
            }
            fn set_rate(&mut self, now: Instant, rate: Rate) {
                match self { $(Self::$variant(law) => law.set_rate(now, rate)),+ }
            }
            fn reset(&mut self, now: Instant) {
                match self { $(Self::$variant(law) => law.reset(now)),+ }
            }
        }
    };
}

registry! {
    /// No AQM: packets are dropped when the queue is full.
    DropTail(crate::NoEarlyDrop),
    /// The proportional-integral controller.
    Pi(crate::Pi),
    /// Random early detection.
    Red(crate::Red),
    /// RED that finds its own largest probability.
    Ared(crate::Ared),
    /// Adaptive RED whose target follows the hints.
    RedWorcester(crate::RedWorcester),
    /// Drops follow overflow and idleness.
    Blue(crate::Blue),
    /// State feedback.
    Sfc(crate::Sfc),
    /// The proportional-integral controller of the delay, enhanced.
    Pie(crate::Pie),
    /// The proportional-integral controller of the delay, squared.
    Pi2(crate::Pi2),
}

/// What can be set of TSQ, whichever AQM it rides on.
pub fn describe_tsq() -> Vec<&'static Parameter> {
    TsqParams::describe()
}

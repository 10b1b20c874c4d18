//! Every AQM by name: one line each, at the end of this file's first half.
//!
//! [`AqmSpec`] is an AQM with its parameters. Most are laws, [`AnyAqm`], which a FIFO or TSQ asks for a
//! probability; some are queues of their own, [`AnyDiscipline`]. Both dispatch by a `match` rather than through a
//! pointer: a queue of it costs a predicted branch more than one of the law itself.

use crate::forward::{forward_law, forward_queue};
use crate::{Aqm, Discipline, Limit, TsqParams};
use cutline_params::{Parameter, ParameterError, Parameters as _, Value};
use cutline_units::Rate;

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
    /// Whether TSQ can ride on it.
    pub takes_tsq: bool,
}

/// Writes the enums and their matches from the list of AQMs.
macro_rules! registry {
    (
        laws { $($(#[$doc:meta])* $variant:ident($law:ty)),+ $(,)? }
        disciplines { $($(#[$qdoc:meta])* $queue:ident),+ $(,)? }
    ) => {
        /// An AQM and its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AqmSpec {
            $($(#[$doc])* $variant(<$law as Aqm>::Params),)+
            $($(#[$qdoc])* $queue(<crate::$queue<()> as Discipline>::Params)),+
        }

        /// Any queue of the registry that is more than a law.
        #[derive(Clone, Debug)]
        pub enum AnyDiscipline<P> { $($(#[$qdoc])* $queue(crate::$queue<P>)),+ }

        /// Any law of the registry. Its tag is a number of its own: a queue asks four times a packet which law it
        /// is, and one hidden in a niche takes three instructions to find.
        #[derive(Clone, Debug)]
        #[repr(u32)]
        pub enum AnyAqm { $($(#[$doc])* $variant($law)),+ }

        /// Every AQM there is.
        pub fn describe() -> Vec<AqmDescription> {
            vec![
                $(AqmDescription {
                    name: <$law>::NAME,
                    title: <$law>::TITLE,
                    source: <$law>::SOURCE,
                    parameters: <$law as Aqm>::Params::describe(),
                    takes_tsq: true,
                },)+
                $(AqmDescription {
                    name: crate::$queue::<()>::NAME,
                    title: crate::$queue::<()>::TITLE,
                    source: crate::$queue::<()>::SOURCE,
                    parameters: <crate::$queue<()> as Discipline>::Params::describe(),
                    takes_tsq: false,
                }),+
            ]
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
                    $(crate::$queue::<()>::NAME => {
                        <crate::$queue<()> as Discipline>::Params::from_values(values).map(Self::$queue)
                    })+
                    _ => {
                        let names = [$(<$law>::NAME,)+ $(crate::$queue::<()>::NAME),+];
                        Err(ParameterError::unknown_choice("aqm", name, &names))
                    }
                }
            }

            /// The AQM's name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$law>::NAME,)+
                    $(Self::$queue(_) => crate::$queue::<()>::NAME),+
                }
            }

            /// Whether TSQ can ride on it: whether it is a law.
            pub const fn takes_tsq(&self) -> bool {
                match self { $(Self::$variant(_) => true,)+ $(Self::$queue(_) => false),+ }
            }

            /// Every parameter with what it is set to.
            pub fn values(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant(params) => params.values(),)+
                    $(Self::$queue(params) => params.values()),+
                }
            }

            /// What it is in front of a link of that rate: a law, or a queue with that limit.
            ///
            /// # Errors
            /// When a parameter was set in code to what is not allowed.
            pub fn build<P: Copy>(
                &self,
                limit: Limit,
                ecn: bool,
                rate: Rate,
            ) -> Result<Built<P>, ParameterError> {
                match self {
                    $(Self::$variant(params) => <$law>::build(params, rate).map(AnyAqm::$variant).map(Built::Law),)+
                    $(Self::$queue(params) => {
                        let queue = crate::$queue::build(params, limit, ecn, rate)?;
                        Ok(Built::Discipline(Box::new(AnyDiscipline::$queue(queue))))
                    })+
                }
            }
        }

        forward_queue!(#[inline(never)] AnyDiscipline { $($queue),+ });
        forward_law!(AnyAqm { $($variant),+ });
    };
}

/// What an [`AqmSpec`] turns out to be.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "taken apart as soon as it is made")]
pub enum Built<P> {
    /// A law, for a FIFO or TSQ.
    Law(AnyAqm),
    /// A queue of its own.
    Discipline(Box<AnyDiscipline<P>>),
}

registry! {
    laws {
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
    disciplines {
        /// Drops at the head once packets have waited too long.
        CoDel,
        /// A CoDel queue for every flow, in turn.
        FqCoDel,
        /// The smallest hint first.
        StrictPriority,
        /// Flows or hints in turn, by bytes.
        Drr,
        /// A queue for scalable traffic beside one for classic, coupled.
        DualPi2,
        /// Little delay for some, no harm for the others.
        Abe,
    }
}

/// What can be set of TSQ, whichever AQM it rides on.
pub fn describe_tsq() -> Vec<&'static Parameter> {
    TsqParams::describe()
}

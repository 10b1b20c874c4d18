//! Every AQM by name: one line each, at the end of this file.
//!
//! [`AqmSpec`] is an AQM with its parameters. Most AQMs are laws, [`AnyAqm`], which answer a FIFO or TSQ with a
//! probability. The others are disciplines, [`AnyDiscipline`], which are queues themselves. Both dispatch by a `match`
//! rather than through a pointer. That costs a predicted branch more than the law or the discipline alone.
//!
//! AQMs of other crates and languages are registered while the program runs ([`register_law`],
//! [`register_discipline`], [`register`]). They are found by the same names, in the same files, with the same messages,
//! and cost a call through a pointer.

use crate::bands::{Bands, BandsSpec};
use crate::discipline::tsq_on_a_discipline;
use crate::external::{TypedDiscipline, TypedLaw};
use crate::forward::{forward_law, forward_queue};
use crate::{AnyQueue, Aqm, Discipline, Fifo, Limit, Queue, Tsq, TsqParams};
use cutline_params::{ParameterError, ParameterValue, Parameters as _, Registry, RegistryError};
use cutline_units::{Duration, Rate};
use std::fmt::Debug;

pub use crate::description::AqmDescription;

/// Returns the description of TSQ, which works on top of an AQM.
pub fn describe_tsq() -> AqmDescription {
    AqmDescription {
        name: "tsq",
        title: "TSQ",
        source: "the TSQ paper, section 3; on top of any AQM that decides by a probability: tsq = true or { ... }",
        parameters: TsqParams::describe(),
        takes_tsq: false,
    }
}
pub use crate::external::{
    DynLaw, DynQueue, ExternalAqm, ExternalQueue, ExternalSpec, ExternalValues, PacketId, Product,
};

/// The keys of a queue's table in a file other than the parameters of its AQM.
const QUEUE_KEYS: &[&str] = &["aqm", "below", "ecn", "limit", "pass-on-waiting", "tsq"];

static EXTERNAL: Registry<dyn ExternalAqm> = Registry::new(NAMES, QUEUE_KEYS);

/// Adds an AQM under the name in its description, for as long as the process runs.
///
/// # Errors
/// When the name is taken or not in kebab-case, or the parameters are not sound.
pub fn register(aqm: Box<dyn ExternalAqm>) -> Result<(), RegistryError> {
    let AqmDescription { name, parameters, .. } = aqm.describe();
    EXTERNAL.add(name, &parameters, aqm)
}

/// Adds a law under its name, for as long as the process runs.
///
/// # Errors
/// As [`register`].
pub fn register_law<A>() -> Result<(), RegistryError>
where
    A: Aqm + Clone + Debug + Send + Sync + 'static,
{
    register(Box::new(TypedLaw::<A>::default()))
}

/// Adds a discipline under its name, for as long as the process runs.
///
/// # Errors
/// As [`register`].
pub fn register_discipline<D>() -> Result<(), RegistryError>
where
    D: Discipline + Queue<PacketId> + Clone + Debug + Send + Sync + 'static,
{
    register(Box::new(TypedDiscipline::<D>::default()))
}

/// Returns the replacement of a parameter that an AQM had in an earlier version, in words that follow the parameter's name.
pub fn former_parameter(aqm: &str, name: &str) -> Option<&'static str> {
    if aqm == <crate::Sieve<()> as Discipline>::NAME { crate::sieve::former_parameter(name) } else { None }
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
            $($(#[$qdoc])* $queue(<crate::$queue<()> as Discipline>::Params),)+
            /// Strict priority over queues of another AQM.
            Bands(BandsSpec),
            /// An AQM that another crate or language has registered.
            External(ExternalSpec),
        }

        /// The names of this crate's own.
        const NAMES: &[&str] = &[$(<$law>::NAME,)+ $(crate::$queue::<()>::NAME),+];

        /// Any queue of the registry that is more than a law.
        #[derive(Clone, Debug)]
        #[expect(clippy::large_enum_variant, reason = "there is one for each link, in a box")]
        pub enum AnyDiscipline<P> {
            $($(#[$qdoc])* $queue(crate::$queue<P>),)+
            /// Strict priority over queues of another AQM.
            Bands(Bands<P>),
            /// A queue with an AQM that another crate or language has registered, laws too.
            External(ExternalQueue<P>),
        }

        /// Any law of the registry. Its tag is a separate number: a queue checks its law four times a packet,
        /// and a tag that is hidden in a niche takes three instructions to find.
        #[derive(Clone, Debug)]
        #[repr(u32)]
        pub enum AnyAqm { $($(#[$doc])* $variant($law)),+ }

        /// Every AQM there is: this crate's own, then the registered ones by name.
        pub fn describe() -> Vec<AqmDescription> {
            let mut all = vec![
                $(AqmDescription::from_law::<$law>(),)+
                $(AqmDescription::from_discipline::<crate::$queue<()>>()),+
            ];
            all.extend(EXTERNAL.all().into_iter().map(ExternalAqm::describe));
            all
        }

        impl AqmSpec {
            /// The AQM of that name with its defaults, changed by `values`.
            ///
            /// # Errors
            /// When there is no such AQM or parameter, or a value is not allowed.
            pub fn from_values<'v>(
                name: &str,
                values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
            ) -> Result<Self, ParameterError> {
                match name {
                    $(<$law>::NAME => <$law as Aqm>::Params::from_values(values).map(Self::$variant),)+
                    $(crate::$queue::<()>::NAME => {
                        <crate::$queue<()> as Discipline>::Params::from_values(values).map(Self::$queue)
                    })+
                    _ => {
                        let aqm = EXTERNAL.get(name);
                        let aqm = aqm.ok_or_else(|| ParameterError::unknown_choice("aqm", name, &EXTERNAL.names()))?;
                        ExternalSpec::new(aqm, values).map(Self::External)
                    }
                }
            }

            /// The AQM's name.
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$law>::NAME,)+
                    $(Self::$queue(_) => crate::$queue::<()>::NAME,)+
                    Self::Bands(_) => crate::StrictPriority::<()>::NAME,
                    Self::External(spec) => spec.name(),
                }
            }

            /// The AQM of each class of strict priority, unless that is drop-tail; `None` for other AQMs.
            pub fn below(&self) -> Option<&Self> {
                match self {
                    Self::Bands(spec) => Some(&spec.below),
                    _ => None,
                }
            }

            /// Strict priority over queues of `below`.
            ///
            /// # Errors
            /// When this is another AQM, or `below` cannot be below it.
            pub fn with_below(self, below: Self) -> Result<Self, ParameterError> {
                let (name, refused) = (self.name(), below.name());
                match (self, below) {
                    (Self::StrictPriority(_), Self::StrictPriority(_) | Self::Bands(_)) => {
                        Err(ParameterError::new("below", refused, format!("an AQM other than {name}")))
                    }
                    (priority @ Self::StrictPriority(_), Self::DropTail(_)) => Ok(priority),
                    (Self::StrictPriority(priority), below) => {
                        Ok(Self::Bands(BandsSpec { priority, below: Box::new(below) }))
                    }
                    (Self::Sieve(_), _) => {
                        let why = crate::sieve::former_parameter("below").unwrap_or_default();
                        Err(ParameterError::new("below", refused, format!("nothing with {name}: it {why}")))
                    }
                    _ => {
                        let why = format!("nothing with {name}: only strict-priority has queues below it");
                        Err(ParameterError::new("below", refused, why))
                    }
                }
            }

            /// The law in front of a link of rate `rate`; `None` for an AQM that is none, or one of another crate.
            ///
            /// # Errors
            /// When a parameter was set in code to a value that is not allowed.
            pub(crate) fn law(&self, rate: Rate) -> Result<Option<AnyAqm>, ParameterError> {
                match self {
                    $(Self::$variant(params) => Ok(Some(AnyAqm::$variant(<$law>::build(params, rate)?))),)+
                    _ => Ok(None),
                }
            }

            /// The law in front of a link of rate `rate`, those of other crates included; `None` for a discipline.
            ///
            /// # Errors
            /// As [`law`](Self::law).
            pub(crate) fn boxed_law(&self, rate: Rate) -> Result<Option<Box<dyn DynLaw>>, ParameterError> {
                match self {
                    Self::External(spec) => spec.law(rate),
                    _ => Ok(self.law(rate)?.map(|law| Box::new(law) as Box<dyn DynLaw>)),
                }
            }

            /// Returns whether the AQM is a law, over which TSQ can work.
            pub const fn takes_tsq(&self) -> bool {
                match self {
                    $(Self::$variant(_) => true,)+
                    $(Self::$queue(_) => false,)+
                    Self::Bands(_) => false,
                    Self::External(spec) => spec.takes_tsq(),
                }
            }

            /// Every parameter with its value, but for those of [`below`](Self::below).
            pub fn values(&self) -> Vec<(&'static str, ParameterValue)> {
                match self {
                    $(Self::$variant(params) => params.values(),)+
                    $(Self::$queue(params) => params.values(),)+
                    Self::Bands(spec) => spec.priority.values(),
                    Self::External(spec) => spec.values().to_vec(),
                }
            }

            /// The AQM of that name with the parameters of [`Aqm::moderate_params`]; a discipline with its defaults.
            ///
            /// # Errors
            /// When there is no such AQM.
            pub fn moderate(name: &str) -> Result<Self, ParameterError> {
                match name {
                    $(<$law>::NAME => Ok(Self::$variant(<$law>::moderate_params())),)+
                    _ => {
                        let values = EXTERNAL.get(name).map_or_else(Vec::new, ExternalAqm::moderate_values);
                        Self::from_values(name, values)
                    }
                }
            }

            /// The delay of [`Aqm::standing_delay`] for a queue of this AQM.
            pub(crate) fn standing_delay(&self, limit: Limit, rate: Rate) -> Option<Duration> {
                match self {
                    $(Self::$variant(params) => <$law>::standing_delay(params, limit, rate),)+
                    $(Self::$queue(params) => crate::$queue::<()>::standing_delay(params, limit, rate),)+
                    Self::Bands(spec) => spec.below.standing_delay(limit, rate),
                    Self::External(spec) => spec.standing_delay(limit, rate),
                }
            }

            /// An empty queue in front of a link of rate `rate`: a FIFO of the law, TSQ on top of it, or the discipline.
            ///
            /// # Errors
            /// When a parameter was set in code to a value that is not allowed, or TSQ is to work on a discipline.
            pub(crate) fn build<P: Copy>(
                &self,
                tsq: Option<&TsqParams>,
                limit: Limit,
                ecn: bool,
                rate: Rate,
            ) -> Result<AnyQueue<P>, ParameterError> {
                match self {
                    $(Self::$variant(params) => {
                        let law = AnyAqm::$variant(<$law>::build(params, rate)?);
                        match tsq {
                            None => Ok(AnyQueue::Fifo(Fifo::new(limit, ecn, law))),
                            Some(tsq) => Tsq::new(tsq, limit, ecn, rate, law).map(AnyQueue::Tsq),
                        }
                    })+
                    $(Self::$queue(_) if tsq.is_some() => Err(tsq_on_a_discipline(self.name())),)+
                    $(Self::$queue(params) => {
                        let queue = AnyDiscipline::$queue(crate::$queue::build(params, limit, ecn, rate)?);
                        Ok(AnyQueue::Discipline(Box::new(queue)))
                    })+
                    Self::Bands(_) if tsq.is_some() => Err(tsq_on_a_discipline(self.name())),
                    Self::Bands(spec) => {
                        let queue = AnyDiscipline::Bands(spec.build(limit, ecn, rate)?);
                        Ok(AnyQueue::Discipline(Box::new(queue)))
                    }
                    Self::External(spec) => {
                        let queue = AnyDiscipline::External(spec.build(tsq, limit, ecn, rate)?);
                        Ok(AnyQueue::Discipline(Box::new(queue)))
                    }
                }
            }
        }

        forward_queue!(#[inline(never)] AnyDiscipline { $($queue,)+ Bands, External });
        forward_law!(AnyAqm { $($variant),+ });
    };
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
        /// A PIE queue for every flow, in turn.
        FqPie,
        /// Fair among hosts and flows, by class.
        Cake,
        /// The smallest hint first.
        StrictPriority,
        /// Flows or hints in turn, by bytes.
        Drr,
        /// One queue, in which flows above the fair share are dropped down to it.
        Afd,
        /// A queue for scalable traffic beside one for classic, coupled.
        DualPi2,
        /// The same, in which flows that build the low-delay queue are sent to the classic one.
        ProtectedDualPi2,
        /// Queues for sparse, quick, bulk and unresponsive flows, with controllers of delay.
        Deltic,
        /// Little delay for some, no harm for the others.
        Abe,
        /// A flow that has recently used less of its share is served before others.
        Sieve,
    }
}

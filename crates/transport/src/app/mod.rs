//! Applications: what writes into a sender, and what waits for its bytes to arrive.
//!
//! Whoever drives one asks `deadline`, calls `poll` from then on until it answers `None`, hands each [`Write`]
//! to the sender, and tells `on_delivered` how many bytes the receiver has in order:
//!
//! | application | writes | waits for delivery | source |
//! | --- | --- | --- | --- |
//! | [`Bulk`] | without end | no | |
//! | [`Cbr`] | a message each interval | no | |
//! | [`OnOff`] | at a constant rate, in bursts | no | Willinger et al. 1997 for Pareto bursts |
//! | [`Poisson`] | messages at random times | no | |
//! | [`Trace`] | what was recorded | no | |
//! | [`TalkSpurt`] | an on/off source with the numbers of speech | no | ITU-T P.59 |
//! | [`Files`] | one file after the other | yes | |
//! | [`RequestResponse`] | pages with their objects | yes | Mah 1997; Barford and Crovella 1998 |
//!
//! All chance comes from the stream that is handed in, and only in `start` and `poll`.
//!
//! An application is a module that implements [`Application`] for its type, and a line in the list at the end of this
//! file: scenario files, `--set`, `cutline app show` and the guide's tables follow. [`App`] dispatches by a `match`. An
//! application of another crate implements the same trait, is registered while the program runs ([`register_application`]),
//! and costs a call through a pointer.

mod bulk;
mod cbr;
mod external;
mod files;
mod on_off;
mod poisson;
mod ranges;
mod request_response;
mod talk_spurt;
mod trace;

pub use bulk::{Bulk, BulkParams};
pub use cbr::{Cbr, CbrParams};
pub use external::{DynSource, ExternalApplication, register, register_application};
pub use files::{Files, FilesParams};
pub use on_off::{OnOff, OnOffParams};
pub use poisson::{Poisson, PoissonParams};
pub use request_response::{RequestResponse, RequestResponseParams};
pub use talk_spurt::{TalkSpurt, TalkSpurtParams};
pub use trace::{Recorded, Trace, TraceParams};

use cutline_params::{Configured, Parameter, ParameterError, Parameters, Value};
use cutline_units::{Distribution, Duration, Instant, RandomStream};
use std::fmt::Debug;

/// What an application hands to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A message of this many bytes.
    Bytes(u64),
    /// Always more (`write_unlimited`).
    Unlimited,
}

/// A file or a response that has arrived whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When it was asked for.
    pub started: Instant,
    /// How long it took from then to its last byte in order at the receiver.
    pub latency: Duration,
    /// How long it was, bytes.
    pub bytes: u64,
}

/// An application at work.
pub trait TrafficSource {
    /// When it next has something to write; [`Instant::FAR_FUTURE`] while it waits for delivery, or for ever.
    fn deadline(&self) -> Instant;

    /// The next write that is due by `now`; ask until there is none. After that the deadline is later than `now`. Before
    /// the deadline nothing is written, and nothing drawn.
    fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write>;

    /// The receiver has `total` bytes in order, counted from the flow's start. What that completes, if it completes
    /// something.
    fn on_delivered(&mut self, _now: Instant, _total: u64) -> Option<Completion> {
        None
    }
}

/// A kind of application: its name, what can be set, and how one begins.
pub trait Application: TrafficSource + Sized {
    /// What can be set.
    type Params: Parameters + Clone + Debug + PartialEq + Send + Sync;

    /// The name in scenario files and on the command line.
    const NAME: &'static str;
    /// The name as people write it.
    const TITLE: &'static str;
    /// The paper, the standard, or what it models.
    const SOURCE: &'static str;
    /// Whether it waits for every byte to arrive, so that only a reliable transport can carry it.
    const WAITS_FOR_DELIVERY: bool = false;
    /// Whether it writes [`Write::Unlimited`], so that only a transport that adapts its rate can carry it.
    const ENDLESS: bool = false;

    /// The application, beginning at `at`. The parameters are valid.
    fn start(params: &Self::Params, at: Instant, random: &mut RandomStream) -> Self;

    /// The distribution of its messages' sizes, bytes; `None` where it does not write messages.
    fn message_size(_params: &Self::Params) -> Option<Distribution> {
        None
    }
}

/// The description of an application.
#[derive(Clone, Debug)]
pub struct ApplicationDescription {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// The name as people write it.
    pub title: &'static str,
    /// The paper, the standard, or what it models.
    pub source: &'static str,
    /// What can be set.
    pub parameters: Vec<&'static Parameter>,
    /// Whether it waits for every byte to arrive.
    pub waits_for_delivery: bool,
    /// Whether it writes without end.
    pub endless: bool,
}

impl ApplicationDescription {
    fn from_application<A: Application>() -> Self {
        Self {
            name: A::NAME,
            title: A::TITLE,
            source: A::SOURCE,
            parameters: A::Params::describe(),
            waits_for_delivery: A::WAITS_FOR_DELIVERY,
            endless: A::ENDLESS,
        }
    }
}

impl<S: TrafficSource + ?Sized> TrafficSource for Box<S> {
    #[inline]
    fn deadline(&self) -> Instant {
        (**self).deadline()
    }

    #[inline]
    fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write> {
        (**self).poll(now, random)
    }

    #[inline]
    fn on_delivered(&mut self, now: Instant, total: u64) -> Option<Completion> {
        (**self).on_delivered(now, total)
    }
}

/// An application that is large and rare is boxed, so that the others stay small.
impl<T: Application> Application for Box<T> {
    type Params = T::Params;

    const NAME: &'static str = T::NAME;
    const TITLE: &'static str = T::TITLE;
    const SOURCE: &'static str = T::SOURCE;
    const WAITS_FOR_DELIVERY: bool = T::WAITS_FOR_DELIVERY;
    const ENDLESS: bool = T::ENDLESS;

    fn start(params: &T::Params, at: Instant, random: &mut RandomStream) -> Self {
        Self::new(T::start(params, at, random))
    }

    fn message_size(params: &T::Params) -> Option<Distribution> {
        T::message_size(params)
    }
}

/// Writes the enums of all applications and their matches.
macro_rules! applications {
    ($($(#[$doc:meta])* $variant:ident($app:ty)),+ $(,)?) => {
        /// An application and its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Params {
            $($(#[$doc])* $variant(<$app as Application>::Params),)+
            /// What was recorded. It has no name in files.
            Trace(TraceParams),
            /// An application that another crate has registered.
            External(Configured<dyn ExternalApplication>),
        }

        /// An application at work.
        #[derive(Clone, Debug)]
        pub enum App {
            $($(#[$doc])* $variant($app),)+
            /// What was recorded.
            Trace(Box<Trace>),
            /// An application that another crate has registered.
            External(Box<dyn DynSource>),
        }

        /// The names of this crate's own.
        const NAMES: &[&str] = &[$(<$app>::NAME),+];

        /// Every application that files can name: this crate's own, then the registered ones by name.
        pub fn describe() -> Vec<ApplicationDescription> {
            let mut all = vec![$(ApplicationDescription::from_application::<$app>()),+];
            all.extend(external::describe());
            all
        }

        impl Params {
            /// The application of that name with its defaults, changed by `values`.
            ///
            /// # Errors
            /// When there is no such application or parameter, a required one is missing, or a value is not allowed.
            pub fn from_values<'v>(
                name: &str,
                values: impl IntoIterator<Item = (&'v str, Value)>,
            ) -> Result<Self, ParameterError> {
                match name {
                    $(<$app>::NAME => <$app as Application>::Params::from_values(values).map(Self::$variant),)+
                    _ => external::configure(name, values).map(Self::External),
                }
            }

            /// The application's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$app>::NAME,)+
                    Self::Trace(_) => "trace",
                    Self::External(application) => application.thing().name(),
                }
            }

            /// Every parameter with what it is set to.
            pub fn values(&self) -> Vec<(&'static str, Value)> {
                match self {
                    $(Self::$variant(params) => params.values(),)+
                    Self::Trace(_) => Vec::new(),
                    Self::External(application) => application.values().to_vec(),
                }
            }

            /// Checks every field against its range.
            ///
            /// # Errors
            /// The first field that is out of range, with its value and what is allowed.
            pub fn validate(&self) -> Result<(), ParameterError> {
                match self {
                    $(Self::$variant(params) => params.validate(),)+
                    Self::Trace(params) => params.validate(),
                    Self::External(_) => Ok(()),
                }
            }

            /// The application, beginning at `at`. The parameters must be valid.
            pub fn start(&self, at: Instant, random: &mut RandomStream) -> App {
                debug_assert_eq!(self.validate(), Ok(()), "validate parameters where they are read");
                match self {
                    $(Self::$variant(params) => App::$variant(<$app>::start(params, at, random)),)+
                    Self::Trace(params) => App::Trace(Box::new(Trace::new(params, at))),
                    Self::External(application) => App::External(external::start(application, at, random)),
                }
            }

            /// Whether it waits for every byte to arrive, so that only a reliable transport can carry it.
            pub fn needs_reliability(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <$app>::WAITS_FOR_DELIVERY,)+
                    Self::Trace(_) => false,
                    Self::External(application) => application.thing().describe().waits_for_delivery,
                }
            }

            /// Whether it writes without end, so that only a transport that adapts its rate can carry it.
            pub fn is_endless(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <$app>::ENDLESS,)+
                    Self::Trace(_) => false,
                    Self::External(application) => application.thing().describe().endless,
                }
            }

            /// The distribution of its messages' sizes.
            fn message_sizes(&self) -> Option<Distribution> {
                match self {
                    $(Self::$variant(params) => <$app>::message_size(params),)+
                    Self::Trace(_) => None,
                    Self::External(application) => application.thing().message_size(application.values()),
                }
            }
        }

        impl TrafficSource for App {
            #[inline]
            fn deadline(&self) -> Instant {
                match self {
                    $(Self::$variant(app) => app.deadline(),)+
                    Self::Trace(app) => app.deadline(),
                    Self::External(app) => app.deadline(),
                }
            }

            fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write> {
                match self {
                    $(Self::$variant(app) => app.poll(now, random),)+
                    Self::Trace(app) => app.poll(now, random),
                    Self::External(app) => app.poll(now, random),
                }
            }

            #[inline]
            fn on_delivered(&mut self, now: Instant, total: u64) -> Option<Completion> {
                match self {
                    $(Self::$variant(app) => app.on_delivered(now, total),)+
                    Self::Trace(app) => app.on_delivered(now, total),
                    Self::External(app) => app.on_delivered(now, total),
                }
            }
        }
    };
}

impl Params {
    /// Data without end.
    pub const BULK: Self = Self::Bulk(BulkParams {});

    /// The size of its messages, bytes, where they are all of one.
    pub fn message_size(&self) -> Option<u64> {
        match self.message_sizes()? {
            Distribution::Fixed(size) => Some(size.round() as u64),
            _ => None,
        }
    }

    /// The least size of its messages, bytes; `None` where none is known to be the least, or where it writes no messages.
    pub fn least_message(&self) -> Option<u64> {
        if let Self::Trace(params) = self {
            return params.messages.iter().map(|message| message.bytes).min();
        }
        self.message_sizes()?.least().map(|least| least.round() as u64)
    }
}

applications! {
    /// Data without end.
    Bulk(Bulk),
    /// A message each interval.
    Cbr(Cbr),
    /// Constant-rate bursts.
    OnOff(OnOff),
    /// One file after the other.
    Files(Files),
    /// Web-like pages.
    RequestResponse(Box<RequestResponse>),
    /// Speech with silence suppression.
    TalkSpurt(Box<TalkSpurt>),
    /// Messages at random times.
    Poisson(Box<Poisson>),
}

#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;

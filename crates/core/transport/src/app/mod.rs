//! Applications: sources of traffic that write to a sender. Some of them wait until their bytes arrive.
//!
//! The caller waits for `deadline`, then calls `poll` until it returns `None` and passes each [`Write`] to the sender. It
//! calls `on_delivered` with the number of bytes that the receiver has in order:
//!
//! | application | writes | waits for delivery | source |
//! | --- | --- | --- | --- |
//! | [`Bulk`] | without end | no | |
//! | [`Cbr`] | a message each interval | no | |
//! | [`OnOff`] | at a constant rate, in bursts | no | Willinger et al. 1997 for Pareto bursts |
//! | [`Poisson`] | messages at random times | no | |
//! | [`TracePlayback`] | recorded messages | no | |
//! | [`TalkSpurt`] | speech with silence suppression, an on/off source | no | ITU-T P.59 |
//! | [`Files`] | one file after the other | yes | |
//! | [`Transfer`] | a number of bytes, once | yes | flows of data-centre studies |
//! | [`RequestResponse`] | pages with their objects | yes | Mah 1997; Barford and Crovella 1998 |
//!
//! All random numbers come from the stream that the caller passes to `start` and `poll`.
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
mod transfer;

pub use bulk::{Bulk, BulkParams};
pub use cbr::{Cbr, CbrParams};
pub use external::{DynSource, ExternalApplication, register, register_application};
pub use files::{Files, FilesParams};
pub use on_off::{OnOff, OnOffParams};
pub use poisson::{Poisson, PoissonParams};
pub use request_response::{RequestResponse, RequestResponseParams};
pub use talk_spurt::{TalkSpurt, TalkSpurtParams};
pub use trace::{Recorded, TraceParams, TracePlayback};
pub use transfer::{Transfer, TransferParams};

use cutline_params::{Configured, Parameter, ParameterError, ParameterValue, Parameters};
use cutline_units::{Distribution, Duration, Instant, RandomStream};
use std::fmt::Debug;

pub use crate::write::Write;

/// A file or a response that has arrived completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Time of its request.
    pub started: Instant,
    /// Time from the request to the arrival of the last byte in order at the receiver.
    pub latency: Duration,
    /// Size, bytes.
    pub bytes: u64,
}

/// A running application.
pub trait TrafficSource {
    /// Time of the next write; [`Instant::FAR_FUTURE`] while it waits for delivery, or if there is none.
    fn deadline(&self) -> Instant;

    /// Returns the next write that is due by `now`. The caller must call it until it returns `None`; the deadline is then
    /// later than `now`. A call before the deadline writes nothing and draws no random number.
    fn poll(&mut self, now: Instant, random: &mut RandomStream) -> Option<Write>;

    /// Handles the delivery of `total` bytes in order, counted from the flow's start. Returns the transfer that this
    /// completes, if any.
    fn on_delivered(&mut self, _now: Instant, _total: u64) -> Option<Completion> {
        None
    }
}

/// A kind of application: its name, its parameters, and its start.
pub trait Application: TrafficSource + Sized {
    /// The parameters.
    type Params: Parameters + Clone + Debug + PartialEq + Send + Sync;

    /// The name in scenario files and on the command line.
    const NAME: &'static str;
    /// The title.
    const TITLE: &'static str;
    /// The paper, the standard, or the modelled traffic.
    const SOURCE: &'static str;
    /// True if the application waits until every byte has arrived, and so needs a reliable transport.
    const WAITS_FOR_DELIVERY: bool = false;
    /// True if the application writes [`Write::Unlimited`], and so needs a transport that adapts its rate.
    const ENDLESS: bool = false;

    /// Starts the application at `at`. The parameters are valid.
    fn start(params: &Self::Params, at: Instant, random: &mut RandomStream) -> Self;

    /// Returns the distribution of the sizes of its messages, bytes; `None` if it does not write messages.
    fn message_size(_params: &Self::Params) -> Option<Distribution> {
        None
    }
}

/// The description of an application.
#[derive(Clone, Debug)]
pub struct ApplicationDescription {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// The title.
    pub title: &'static str,
    /// The paper, the standard, or the modelled traffic.
    pub source: &'static str,
    /// The parameters.
    pub parameters: Vec<&'static Parameter>,
    /// True if it waits until every byte has arrived.
    pub waits_for_delivery: bool,
    /// True if its supply of data is unlimited.
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

/// Large and rare applications are boxed, so that the enum stays small.
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
            /// A recorded trace. It has no name in files.
            Trace(TraceParams),
            /// An application that another crate has registered.
            External(Configured<dyn ExternalApplication>),
        }

        /// A running application.
        #[derive(Clone, Debug)]
        pub enum App {
            $($(#[$doc])* $variant($app),)+
            /// A recorded trace.
            Trace(Box<TracePlayback>),
            /// An application that another crate has registered.
            External(Box<dyn DynSource>),
        }

        /// The names of the applications of this crate.
        const NAMES: &[&str] = &[$(<$app>::NAME),+];

        /// Returns all applications that files can name: those of this crate, then the registered ones by name.
        pub fn describe() -> Vec<ApplicationDescription> {
            let mut all = vec![$(ApplicationDescription::from_application::<$app>()),+];
            all.extend(external::describe());
            all
        }

        impl Params {
            /// Returns the application of that name with its defaults, overridden by `values`.
            ///
            /// # Errors
            /// When there is no such application or parameter, a required one is missing, or a value is not allowed.
            pub fn from_values<'v>(
                name: &str,
                values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
            ) -> Result<Self, ParameterError> {
                match name {
                    $(<$app>::NAME => <$app as Application>::Params::from_values(values).map(Self::$variant),)+
                    _ => external::configure(name, values).map(Self::External),
                }
            }

            /// Returns the application's name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => <$app>::NAME,)+
                    Self::Trace(_) => "trace",
                    Self::External(application) => application.thing().name(),
                }
            }

            /// Returns all parameters with their values.
            pub fn values(&self) -> Vec<(&'static str, ParameterValue)> {
                match self {
                    $(Self::$variant(params) => params.values(),)+
                    Self::Trace(_) => Vec::new(),
                    Self::External(application) => application.values().to_vec(),
                }
            }

            /// Checks every field against its range.
            ///
            /// # Errors
            /// The first field that is out of range, with its value and the allowed range.
            pub fn validate(&self) -> Result<(), ParameterError> {
                match self {
                    $(Self::$variant(params) => params.validate(),)+
                    Self::Trace(params) => params.validate(),
                    Self::External(_) => Ok(()),
                }
            }

            /// Starts the application at `at`. The parameters must be valid.
            pub fn start(&self, at: Instant, random: &mut RandomStream) -> App {
                debug_assert_eq!(self.validate(), Ok(()), "parameters must be validated when they are read");
                match self {
                    $(Self::$variant(params) => App::$variant(<$app>::start(params, at, random)),)+
                    Self::Trace(params) => App::Trace(Box::new(TracePlayback::new(params, at))),
                    Self::External(application) => App::External(external::start(application, at, random)),
                }
            }

            /// Returns whether it waits until every byte has arrived, and so needs a reliable transport.
            pub fn needs_reliability(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <$app>::WAITS_FOR_DELIVERY,)+
                    Self::Trace(_) => false,
                    Self::External(application) => application.thing().describe().waits_for_delivery,
                }
            }

            /// Returns whether its supply of data is unlimited, so that it needs a transport that adapts its
            /// rate.
            pub fn is_endless(&self) -> bool {
                match self {
                    $(Self::$variant(_) => <$app>::ENDLESS,)+
                    Self::Trace(_) => false,
                    Self::External(application) => application.thing().describe().endless,
                }
            }

            /// Returns the distribution of the sizes of its messages.
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
    /// An unlimited supply of data.
    pub const BULK: Self = Self::Bulk(BulkParams {});

    /// Returns the size of its messages, bytes, if all have the same size.
    pub fn message_size(&self) -> Option<u64> {
        match self.message_sizes()? {
            Distribution::Fixed(size) => Some(size.round() as u64),
            _ => None,
        }
    }

    /// Returns the smallest size of its messages, bytes; `None` if there is no known minimum, or it writes no messages.
    pub fn least_message(&self) -> Option<u64> {
        if let Self::Trace(params) = self {
            return params.messages.iter().map(|message| message.bytes).min();
        }
        self.message_sizes()?.least().map(|least| least.round() as u64)
    }
}

applications! {
    /// An unlimited supply of data.
    Bulk(Bulk),
    /// A message each interval.
    Cbr(Cbr),
    /// Constant-rate bursts.
    OnOff(Box<OnOff>),
    /// Files, one after the other.
    Files(Box<Files>),
    /// Web-like pages.
    RequestResponse(Box<RequestResponse>),
    /// Speech with silence suppression.
    TalkSpurt(Box<TalkSpurt>),
    /// Messages at random times.
    Poisson(Box<Poisson>),
    /// A number of bytes, once.
    Transfer(Transfer),
}

#[cfg(test)]
#[path = "app_tests.rs"]
mod tests;

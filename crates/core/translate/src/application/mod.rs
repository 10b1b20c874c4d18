//! The application translators: from the words of a class of applications to the generic specification (QUANTA section 5).
//!
//! Each class has a file: its parameters, in the words of the application, and the requirements that follow from them. With the defaults, the
//! specification of a class is that of [`Preset`](cutline_quality::spec::Preset).

mod audio;
mod file;
mod game;
mod telemetry;
mod video;
mod web;

pub use audio::{AudioParams, Codec};
pub use file::FileParams;
pub use game::GameParams;
pub use telemetry::TelemetryParams;
pub use video::VideoParams;
pub use web::WebParams;

use crate::decision::Decision;
use crate::demand::Demand;
use cutline_params::{Parameter, ParameterError, ParameterValue, Parameters};
use cutline_quality::spec::{SpecParameter, Specification};
use cutline_units::{Bytes, Duration};

/// A class of applications described in its own words.
pub(crate) trait ApplicationTranslator: Parameters {
    /// The name of the class.
    const NAME: &'static str;
    /// Title in a few words.
    const TITLE: &'static str;

    /// Returns the demands on the generic parameters. The parameters have been checked.
    fn demands(&self) -> Vec<Demand>;
}

/// The least rate of messages that a specification can have.
const SLOWEST: f64 = 0.001;
/// The longest message of a transfer whose length does not matter.
const TRANSFER_BLOCK: u64 = 1 << 16;

/// The message size and the least rate of a transfer that must end in time.
fn transfer(size: Bytes, within: Duration, source: &'static str) -> [Demand; 2] {
    let message = Bytes::new(size.get().min(TRANSFER_BLOCK));
    let rate = size.get() as f64 / within.as_secs_f64() / message.get() as f64;
    let why = format!("{size} within {within}, in messages of {message}");
    [
        Demand::new(SpecParameter::MinRate, rate.max(SLOWEST), source, why),
        Demand::new(SpecParameter::Size, message, "", "one write; the length of messages is of no matter"),
    ]
}

/// Makes the enum of all classes.
macro_rules! applications {
    ($($(#[$doc:meta])* $variant:ident($params:ty);)+) => {
        /// An application, described in the words of its class.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ApplicationProfile { $($(#[$doc])* $variant($params)),+ }

        impl ApplicationProfile {
            /// The names of the classes.
            pub const NAMES: &'static [&'static str] = &[$(<$params>::NAME),+];

            /// The application of a class: the defaults, changed by `values`.
            ///
            /// # Errors
            /// When there is no such class or parameter, a value is not allowed, or values do not go together.
            pub fn from_values<'v>(
                class: &str,
                values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
            ) -> Result<Self, ParameterError> {
                match class {
                    $(<$params>::NAME => <$params>::from_values(values).map(Self::$variant),)+
                    _ => Err(ParameterError::unknown_choice("class", class, Self::NAMES)),
                }
            }

            /// The parameters of a class.
            ///
            /// # Errors
            /// When there is no such class.
            pub fn describe(class: &str) -> Result<Vec<&'static Parameter>, ParameterError> {
                match class {
                    $(<$params>::NAME => Ok(<$params>::describe()),)+
                    _ => Err(ParameterError::unknown_choice("class", class, Self::NAMES)),
                }
            }

            /// The name of the class.
            pub const fn name(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$params>::NAME),+ }
            }

            /// Returns the title of the class, in a few words.
            pub const fn title(&self) -> &'static str {
                match self { $(Self::$variant(_) => <$params>::TITLE),+ }
            }

            /// Every parameter with its value.
            pub fn values(&self) -> Vec<(&'static str, ParameterValue)> {
                match self { $(Self::$variant(params) => params.values()),+ }
            }

            fn checked_demands(&self) -> Result<Vec<Demand>, ParameterError> {
                match self {
                    $(Self::$variant(params) => params.validate().map(|()| params.demands())),+
                }
            }
        }
    };
}

impl ApplicationProfile {
    /// The generic specification, and why each of its parameters has its value.
    ///
    /// # Errors
    /// When a parameter was set in code to a value that is not allowed, or the specification does not allow the values that follow from them.
    pub fn specification(&self) -> Result<(Specification, Vec<Decision>), ParameterError> {
        Demand::specification(&self.checked_demands()?)
    }
}

applications! {
    /// Speech or music, as it is spoken or from a server.
    Audio(AudioParams);
    /// Moving pictures, as they are taken or from a server.
    Video(VideoParams);
    /// Transfer of files.
    File(FileParams);
    /// Web pages.
    Web(WebParams);
    /// A networked game.
    Game(GameParams);
    /// Measured values and commands.
    Telemetry(TelemetryParams);
}

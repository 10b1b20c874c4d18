//! Translation of an application's needs into settings of its host and requests to the network, each with its reason (QUANTA
//! sections 3 and 5).
//!
//! With M classes of applications and N protocols and network services there would be M x N translations. A generic
//! [specification](cutline_quality::spec::Specification) in the middle makes them M + N:
//!
//! | from | to | in QUANTA | here |
//! | --- | --- | --- | --- |
//! | the words of a class of applications | generic specification | `ATranslator` | [`ApplicationProfile`], a file for each class |
//! | generic specification, protocol | settings of the end system | `EPTranslator` | [`Protocol`], a file for each protocol |
//! | generic specification, service | request to the network | `NTranslator` | [`Service`], a file for each service |
//!
//! [`translate`] puts them together, and is the only place that does. It also chooses the protocol if the application leaves
//! it open ([`selection`]). Every value comes with a [`Decision`] that gives its reason. Where nothing is
//! demanded, a setting is `None`: the kernel's default stays.
//!
//! ```
//! use cutline_translate::{ApplicationProfile, Path, Protocol, TranslationRequest, translate};
//! use cutline_units::Duration;
//!
//! let call = ApplicationProfile::from_values("audio", [])?;
//! let mut request = TranslationRequest::from_application(&call)?;
//! request.path = Path { rtt: Some(Duration::from_millis(300)), ..Path::default() };
//!
//! let translation = translate(&request)?;
//! assert_eq!(translation.protocol, Protocol::Udp);
//! assert_eq!(translation.network.hint.unwrap().level(), 6);
//! for decision in &translation.decisions {
//!     println!("{}: {}", decision.setting, decision.reason);
//! }
//! # Ok::<(), cutline_params::ParameterError>(())
//! ```
//!
//! The crate decides; it opens no socket. The offer of the host and the path is an input, as a [`Path`], and as measurements, a
//! [`Baseline`]. A caller that measures the path later translates again.
//!
//! To add a class, a protocol or a service, write its file and add its line to the list at the end of `application/mod.rs`,
//! `protocol/mod.rs` or `service/mod.rs`.

mod application;
mod baseline;
mod decision;
mod delay_budget;
mod demand;
mod list;
mod path;
mod protocol;
mod service;
mod settings;
mod stream;
mod translation;

pub use application::{
    ApplicationProfile, AudioParams, Codec, FileParams, GameParams, TelemetryParams, VideoParams, WebParams,
};
pub use baseline::{Baseline, BaselinePoint, Margin};
pub use cutline_flow::TrafficSpec;
pub use decision::{Decision, Layer};
pub use path::Path;
pub use protocol::{Protocol, selection};
pub use service::{Service, code_point};
pub use settings::{
    AckPath, EndSystemSettings, NetworkSettings, PacedBy, PacingSettings, PlannedReservation,
};
pub use translation::{Translation, TranslationRequest, Unmet, translate};

#[cfg(test)]
mod tests;

//! JSON documents of data in `core`, with schemas: AQMs, transports, applications and their parameters, QoS specifications, agreements and
//! translations.
//!
//! The crates of the data stay free of file formats. The comments of fields are the descriptions in the schemas
//! (docs/schemas).

mod choices;
mod parameter;
mod specification;
mod translation;

pub use choices::{
    ApplicationDocument, ApplicationList, AqmDocument, AqmList, ControlDocument, TransportDocument,
    TransportList, other_defaults,
};
pub use parameter::{ParameterDocument, SettingDocument};
pub use specification::{
    AgreementDocument, SpecificationDocument, SpecificationList, SpecificationParameters,
};
pub use translation::TranslationDocument;

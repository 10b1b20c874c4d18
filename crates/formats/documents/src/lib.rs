//! JSON documents of data in `core`, with schemas: parameters, QoS specifications, agreements and translations.
//!
//! The crates of the data stay free of file formats. The comments of fields are the descriptions in the schemas
//! (docs/schemas).

mod parameter;
mod specification;
mod translation;

pub use parameter::{ParameterDocument, SettingDocument};
pub use specification::{
    AgreementDocument, SpecificationDocument, SpecificationList, SpecificationParameters,
};
pub use translation::TranslationDocument;

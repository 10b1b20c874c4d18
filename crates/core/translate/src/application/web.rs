//! Web pages: complete and in order, and soon.

use super::{ApplicationTranslator, transfer};
use crate::demand::Demand;
use cutline_params::Parameters;
use cutline_quality::spec::SpecParameter;
use cutline_units::{Bytes, Duration};

/// Web pages in their own words.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct WebParams {
    /// The size of a page with all that belongs to it; off: no rate is demanded.
    #[param(default = None, range = (1, 1_000_000_000), unit = "B", source = "any size")]
    pub page_size: Option<Bytes>,
    /// Time that a page, or a part of it, may take.
    #[param(
        default = Duration::from_secs(1),
        range = (Duration::from_millis(10), Duration::from_secs(60)),
        source = "Nielsen 1993: no train of thought is interrupted"
    )]
    pub response: Duration,
}

impl ApplicationTranslator for WebParams {
    const NAME: &'static str = "web";
    const TITLE: &'static str = "web pages";

    fn demands(&self) -> Vec<Demand> {
        let mut demands = Vec::new();
        if let Some(size) = self.page_size {
            demands.extend(transfer(size, self.response, ""));
        }
        let why = "a page, or a part of it, within the acceptable time";
        demands.push(Demand::new(SpecParameter::MaxDelay, self.response, "ITU-T Y.1541 table 1", why));
        demands.extend(Demand::complete());
        let why = "a reader whose page stops for longer goes elsewhere";
        demands.push(Demand::new(SpecParameter::Recovery, Duration::from_secs(10), "", why));
        demands
    }
}

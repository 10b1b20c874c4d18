//! Best effort: packets stay unmarked.

use super::{NetworkTranslator, Traffic};
use crate::decision::{Chosen, Decisions};
use crate::settings::NetworkSettings;
use cutline_units::Dscp;

pub(super) struct BestEffort;

impl NetworkTranslator for BestEffort {
    fn name(&self) -> &'static str {
        "best-effort"
    }

    fn title(&self) -> &'static str {
        "nothing is requested"
    }

    fn settings(&self, _: &Traffic<'_>, log: &mut Decisions) -> NetworkSettings {
        let why = "nothing is requested from the network";
        let dscp = log.network("dscp", Chosen::<Dscp>::leave("RFC 2474 section 4.1", why));
        NetworkSettings { dscp, ..NetworkSettings::default() }
    }
}

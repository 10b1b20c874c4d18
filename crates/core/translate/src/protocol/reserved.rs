//! A protocol whose rate is reserved: the same settings, with a pace that keeps to the reservation.

use super::{Ends, ProtocolTranslator};
use crate::decision::Decisions;
use crate::path::Path;
use crate::settings::EndSystemSettings;
use crate::stream::Packets;

/// Another protocol with a reservation.
pub(super) struct Reserved {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) over: &'static dyn ProtocolTranslator,
}

impl ProtocolTranslator for Reserved {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn packets(&self, path: &Path) -> Packets {
        self.over.packets(path)
    }

    fn is_complete(&self) -> bool {
        self.over.is_complete()
    }

    fn is_reserved(&self) -> bool {
        true
    }

    fn pace_margin(&self) -> f64 {
        self.over.pace_margin()
    }

    fn settings(&self, ends: &Ends<'_>, log: &mut Decisions) -> EndSystemSettings {
        self.over.settings(ends, log)
    }
}

//! The network translators: from the generic specification to marks in packets and requests (QUANTA section 5).

mod best_effort;
mod diffserv;
mod hint;
mod reservation;

pub use diffserv::code_point;
pub(crate) use reservation::request;

use crate::decision::Decisions;
use crate::list::translators;
use crate::protocol::{Ends, Protocol};
use crate::settings::NetworkSettings;
use cutline_quality::spec::{CapacityProfile, Specification};

/// Description of a service of the network, and its requests for a specification.
pub(crate) trait NetworkTranslator: Sync {
    /// The name, as the command line writes it.
    fn name(&self) -> &'static str;

    /// Returns the title, in a few words.
    fn title(&self) -> &'static str;

    /// Marks and requests, each noted with its reason.
    fn settings(&self, traffic: &Traffic<'_>, log: &mut Decisions) -> NetworkSettings;
}

/// The packets of a connection, as a service sees them.
#[derive(Clone, Copy)]
pub(crate) struct Traffic<'a> {
    /// Both directions.
    pub(crate) ends: Ends<'a>,
    /// The protocol.
    pub(crate) protocol: Protocol,
    /// Treatment of the traffic by the network, if the application states it.
    pub(crate) profile: Option<CapacityProfile>,
}

impl<'a> Traffic<'a> {
    /// The specification of the packets that this end sends: that of its data. If it leaves the delay open, acknowledgements
    /// are as urgent as the acknowledged data.
    fn marked(&self) -> &'a Specification {
        let [send, receive] = [self.ends.send.spec, self.ends.receive.spec];
        let acknowledges = self.protocol.translator().is_complete();
        if send.max_delay.is_none() && receive.max_delay.is_some() && acknowledges { receive } else { send }
    }

    /// The profile that the application states, or the one that fits its specification.
    fn profile(&self) -> CapacityProfile {
        self.profile.unwrap_or_else(|| CapacityProfile::from_specification(self.marked()))
    }

    /// Returns the reason why packets cannot carry a code point, if they cannot.
    fn unmarkable(&self) -> Option<&'static str> {
        let has_ip = self.protocol.translator().has_ip();
        (!has_ip).then_some("frames without IP have no code point")
    }
}

translators! {
    /// A service of the network.
    Service, "service", NetworkTranslator;
    /// Delay hints in the packets, for routers with TSQ.
    Hint = &hint::Hint;
    /// Standard code points.
    Diffserv = &diffserv::Diffserv;
    /// Nothing is requested.
    BestEffort = &best_effort::BestEffort;
    /// A reservation of controlled load.
    Reservation = &reservation::Reservation;
}

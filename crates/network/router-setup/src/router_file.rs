//! The file of the router between the interfaces of a setup.

use crate::SetupPlace;
use crate::error::SetupError;
use cutline_aqm::{AqmSpec, Discipline as _, Sieve};
use cutline_params::ParameterValue;
use cutline_router::Overhead;
use cutline_units::{Duration, Rate};
use std::fmt::Write as _;

/// Settings of the router between the interfaces of a setup. Its queues are Sieve.
#[derive(Clone, Debug, PartialEq)]
pub struct RouterFile {
    /// Rate from the LAN to the WAN (upload).
    pub rate: Rate,
    /// Rate from the WAN to the LAN (download).
    pub reverse_rate: Rate,
    /// Round-trip time of most connections through the link, without its queue; `None` for the queue's default.
    pub rtt: Option<Duration>,
    /// Overhead of the link per frame.
    pub overhead: Overhead,
    /// Unit that gets equal shares of the link.
    pub fair: FairShares,
}

/// Unit that gets equal shares of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FairShares {
    /// The hosts behind this one, and then the flows of each.
    Hosts,
    /// All flows.
    Flows,
}

impl RouterFile {
    /// Returns the file for the router of a setup. A router with units has this `socket` for its statistics.
    ///
    /// # Errors
    /// When the round-trip time is outside the range of the queue's parameter.
    pub fn text(&self, place: &SetupPlace, socket: Option<&str>) -> Result<String, SetupError> {
        let [first, second] = place.interfaces();
        let mut text = format!(
            "# The router of `cutline router up`. docs/guide/router.md explains every key. SIGHUP makes the router read this file again.\n\
             in = \"tun:{first}\"\nout = \"tun:{second}\"\noverhead = \"{}\"\n",
            self.overhead
        );
        if self.fair == FairShares::Hosts {
            // The hosts of a LAN share a prefix.
            text += "ipv6-host-prefix = 128\n";
        }
        if let Some(socket) = socket {
            let _ = writeln!(text, "socket = \"{socket}\"");
        }
        for (direction, rate, host) in
            [("forward", self.rate, "source"), ("reverse", self.reverse_rate, "destination")]
        {
            let _ = write!(
                text,
                "\n[{direction}]\nrate = \"{rate}\"\nqueue = {{ {} }}\n",
                self.queue(rate, host)?
            );
        }
        Ok(text)
    }

    /// Returns the queue of a direction; `host` is the end of a packet that is behind this host.
    fn queue(&self, rate: Rate, host: &str) -> Result<String, SetupError> {
        let name = Sieve::<()>::NAME;
        let set = self.rtt.map(|rtt| ("rtt", ParameterValue::Duration(rtt)));
        let aqm = AqmSpec::from_values(name, set)
            .map_err(|error| SetupError::Invalid(format!("--rtt: {error}")))?;
        let mut text = format!("aqm = \"{name}\", limit = \"{} packets\"", aqm.usual_limit(rate));
        if let Some(rtt) = self.rtt {
            let _ = write!(text, ", rtt = \"{rtt}\"");
        }
        if self.fair == FairShares::Hosts {
            let _ = write!(text, ", key = \"{host}-then-flow\"");
        }
        Ok(text)
    }
}

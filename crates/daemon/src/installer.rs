//! Where reservations are installed.
//!
//! An [`Installer`] gets what admission control has agreed to, for one interface or several. [`TrafficControl`] is that of the kernel. Another
//! one, such as a class of the userspace router, implements the trait and is given to [`Agent::with_installer`](crate::Agent::with_installer).

use cutline_netlink::{ClassId, Counters, Error, Filter, Interface, Options, Reservation, Shaper, sweep};
use cutline_rsvp::admission::Handle;
use cutline_rsvp::engine::{Control, Flow, InterfaceId};
use cutline_rsvp::intserv::Tspec;
use cutline_rsvp::object::{Selector, Sender, Session};
use cutline_units::{Bytes, Rate};
use std::collections::BTreeMap;
use std::fmt;

/// Who installs reservations. Everything that it has installed is removed when it is dropped.
pub trait Installer: fmt::Debug + Send {
    /// Does what is asked.
    ///
    /// # Errors
    /// When a reservation cannot be installed, or kept; then nothing of it is left.
    fn apply(&mut self, control: &Control) -> Result<(), InstallError>;

    /// Returns what the packets of each reservation were counted as.
    fn counters(&mut self) -> BTreeMap<Handle, Counted>;
}

/// What was counted of a reservation's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets that have left.
    pub packets: u64,
    /// Their bytes, as the installer counts them.
    pub bytes: u64,
    /// Packets that were dropped.
    pub dropped: u64,
}

/// Why a reservation is not installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The kernel's traffic control refuses.
    #[error(transparent)]
    Netlink(#[from] Error),
    /// The reservation, or its interface, is not known.
    #[error("nothing is installed under this number")]
    Unknown,
    /// Another installer's reason.
    #[error("{0}")]
    Other(String),
}

/// A class of HTB for each reservation.
#[derive(Debug, Default)]
pub struct TrafficControl {
    shapers: Vec<(u32, Shaper)>,
    /// Which shaper an interface of the engine has.
    places: BTreeMap<InterfaceId, usize>,
    classes: BTreeMap<Handle, (usize, ClassId)>,
}

impl TrafficControl {
    /// Takes over an interface, or another version of IP on one that it has. What an earlier, killed process has left is removed.
    ///
    /// # Errors
    /// When somebody else has set a queueing discipline there, or the process may not.
    pub fn add_interface(
        &mut self,
        id: InterfaceId,
        interface: &Interface,
        rate: Rate,
        replace: bool,
    ) -> Result<(), Error> {
        let known = self.shapers.iter().position(|(index, _)| *index == interface.index);
        let place = if let Some(place) = known {
            place
        } else {
            sweep(interface)?;
            let shaper = Shaper::install(interface, rate, Options { replace, ..Options::default() })?;
            self.shapers.push((interface.index, shaper));
            self.shapers.len() - 1
        };
        self.places.insert(id, place);
        Ok(())
    }

    fn add(&mut self, flow: &Flow) -> Result<(), InstallError> {
        let place = *self.places.get(&flow.interface).ok_or(InstallError::Unknown)?;
        let filters: Vec<Filter> = if flow.senders.is_empty() {
            vec![filter(&flow.session, None)]
        } else {
            flow.senders.iter().map(|sender| filter(&flow.session, Some(sender))).collect()
        };
        let class = self.shapers[place].1.add(&reservation(&flow.tspec), &filters)?;
        self.classes.insert(flow.handle, (place, class));
        Ok(())
    }

    fn found(&mut self, handle: Handle) -> Result<(&mut Shaper, ClassId), InstallError> {
        let (place, class) = *self.classes.get(&handle).ok_or(InstallError::Unknown)?;
        Ok((&mut self.shapers[place].1, class))
    }
}

impl Installer for TrafficControl {
    fn apply(&mut self, control: &Control) -> Result<(), InstallError> {
        match control {
            Control::Add(flow) => self.add(flow),
            Control::Modify(flow) => {
                let (shaper, class) = self.found(flow.handle)?;
                Ok(shaper.change(class, &reservation(&flow.tspec))?)
            }
            Control::AddFilter { handle, session, sender, .. } => {
                let (shaper, class) = self.found(*handle)?;
                Ok(shaper.add_filter(class, &filter(session, Some(sender)))?)
            }
            Control::RemoveFilter { handle, session, sender, .. } => {
                let (shaper, class) = self.found(*handle)?;
                Ok(shaper.remove_filter(class, &filter(session, Some(sender)))?)
            }
            Control::Delete { handle, .. } => {
                // One that could not be installed is deleted, too.
                let Some((place, class)) = self.classes.remove(handle) else { return Ok(()) };
                Ok(self.shapers[place].1.remove(class)?)
            }
        }
    }

    fn counters(&mut self) -> BTreeMap<Handle, Counted> {
        let counted = |counters: &Counters| Counted {
            packets: counters.packets.into(),
            bytes: counters.bytes,
            dropped: counters.drops.into(),
        };
        let all: Vec<BTreeMap<ClassId, Counters>> =
            self.shapers.iter_mut().map(|(_, shaper)| shaper.counters().unwrap_or_default()).collect();
        self.classes
            .iter()
            .filter_map(|(handle, (place, class))| Some((*handle, counted(all[*place].get(class)?))))
            .collect()
    }
}

/// The bucket as traffic control has it. It lets at least one packet through.
fn reservation(tspec: &Tspec) -> Reservation {
    let bits = (f64::from(tspec.rate) * 8.0).ceil() as u64;
    Reservation {
        rate: Rate::from_bps(bits.max(8)),
        bucket: Bytes::new((tspec.bucket.ceil() as u64).max(tspec.max_packet.into())),
        min_unit: Bytes::new(tspec.min_unit.into()),
        max_packet: Bytes::new(tspec.max_packet.into()),
    }
}

/// The packets of a session, from one sender or from all. A port of 0 stands for a protocol without ports.
fn filter(session: &Session, sender: Option<&Sender>) -> Filter {
    let port = |port: u16| (port > 0).then_some(port);
    let mut filter = Filter {
        protocol: (session.protocol > 0).then_some(session.protocol),
        destination_port: port(session.port),
        source: sender.map(|sender| sender.address),
        ..Filter::to(session.destination)
    };
    match sender.map(|sender| sender.selector) {
        Some(Selector::Port(number)) => filter.source_port = port(number),
        Some(Selector::FlowLabel(label)) => filter.flow_label = Some(label),
        None => {}
    }
    filter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_becomes_a_filter() {
        let session = Session { destination: [10, 0, 0, 9].into(), protocol: 17, port: 5000 };
        let sender = Sender::new([10, 0, 0, 1].into(), 6000);
        let all = filter(&session, None);
        assert_eq!((all.protocol, all.destination_port, all.source), (Some(17), Some(5000), None));
        let one = filter(&session, Some(&sender));
        assert_eq!((one.source, one.source_port), (Some([10, 0, 0, 1].into()), Some(6000)));
        let without =
            filter(&Session { protocol: 46, port: 0, ..session }, Some(&Sender::new(sender.address, 0)));
        assert_eq!((without.destination_port, without.source_port), (None, None));
    }

    #[test]
    fn a_bucket_lets_a_packet_through() {
        let found = reservation(&Tspec { max_packet: 1500, ..Tspec::new(1000.1, 10.0) });
        assert_eq!((found.rate, found.bucket), (Rate::from_bps(8001), Bytes::new(1500)));
    }
}

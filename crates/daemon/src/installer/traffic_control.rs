//! The kernel's traffic control: a class of HTB for each reservation.

use super::{Counted, InstallError, Installer};
use cutline_netlink::{ClassId, Counters, Error, Filter, Interface, Options, Reservation, Shaper, sweep};
use cutline_rsvp::admission::Handle;
use cutline_rsvp::engine::{Control, Flow};
use cutline_rsvp::intserv::Tspec;
use cutline_rsvp::object::{Selector, Sender, Session};
use cutline_units::{Bytes, Rate};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Classes in the shaper of an interface, for both versions of IP.
#[derive(Debug)]
pub struct TrafficControl {
    shaper: Arc<Mutex<Shaper>>,
    classes: BTreeMap<Handle, ClassId>,
}

impl TrafficControl {
    /// Takes over an interface. What an earlier, killed process has left there is removed.
    ///
    /// # Errors
    /// When somebody else has set a queueing discipline there, or the process may not.
    pub fn install(interface: &Interface, rate: Rate, options: Options) -> Result<Self, Error> {
        sweep(interface)?;
        Ok(Self::of(Arc::new(Mutex::new(Shaper::install(interface, rate, options)?))))
    }

    /// Uses a shaper that others use, too.
    pub const fn of(shaper: Arc<Mutex<Shaper>>) -> Self {
        Self { shaper, classes: BTreeMap::new() }
    }

    fn class(&self, handle: Handle) -> Result<ClassId, InstallError> {
        self.classes.get(&handle).copied().ok_or(InstallError::Unknown)
    }

    fn shaper(&self) -> MutexGuard<'_, Shaper> {
        self.shaper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Installer for TrafficControl {
    fn apply(&mut self, control: &Control) -> Result<(), InstallError> {
        match control {
            Control::Add(flow) => {
                let class = self.shaper().add(&reservation(&flow.tspec), &filters(flow))?;
                self.classes.insert(flow.handle, class);
            }
            Control::Modify(flow) => {
                let class = self.class(flow.handle)?;
                self.shaper().change(class, &reservation(&flow.tspec))?;
            }
            Control::AddFilter { handle, session, sender, .. } => {
                let class = self.class(*handle)?;
                self.shaper().add_filter(class, &filter(session, Some(sender)))?;
            }
            Control::RemoveFilter { handle, session, sender, .. } => {
                let class = self.class(*handle)?;
                self.shaper().remove_filter(class, &filter(session, Some(sender)))?;
            }
            Control::Delete { handle, .. } => {
                // One that could not be installed is deleted, too.
                let Some(class) = self.classes.remove(handle) else { return Ok(()) };
                self.shaper().remove(class)?;
            }
        }
        Ok(())
    }

    fn counters(&mut self) -> BTreeMap<Handle, Counted> {
        let counted = |counters: &Counters| Counted {
            packets: counters.packets.into(),
            bytes: counters.bytes,
            excess: counters.excess.into(),
            dropped: counters.drops.into(),
        };
        let all = self.shaper().counters().unwrap_or_default();
        self.classes.iter().filter_map(|(handle, class)| Some((*handle, counted(all.get(class)?)))).collect()
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

fn filters(flow: &Flow) -> Vec<Filter> {
    if flow.senders.is_empty() {
        return vec![filter(&flow.session, None)];
    }
    flow.senders.iter().map(|sender| filter(&flow.session, Some(sender))).collect()
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

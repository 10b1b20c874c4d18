//! Classes and filters that do not belong to a reservation: control messages, best effort.

use super::filter;
use super::htb::Class;
use super::lists::{ARP_LIST, ICMPV6, IPV4, IPV4_LIST, IPV6_LIST, ROOT_TABLE, RSVP, RSVP_PORTS, UDP};
use super::requests::{Change, Subject};
use super::{BEST_EFFORT, CONTROL, HtbShaper, LEAST_QUEUE, LINK, NEW, handle, rounded};
use crate::Error;
use cutline_units::Bytes;
use netlink_packet_route::tc::TcU32Key;

impl HtbShaper {
    pub(super) fn add_fixed_classes(&mut self) -> Result<(), Error> {
        let whole = self.class_at(self.rate);
        let link = Class { burst: whole.ceiling_burst, ..whole };
        let most = self.rate.bytes_in(self.options.best_effort_delay);
        let least = Bytes::new(LEAST_QUEUE * self.frame.get());
        let parent = handle(LINK);
        let changes = vec![
            self.class_change(handle(0), LINK, link, NEW)?,
            self.class_change(parent, CONTROL, self.class_at(self.kept()), NEW)?,
            self.class_change(parent, BEST_EFFORT, self.best_effort_class(), NEW)?,
            self.fifo_change(CONTROL, least, NEW),
            self.fifo_change(BEST_EFFORT, most.max(least), NEW),
        ];
        self.apply(changes).map_err(|failed| failed.first)
    }

    /// Best effort: its quantum grows with the number of reservations, because each may have excess.
    pub(super) fn best_effort_class(&self) -> Class {
        let mut class = self.class_at(self.kept());
        let quantum = self.weighed * u64::from(self.options.best_effort_weight) * self.frame.get();
        // The kernel takes quanta of 31 bits.
        class.quantum = quantum.min(i32::MAX as u64) as u32;
        class
    }

    /// Returns the change that gives best effort its quantum beside so many reservations, if it has another
    /// one.
    pub(super) fn weight_change(&mut self, reservations: usize) -> Result<Option<Change>, Error> {
        let rivals = rounded(reservations.max(1) as u64);
        if std::mem::replace(&mut self.weighed, rivals) == rivals {
            return Ok(None);
        }
        self.class_change(handle(LINK), BEST_EFFORT, self.best_effort_class(), 0).map(Some)
    }

    /// Adds the filters of packets that must pass when best effort does not: without them there are no
    /// neighbours and no reservations.
    pub(super) fn add_fixed_filters(&mut self) -> Result<(), Error> {
        let control = |keys: Vec<TcU32Key>| filter::leads_to(handle(CONTROL), ROOT_TABLE, keys);
        let discovery =
            |kind: u32| vec![filter::key(4, 0xff00, ICMPV6 << 8), filter::key(40, 0xff00_0000, kind << 24)];
        // With number 0 the kernel numbers a node, behind those that are there.
        let mut nodes = vec![
            (ARP_LIST, 0, control(vec![filter::key(0, 0, 0)])),
            (IPV4_LIST, 0, control(vec![filter::key(8, 0x00ff_0000, RSVP << 16)])),
            (IPV6_LIST, 0, control(vec![filter::key(4, 0xff00, RSVP << 8)])),
        ];
        for port in RSVP_PORTS {
            // A header without options.
            let length = filter::key(0, 0x0f00_0000, 0x0500_0000);
            let udp_v4 = vec![
                length,
                filter::whole(),
                filter::key(8, 0x00ff_0000, UDP << 16),
                filter::key(20, 0xffff, port),
            ];
            let udp_v6 = vec![filter::key(4, 0xff00, UDP << 8), filter::key(40, 0xffff, port)];
            nodes.extend([(IPV4_LIST, 0, control(udp_v4)), (IPV6_LIST, 0, control(udp_v6))]);
        }
        // Router and neighbour solicitations and advertisements (RFC 4861 section 4).
        nodes.extend((133..=136).map(|kind| (IPV6_LIST, 0, control(discovery(kind)))));
        for list in [IPV4_LIST, IPV6_LIST] {
            nodes.push((list, list.table, filter::table()));
            nodes.push((list, 0, filter::link(list.table, list.protocol == IPV4)));
        }
        let change =
            |(list, node, options)| self.filter_change(list, node, options, Subject::Filter(list, node));
        let changes = nodes.into_iter().map(change).collect();
        self.apply(changes).map_err(|failed| failed.first)
    }
}

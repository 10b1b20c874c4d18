//! A share of an interface's rate for each reservation.
//!
//! # Installed classes and filters
//!
//! ```text
//! htb c071:                       the mark by which a later process knows it
//! └─ c071:1  the link             rate = ceiling = the link's rate
//!    ├─ c071:2  control           1 % of the link: ARP, neighbour discovery, RSVP
//!    ├─ c071:3  best effort       1 % of the link, more if it is there; packets that no filter picks
//!    └─ c071:10 ...               a class for each reservation: rate = r, burst = b, ceiling = the link's rate
//! ```
//!
//! Each class has a fifo. Removing the discipline gives the interface its default one again.
//!
//! # How HTB shares a link
//!
//! Each class has two token buckets: one filled at its rate, one at its ceiling. As long as the first is not empty, the class is served
//! before all that have to borrow. When it is empty and the second is not, the class may borrow from its parent, if that has
//! tokens. Each packet takes tokens from its class and from the parent, also if it was not borrowed, so bandwidth that the reservations
//! use cannot be borrowed. Borrowers of the same priority take turns, each with as many bytes in its turn as its quantum. A
//! quantum below the size of a packet still lets one packet leave, so a smaller share than another's takes a larger quantum there.
//!
//! So a flow that keeps to its token bucket gets its rate, whatever the others send. It waits for the packet of another class that
//! is on its way, and for the reservations that are served before it, and no longer. A packet may leave as soon as the bucket is not
//! empty, and empties it beyond zero: that is one packet more than the bucket of the `TSpec`.
//!
//! HTB does not check that the rates of the classes fit into the link. [`HtbShaper::add`] does.
//!
//! # Packets that exceed a reservation
//!
//! It is not dropped: it becomes best effort (RFC 2211 section 7), since a class whose bucket is empty borrows. It stays in the fifo of
//! its flow, so a flow's packets do not overtake each other, and all packets of a flow that sends too much wait alike, as the
//! RFC allows. The excess of a reservation is served in turn with the best-effort class, whose quantum is
//! [`ShaperOptions::best_effort_weight`] times that of all reservations together: as long as best-effort packets wait, they get at least that
//! many times as much as the excess of all flows together. This is the separate allocation of RFC 2211 section 9. If excess had its
//! place in the queue of best effort, it would push elastic traffic back, as that section says. It does not have a lower priority
//! either: a TCP connection with a small reservation could get less than without one.
//!
//! Measured on a link of 1.5 Mbit/s with two reservations of 320 kbit/s and 4 Mbit/s of best effort: the flow that kept to its reservation lost
//! none of 200 packets and had no excess; of the one that sent twice its rate, 210 packets were within the reservation and 33 excess,
//! while 494 of best effort passed (`tests/shaper.rs`).
//!
//! # Size of a packet
//!
//! HTB counts queued bytes: the IP packet, with 14 B of Ethernet header where the interface has one. A `TSpec` counts IP packets.
//! So rate and bucket of a class grow by the header, as much as needed for the smallest packets that are policed
//! ([`TrafficSpec::on_link`]). Overhead that a link adds and the kernel does not see, such as 24 B of preamble, checksum and gap between frames,
//! goes into [`ShaperOptions::overhead`]; the kernel adds it to each packet before it takes tokens (`overhead` of `struct tc_ratespec`). Its
//! counters do not have it.
//!
//! With segmentation offload, and on a host that forwards with receive aggregation, a queued packet may be 64 KiB of segments in one. It
//! leaves as one, which takes 350 ms at 1.5 Mbit/s, and a smaller fifo drops it as a whole. On slow links, turn both off before
//! ([`cutline_sys::Offloads`]), on all interfaces that packets come from.

mod filter;
mod fixed;
mod htb;
mod installed;
mod lists;
mod options;
mod requests;
mod tables;

pub use htb::Counters;
pub use installed::sweep;
pub use options::ShaperOptions;

use crate::channel::Channel;
use crate::{Error, Interface};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_units::{Bytes, Duration, Rate};
use htb::{Class, Discipline, message};
use installed::{Root, delete, is_ours, root};
use lists::{IPV4_LIST, IPV4_TABLES, IPV6, IPV6_LIST, IPV6_TABLES, List};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcMessage};
use requests::{Change, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use tables::{NewTable, Tables};

/// The major number of our discipline.
pub const MAJOR: u16 = 0xc071;
/// Beside the number, the mark by which it is recognised: a quotient that nothing uses, and the class of best effort.
const MARK: Discipline = Discipline { rate_to_quantum: 0xc071, default_class: BEST_EFFORT as u32 };

/// The classes that are always there.
const LINK: u16 = 1;
const CONTROL: u16 = 2;
const BEST_EFFORT: u16 = 3;
/// The classes of reservations.
const CLASSES: RangeInclusive<u16> = 0x10..=0xfffe;

/// Divisor of the link's rate for the part that control and best effort keep each.
const SHARE: u64 = 100;
/// The slowest link.
const LEAST_RATE: Rate = Rate::from_kbps(64);
/// The smallest fifo, packets of the largest size: TCP begins with as many (RFC 6928).
const LEAST_QUEUE: u64 = 10;
/// The burst of the link itself: the bytes that may leave at once after a pause, beside one packet.
const LINK_BURST: Duration = Duration::from_millis(1);

/// A request for an object that does not exist yet.
const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;

/// The number of a reservation's class on its interface: the minor number, as `tc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(u16);

impl std::fmt::Display for ClassId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{MAJOR:x}:{:x}", self.0)
    }
}

/// A class of a reservation.
#[derive(Debug)]
struct Reserved {
    reservation: TrafficSpec,
    /// Its filters, each with the number of its node.
    filters: BTreeMap<FlowSelector, u32>,
}

/// The traffic control of an interface. All of it is removed when this is dropped.
#[derive(Debug)]
pub struct HtbShaper {
    channel: Channel,
    interface: u32,
    name: String,
    rate: Rate,
    options: ShaperOptions,
    /// Overhead of the link for each IP packet.
    overhead: Bytes,
    /// The largest packet, as the kernel counts it.
    frame: Bytes,
    classes: BTreeMap<u16, Reserved>,
    /// The numbers of classes that were removed, and the first one that was never used.
    free_classes: BTreeSet<u16>,
    next_class: u16,
    /// Sum of the classes' rates, bit/s on the wire.
    reserved_bps: u64,
    /// For how many reservations best effort has its quantum.
    weighed: u64,
    /// The class of each filter.
    owners: BTreeMap<FlowSelector, ClassId>,
    /// Tables of the filters of IPv4 and IPv6.
    tables: [Tables; 2],
    /// True if there is anything to remove.
    is_installed: bool,
}

impl HtbShaper {
    /// Checks arguments for [`HtbShaper::install`], without an interface.
    ///
    /// # Errors
    /// When the rate or an option is not allowed.
    pub fn check(rate: Rate, options: &ShaperOptions) -> Result<(), Error> {
        options.validate()?;
        if rate < LEAST_RATE {
            return Err(Error::invalid("rate", rate, format!("at least {LEAST_RATE}")));
        }
        Ok(())
    }

    /// Checks arguments for [`HtbShaper::install`] at this interface, whose largest packet each bucket must hold.
    ///
    /// # Errors
    /// When the rate or an option is not allowed.
    pub fn check_at(interface: &Interface, rate: Rate, options: &ShaperOptions) -> Result<(), Error> {
        Self::check(rate, options)?;
        let frame = interface.mtu + interface.header;
        if kept(rate).transmission_time(frame) > htb::LONGEST_BUCKET {
            let bits = u128::from(8 * SHARE * frame.get()) * 1_000_000_000;
            let least = Rate::from_bps(bits.div_ceil(htb::LONGEST_BUCKET.as_nanos().into()) as u64);
            let allowed =
                format!("at least {least} on `{}`, whose packets have up to {frame}", interface.name);
            return Err(Error::invalid("rate", rate, allowed));
        }
        Ok(())
    }

    /// Checks that [`HtbShaper::install`] may take over an interface: another program has set no discipline there, or it may be
    /// replaced. A shaper that is there already is no obstacle, because configurations are checked while their process runs.
    ///
    /// # Errors
    /// When it may not, or the kernel cannot be queried.
    pub fn check_vacant(interface: &Interface, options: &ShaperOptions) -> Result<(), Error> {
        is_ours(&mut Channel::open()?, interface, options).map(drop)
    }

    /// Takes over an interface whose link has this rate.
    ///
    /// # Errors
    /// When an option is not allowed, the interface has a discipline that another process has set, the kernel has no HTB or u32, or the
    /// process may not. Nothing is left installed then.
    pub fn install(interface: &Interface, rate: Rate, options: ShaperOptions) -> Result<Self, Error> {
        Self::install_by(Channel::open()?, interface, rate, options)
    }

    fn install_by(
        mut channel: Channel,
        interface: &Interface,
        rate: Rate,
        options: ShaperOptions,
    ) -> Result<Self, Error> {
        Self::check_at(interface, rate, &options)?;
        if is_ours(&mut channel, interface, &options)? {
            return Err(Error::Installed { interface: interface.name.clone() });
        }
        let flags = NLM_F_CREATE | if options.replace { NLM_F_REPLACE } else { NLM_F_EXCL };
        let attributes = [TcAttribute::Kind(htb::KIND.to_owned()), MARK.options()];
        let discipline = message(interface.index, TcHandle::ROOT, handle(0), 0, attributes);
        channel.request(RouteNetlinkMessage::NewQueueDiscipline(discipline), flags, || {
            format!("the queueing discipline htb cannot be set on `{}`", interface.name)
        })?;
        // From here on, an error drops the shaper, which removes the discipline with all that is in it.
        let mut shaper = Self {
            channel,
            interface: interface.index,
            name: interface.name.clone(),
            rate,
            options,
            overhead: interface.header + Bytes::new(options.overhead.into()),
            frame: interface.mtu + interface.header,
            classes: BTreeMap::new(),
            free_classes: BTreeSet::new(),
            next_class: *CLASSES.start(),
            reserved_bps: 0,
            weighed: 1,
            owners: BTreeMap::new(),
            tables: [
                Tables::new(true, IPV4_LIST.table >> 20, IPV4_TABLES),
                Tables::new(false, IPV6_LIST.table >> 20, IPV6_TABLES),
            ],
            is_installed: true,
        };
        shaper.add_fixed_classes()?;
        shaper.add_fixed_filters()?;
        Ok(shaper)
    }

    /// Returns the rate that can be reserved on the wire: all but the shares of control and best effort.
    pub fn reservable(&self) -> Rate {
        Rate::from_bps(self.rate.as_bps() - 2 * self.kept().as_bps())
    }

    /// Returns the length of the longest IP packet of the interface.
    pub fn largest_packet(&self) -> Bytes {
        let header = self.overhead.get() - u64::from(self.options.overhead);
        Bytes::new(self.frame.get() - header)
    }

    /// Returns the reserved rate, on the wire.
    pub const fn reserved(&self) -> Rate {
        Rate::from_bps(self.reserved_bps)
    }

    /// Adds a class for a reservation, and the filters that lead packets to it. If a filter cannot be added, there is no class either.
    ///
    /// # Errors
    /// When a value is not allowed, a filter is in use, there is not enough left of the link, or the kernel refuses.
    pub fn add(&mut self, reservation: &TrafficSpec, filters: &[FlowSelector]) -> Result<ClassId, Error> {
        self.admit(reservation, Rate::ZERO)?;
        let has_number = !self.free_classes.is_empty() || self.next_class <= *CLASSES.end();
        if !has_number {
            let allowed = format!("0 to {}", CLASSES.len());
            return Err(Error::invalid("reservations", self.classes.len() + 1, allowed));
        }
        let minor = self.free_classes.first().copied().unwrap_or(self.next_class);
        let class = ClassId(minor);
        let mut changes = vec![
            self.class_change(handle(LINK), minor, self.class_of(reservation), NEW)?,
            self.fifo_change(minor, self.fifo_of(reservation), NEW),
        ];
        let weight = self.weight_change(self.classes.len() + 1)?;
        let placed = self.place(class, filters, &mut changes)?;
        changes.extend(weight);
        if let Err(failed) = self.apply(changes) {
            self.undo(&placed, &failed);
            return Err(failed.first);
        }
        if !self.free_classes.remove(&minor) {
            self.next_class = minor + 1;
        }
        self.owners.extend(placed.iter().map(|(filter, _)| (*filter, class)));
        let filters = placed.into_iter().collect();
        self.classes.insert(minor, Reserved { reservation: *reservation, filters });
        self.reserved_bps += self.on_link(reservation).rate.as_bps();
        Ok(class)
    }

    /// Reserves something else for a class. Its packets stay where they are.
    ///
    /// # Errors
    /// When a value is not allowed, there is no such class, not enough is left of the link, or the kernel refuses. The class is then
    /// as it was.
    pub fn change(&mut self, class: ClassId, reservation: &TrafficSpec) -> Result<(), Error> {
        let before = self.class(class)?.reservation;
        self.admit(reservation, self.on_link(&before).rate)?;
        let to = |this: &Self, reservation: &TrafficSpec| {
            let class_of = this.class_of(reservation);
            let changed = this.class_change(handle(LINK), class.0, class_of, 0)?;
            Ok::<_, Error>(vec![changed, this.fifo_change(class.0, this.fifo_of(reservation), NLM_F_REPLACE)])
        };
        let changes = to(self, reservation)?;
        if let Err(failed) = self.apply(changes) {
            let _restored = to(self, &before).map(|restored| self.apply(restored));
            return Err(failed.first);
        }
        self.class(class)?.reservation = *reservation;
        self.reserved_bps -= self.on_link(&before).rate.as_bps();
        self.reserved_bps += self.on_link(reservation).rate.as_bps();
        Ok(())
    }

    /// Leads more packets to a class. Where the filters of two classes pick the same packet, one that names its source wins.
    ///
    /// # Errors
    /// When the filter is not allowed or in use, there is no such class, or the kernel refuses.
    pub fn add_filter(&mut self, class: ClassId, filter: &FlowSelector) -> Result<(), Error> {
        self.class(class)?;
        let mut changes = Vec::new();
        let placed = self.place(class, std::slice::from_ref(filter), &mut changes)?;
        if let Err(failed) = self.apply(changes) {
            self.undo(&placed, &failed);
            return Err(failed.first);
        }
        self.owners.insert(*filter, class);
        self.class(class)?.filters.extend(placed);
        Ok(())
    }

    /// Leads these packets to the class no longer.
    ///
    /// # Errors
    /// When the class has no such filter, or the kernel refuses.
    pub fn remove_filter(&mut self, class: ClassId, filter: &FlowSelector) -> Result<(), Error> {
        if !self.class(class)?.filters.contains_key(filter) {
            return Err(Error::invalid("filter", filter, format!("one of class {class}")));
        }
        self.remove_filters(class, vec![*filter], Vec::new())
    }

    /// Removes a class with its filters. Packets that wait in it are dropped.
    ///
    /// # Errors
    /// When there is no such class, or the kernel refuses.
    pub fn remove(&mut self, class: ClassId) -> Result<(), Error> {
        let Reserved { reservation, filters } = self.class(class)?;
        let (reservation, filters) = (*reservation, filters.keys().copied().collect());
        let mut last = vec![self.class_removal(class.0)];
        last.extend(self.weight_change(self.classes.len() - 1)?);
        self.remove_filters(class, filters, last)?;
        self.classes.remove(&class.0);
        self.free_classes.insert(class.0);
        self.reserved_bps -= self.on_link(&reservation).rate.as_bps();
        Ok(())
    }

    /// Removes filters of a class, and then does the rest.
    fn remove_filters(
        &mut self,
        class: ClassId,
        filters: Vec<FlowSelector>,
        rest: Vec<Change>,
    ) -> Result<(), Error> {
        let its = &self.class(class)?.filters;
        let nodes: Vec<(FlowSelector, u32)> =
            filters.into_iter().filter_map(|filter| Some((filter, *its.get(&filter)?))).collect();
        let removal = |(filter, node): &(FlowSelector, u32)| self.filter_removal(List::of(filter), *node);
        let changes = nodes.iter().map(removal).chain(rest).collect();
        let outcome = self.apply(changes);
        let stays = |list: List, node: u32| match &outcome {
            Ok(()) => false,
            Err(failed) => !failed.done.contains(&Subject::NoFilter(list, node)),
        };
        let mut links = Vec::new();
        for (filter, node) in nodes {
            let list = List::of(&filter);
            if stays(list, node) {
                continue;
            }
            self.owners.remove(&filter);
            self.class(class)?.filters.remove(&filter);
            links.extend(self.tables_of(list).remove(node).into_iter().map(|link| (list, link)));
        }
        if !links.is_empty() {
            let changes = links.iter().map(|(list, link)| self.filter_removal(*list, *link)).collect();
            if let Err(failed) = self.apply(changes) {
                self.tables.iter_mut().for_each(Tables::forget_spare);
                return Err(failed.first);
            }
        }
        outcome.map_err(|failed| {
            self.weighed = 0;
            failed.first
        })
    }

    /// Takes places for the filters of a class, and adds the changes for them.
    fn place(
        &mut self,
        class: ClassId,
        filters: &[FlowSelector],
        changes: &mut Vec<Change>,
    ) -> Result<Vec<(FlowSelector, u32)>, Error> {
        let mut placed: Vec<(FlowSelector, u32)> = Vec::new();
        for filter in filters {
            if let Err(error) = self.place_one(class, filter, &mut placed, changes) {
                // The kernel knows nothing of it.
                for (filter, node) in placed.into_iter().rev() {
                    self.tables_of(List::of(&filter)).remove(node);
                }
                for change in changes.iter() {
                    if let Subject::Table(list, table) = change.subject {
                        self.tables_of(list).unmake(table);
                    }
                }
                self.weighed = 0;
                return Err(error);
            }
        }
        Ok(placed)
    }

    fn place_one(
        &mut self,
        class: ClassId,
        filter: &FlowSelector,
        placed: &mut Vec<(FlowSelector, u32)>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        filter.check()?;
        let is_twice = || placed.iter().any(|(other, _)| other == filter);
        if let Some(owner) = self.owners.get(filter).copied().or_else(|| is_twice().then_some(class)) {
            return Err(Error::invalid("filter", filter, format!("one that class {owner} does not have")));
        }
        let list = List::of(filter);
        let tables::FilterPlacement { node, table } = self.tables_of(list).add(filter)?;
        if let Some(NewTable { table, exists, links }) = table {
            if !exists {
                changes.push(self.filter_change(list, table, filter::table(), Subject::Table(list, table)));
            }
            let link = |(node, options)| self.filter_change(list, node, options, Subject::Filter(list, node));
            changes.extend(links.into_iter().map(link));
        }
        let options = filter::leads_to(handle(class.0), node & 0xffff_f000, filter::keys(filter));
        changes.push(self.filter_change(list, node, options, Subject::Filter(list, node)));
        placed.push((*filter, node));
        Ok(())
    }

    const fn tables_of(&mut self, list: List) -> &mut Tables {
        &mut self.tables[(list.protocol == IPV6) as usize]
    }

    /// Returns the counters of all reservations.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn counters(&mut self) -> Result<BTreeMap<ClassId, Counters>, Error> {
        let mut all = self.all_counters()?;
        all.retain(|class, _| CLASSES.contains(&class.0));
        Ok(all)
    }

    /// Returns the counters of best effort.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn best_effort(&mut self) -> Result<Counters, Error> {
        let all = self.all_counters()?;
        all.get(&ClassId(BEST_EFFORT))
            .copied()
            .ok_or_else(|| Error::Answer("best effort has no class".to_owned()))
    }

    fn all_counters(&mut self) -> Result<BTreeMap<ClassId, Counters>, Error> {
        let asked = RouteNetlinkMessage::GetTrafficClass(TcMessage::with_index(self.interface as i32));
        let answers =
            self.channel.list(&asked, || format!("the classes of `{}` cannot be listed", self.name))?;
        let ours = answers.iter().filter_map(htb::read_class).filter(|(handle, _)| handle.major == MAJOR);
        Ok(ours.map(|(handle, attributes)| (ClassId(handle.minor), Counters::read(attributes))).collect())
    }

    /// Returns the number of the socket by which traffic control is changed here, as reports of changes have it.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn port(&self) -> Result<u32, Error> {
        self.channel.port()
    }

    /// Checks that the discipline exists, and installs it again, without reservations, if another process has removed it; or in any case if it
    /// is not `whole`, because something in it was changed. Returns whether it was installed again: then all that was added has to be added again.
    ///
    /// # Errors
    /// When another process has set another discipline and [`ShaperOptions::replace`] is not set, or the kernel refuses. Nothing is installed then.
    pub fn restore(&mut self, is_whole: bool) -> Result<bool, Error> {
        // Without a free descriptor, too: an owner would otherwise take the discipline for lost.
        let interface = Interface::named_by(&mut self.channel, &self.name)?;
        if interface.index != self.interface {
            return Err(Error::invalid("interface", interface.index, format!("{}", self.interface)));
        }
        match root(&mut self.channel, &interface)? {
            Root::Ours if is_whole => return Ok(false),
            Root::Ours => delete(&mut self.channel, self.interface, &self.name)?,
            Root::Default | Root::Other { .. } => {}
        }
        self.is_installed = false;
        // By the same socket, so that the changes are recognised as our own.
        let channel = std::mem::replace(&mut self.channel, Channel::open()?);
        *self = Self::install_by(channel, &interface, self.rate, self.options)?;
        Ok(true)
    }

    /// Removes all of it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn uninstall(mut self) -> Result<(), Error> {
        self.is_installed = false;
        delete(&mut self.channel, self.interface, &self.name)
    }

    fn class(&mut self, class: ClassId) -> Result<&mut Reserved, Error> {
        let known = self.classes.len();
        self.classes
            .get_mut(&class.0)
            .ok_or_else(|| Error::invalid("class", class, format!("one of the {known} that were added")))
    }

    /// Returns the rate that control and best effort keep each.
    const fn kept(&self) -> Rate {
        kept(self.rate)
    }

    fn on_link(&self, reservation: &TrafficSpec) -> TrafficSpec {
        reservation.on_link(self.overhead)
    }

    /// Checks that a reservation fits, if one of rate `freed` goes.
    fn admit(&self, reservation: &TrafficSpec, freed: Rate) -> Result<(), Error> {
        reservation.check()?;
        let wanted = self.on_link(reservation).rate;
        let left = (self.reservable().as_bps() + freed.as_bps()).saturating_sub(self.reserved().as_bps());
        let left = Rate::from_bps(left);
        if wanted > left {
            let allowed = format!("up to {left} on `{}`, headers of the link included", self.name);
            return Err(Error::invalid("rate", wanted, allowed));
        }
        Ok(())
    }

    /// The class of a reservation.
    fn class_of(&self, reservation: &TrafficSpec) -> Class {
        let wire = self.on_link(reservation);
        Class { rate: wire.rate, burst: wire.bucket.max(wire.max_packet), ..self.class_at(self.rate) }
    }

    /// A class that is served at this rate, and may borrow the whole link.
    fn class_at(&self, rate: Rate) -> Class {
        Class {
            rate,
            burst: self.frame,
            ceiling: self.rate,
            ceiling_burst: self.rate.bytes_in(LINK_BURST) + self.frame,
            quantum: self.frame.get() as u32,
            overhead: self.options.overhead,
        }
    }

    /// The fifo of a reservation: its bucket, and the excess that may wait.
    fn fifo_of(&self, reservation: &TrafficSpec) -> Bytes {
        let wire = self.on_link(reservation);
        let excess = wire.rate.bytes_in(self.options.excess_delay);
        wire.bucket + excess.max(Bytes::new(LEAST_QUEUE * wire.max_packet.get()))
    }
}

/// Returns the rate of control, and of best effort, that no reservation takes from a link.
const fn kept(link: Rate) -> Rate {
    Rate::from_bps(link.as_bps() / SHARE)
}

/// Rounds up to five binary digits, so that most reservations that are added or removed change nothing.
const fn rounded(number: u64) -> u64 {
    let digits = u64::BITS - number.leading_zeros();
    let unit = 1 << digits.saturating_sub(5);
    number.next_multiple_of(unit)
}

impl Drop for HtbShaper {
    fn drop(&mut self) {
        if self.is_installed {
            // An error cannot be reported here; the next process sweeps.
            drop(delete(&mut self.channel, self.interface, &self.name));
        }
    }
}

const fn handle(minor: u16) -> TcHandle {
    TcHandle { major: MAJOR, minor }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_effort_has_at_least_the_weight_of_all_reservations() {
        assert_eq!([1, 2, 31, 32, 33, 64, 65, 10_000].map(rounded), [1, 2, 31, 32, 34, 64, 68, 10_240]);
        for number in 1..100_000 {
            assert!((number..=number + number / 16).contains(&rounded(number)), "{number}");
        }
    }
}

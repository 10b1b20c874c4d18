//! A share of an interface's rate for each reservation.
//!
//! # What is installed
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
//! tokens. Each packet takes tokens from its class and from the parent, also if it was not borrowed, so what the reservations
//! use is not there to be borrowed. Borrowers of the same priority take turns, each with as many bytes in its turn as its quantum. A
//! quantum below the size of a packet still lets one packet leave, so a smaller share than another's takes a larger quantum there.
//!
//! So a flow that keeps to its token bucket gets its rate, whatever the others send. It waits for the packet of another class that
//! is on its way, and for the reservations that are served before it, and no longer. A packet may leave as soon as the bucket is not
//! empty, and empties it beyond zero: that is one packet more than the bucket of the `TSpec`.
//!
//! HTB does not check that the rates of the classes fit into the link. [`Shaper::add`] does.
//!
//! # What exceeds a reservation
//!
//! It is not dropped: it becomes best effort (RFC 2211 section 7), since a class whose bucket is empty borrows. It stays in the fifo of
//! its flow, so a flow's packets do not overtake each other, and all packets of a flow that sends too much wait alike, as the
//! RFC allows. The excess of a reservation is served in turn with the best-effort class, whose quantum is
//! [`Options::best_effort_weight`] times that of all reservations together: as long as best-effort packets wait, they get at least that
//! many times as much as the excess of all flows together. This is the separate allocation of RFC 2211 section 9. If excess had its
//! place in the queue of best effort, it would push elastic traffic back, as that section says. It does not have a lower priority
//! either: a TCP connection with a small reservation could get less than without one.
//!
//! Measured on a link of 1.5 Mbit/s with two reservations of 320 kbit/s and 4 Mbit/s of best effort: the flow that kept to its reservation lost
//! none of 200 packets and had no excess; of the one that sent twice its rate, 210 packets were within the reservation and 33 excess,
//! while 494 of best effort passed (`tests/shaper.rs`).
//!
//! # What a packet's size is
//!
//! HTB counts what it queues: the IP packet, with 14 B of Ethernet header where the interface has one. A `TSpec` counts IP packets.
//! So rate and bucket of a class grow by the header, as much as needed for the smallest packets that are policed
//! ([`Reservation::on_wire`]). What a link adds and the kernel does not see, such as 24 B of preamble, checksum and gap between frames,
//! goes into [`Options::overhead`]; the kernel adds it to each packet before it takes tokens (`overhead` of `struct tc_ratespec`). Its
//! counters do not have it.
//!
//! With segmentation offload, and on a host that forwards with receive aggregation, what is queued may be 64 KiB of segments in one. It
//! leaves as one, which takes 350 ms at 1.5 Mbit/s, and a smaller fifo drops it as a whole. On slow links, turn both off before
//! ([`cutline_sys::Offloads`]), on all interfaces that packets come from.

mod filter;
mod htb;
mod reservation;

pub use filter::Filter;
pub use htb::Counters;
pub use reservation::Reservation;

use crate::channel::Channel;
use crate::{Error, Interface};
use cutline_units::{Bytes, Duration, Rate};
use htb::{Class, Discipline, message};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcFilterU32, TcHandle, TcMessage, TcU32Key};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};

/// The major number of our discipline.
pub const MAJOR: u16 = 0xc071;
/// Beside the number, the mark by which it is recognised: a quotient that nothing uses, and the class of best effort.
const MARK: Discipline = Discipline { rate_to_quantum: 0xc071, default_class: BEST_EFFORT as u32 };

/// The classes that are always there.
const LINK: u16 = 1;
const CONTROL: u16 = 2;
const BEST_EFFORT: u16 = 3;
/// The classes of reservations.
const CLASSES: std::ops::RangeInclusive<u16> = 0x10..=0xfffe;

/// What part of the link control and best effort keep, each.
const SHARE: u64 = 100;
/// The slowest link.
const LEAST_RATE: Rate = Rate::from_kbps(64);
/// The smallest fifo, packets of the largest size: TCP begins with as many (RFC 6928).
const LEAST_QUEUE: u64 = 10;
/// The burst of the link itself: what may leave at once after a pause, beside one packet.
const LINK_BURST: Duration = Duration::from_millis(1);

/// Packets' protocols (`linux/if_ether.h`).
const ARP: u16 = 0x0806;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// Protocols over IP.
const RSVP: u32 = 46;
const ICMPV6: u32 = 58;
const UDP: u32 = 17;
/// The ports of RSVP over UDP (RFC 2205 appendix C).
const RSVP_PORTS: [u32; 2] = [1698, 1699];

/// A list of filters for a protocol: its priority, which is its number, and the table of 256 buckets in it.
#[derive(Clone, Copy)]
struct List {
    priority: u16,
    protocol: u16,
    table: u32,
}

const ARP_LIST: List = List { priority: 1, protocol: ARP, table: 0 };
const IPV4_LIST: List = List { priority: 2, protocol: IPV4, table: 0x0010_0000 };
const IPV6_LIST: List = List { priority: 3, protocol: IPV6, table: 0x0020_0000 };

impl List {
    const fn of(filter: &Filter) -> Self {
        if filter.destination.is_ipv4() { IPV4_LIST } else { IPV6_LIST }
    }

    /// The field that names priority and protocol; the protocol is in the order of the network.
    const fn info(self) -> u32 {
        (self.priority as u32) << 16 | self.protocol.to_be() as u32
    }
}

/// How an interface's rate is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes that each packet takes on the link in addition to those that the kernel counts, which are the IP packet and the Ethernet
    /// header. 24 on Ethernet at its own rate (preamble, checksum, gap); 0 where the rate is one of such frames.
    pub overhead: u16,
    /// How long best-effort packets wait at most where nothing is reserved: the fifo holds what the link sends in this time, and
    /// 10 packets at least.
    pub best_effort_delay: Duration,
    /// How long the excess of a reservation waits at most in addition to its bucket, at the reserved rate; the fifo has room for 10
    /// packets of it at least, which is what TCP begins with.
    pub excess_delay: Duration,
    /// How many times as much best effort gets as the excess of all reservations together, while both wait; 1 to 64.
    pub best_effort_weight: u32,
    /// Whether a discipline that somebody else has set is replaced. It is not restored.
    pub replace: bool,
}

impl Default for Options {
    /// Fifos of 50 ms for best effort and 100 ms for excess, eight times as much for best effort as for excess, and nothing of others is
    /// replaced.
    fn default() -> Self {
        Self {
            overhead: 0,
            best_effort_delay: Self::BEST_EFFORT_DELAY,
            excess_delay: Duration::from_millis(100),
            best_effort_weight: 8,
            replace: false,
        }
    }
}

impl Options {
    /// The default for best effort: a TCP connection over 50 ms keeps the link busy, and a call beside it stays well within the 150 ms one way
    /// that people do not notice (ITU-T G.114).
    pub const BEST_EFFORT_DELAY: Duration = Duration::from_millis(50);

    fn validate(&self) -> Result<(), Error> {
        if !(1..=64).contains(&self.best_effort_weight) {
            return Err(Error::invalid("best_effort_weight", self.best_effort_weight, "1 to 64"));
        }
        Ok(())
    }
}

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
    reservation: Reservation,
    /// Its filters, each with the number of its node.
    filters: BTreeMap<Filter, u32>,
}

/// The traffic control of an interface. All of it is removed when this is dropped.
#[derive(Debug)]
pub struct Shaper {
    channel: Channel,
    interface: u32,
    name: String,
    rate: Rate,
    options: Options,
    /// What each packet takes on the link beyond the IP packet.
    overhead: Bytes,
    /// The largest packet, as the kernel counts it.
    frame: Bytes,
    classes: BTreeMap<u16, Reserved>,
    /// The class of each filter.
    owners: BTreeMap<Filter, ClassId>,
    /// The nodes that filters have.
    nodes: BTreeSet<u32>,
    /// Whether there is anything to remove.
    is_installed: bool,
}

impl Shaper {
    /// Takes over an interface whose link has this rate.
    ///
    /// # Errors
    /// When an option is not allowed, the interface has a discipline that somebody has set, the kernel has no HTB or u32, or the
    /// process may not. Nothing is left installed then.
    pub fn install(interface: &Interface, rate: Rate, options: Options) -> Result<Self, Error> {
        options.validate()?;
        if rate < LEAST_RATE {
            return Err(Error::invalid("rate", rate, format!("at least {LEAST_RATE}")));
        }
        let mut channel = Channel::open()?;
        match root(&mut channel, interface)? {
            Root::Default => {}
            Root::Ours => return Err(Error::Installed { interface: interface.name.clone() }),
            Root::Other { .. } if options.replace => {}
            Root::Other { kind, handle } => {
                return Err(Error::OtherQdisc { interface: interface.name.clone(), kind, handle });
            }
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
            owners: BTreeMap::new(),
            nodes: BTreeSet::new(),
            is_installed: true,
        };
        shaper.add_fixed_classes()?;
        shaper.add_fixed_filters()?;
        Ok(shaper)
    }

    /// Returns how much can be reserved on the wire: all but what control and best effort keep.
    pub fn reservable(&self) -> Rate {
        Rate::from_bps(self.rate.as_bps() - 2 * self.kept().as_bps())
    }

    /// Returns how much is reserved, on the wire.
    pub fn reserved(&self) -> Rate {
        Rate::from_bps(
            self.classes.values().map(|class| self.on_wire(&class.reservation).rate.as_bps()).sum(),
        )
    }

    /// Adds a class for a reservation, and what leads packets to it. If a filter cannot be added, there is no class either.
    ///
    /// # Errors
    /// When a value is not allowed, a filter is in use, there is not enough left of the link, or the kernel refuses.
    pub fn add(&mut self, reservation: &Reservation, filters: &[Filter]) -> Result<ClassId, Error> {
        self.admit(reservation, Rate::ZERO)?;
        let minor = first_free(CLASSES.map(u32::from), self.classes.keys().copied().map(u32::from));
        let minor = minor.map(|minor| minor as u16).ok_or_else(|| {
            Error::invalid("reservations", self.classes.len() + 1, format!("0 to {}", CLASSES.len()))
        })?;
        self.set_class(minor, self.class_of(reservation), NLM_F_CREATE | NLM_F_EXCL)?;
        self.classes.insert(minor, Reserved { reservation: *reservation, filters: BTreeMap::new() });
        let class = ClassId(minor);
        let finished = self
            .set_fifo(minor, self.fifo_of(reservation), NLM_F_CREATE | NLM_F_EXCL)
            .and_then(|()| filters.iter().try_for_each(|filter| self.add_filter(class, filter)))
            .and_then(|()| self.weigh());
        if let Err(error) = finished {
            // The first error says what is wrong; one of the removal would only repeat it.
            let _removed = self.remove(class);
            return Err(error);
        }
        Ok(class)
    }

    /// Reserves something else for a class. Its packets stay where they are.
    ///
    /// # Errors
    /// When a value is not allowed, there is no such class, not enough is left of the link, or the kernel refuses. The class is then
    /// as it was.
    pub fn change(&mut self, class: ClassId, reservation: &Reservation) -> Result<(), Error> {
        let before = self.class(class)?.reservation;
        self.admit(reservation, self.on_wire(&before).rate)?;
        let changed = self
            .set_class(class.0, self.class_of(reservation), 0)
            .and_then(|()| self.set_fifo(class.0, self.fifo_of(reservation), NLM_F_REPLACE));
        if let Err(error) = changed {
            let _restored = self
                .set_class(class.0, self.class_of(&before), 0)
                .and_then(|()| self.set_fifo(class.0, self.fifo_of(&before), NLM_F_REPLACE));
            return Err(error);
        }
        self.class(class)?.reservation = *reservation;
        Ok(())
    }

    /// Leads more packets to a class. Where the filters of two classes pick the same packet, one that names its source wins.
    ///
    /// # Errors
    /// When the filter is not allowed or in use, there is no such class, or the kernel refuses.
    pub fn add_filter(&mut self, class: ClassId, filter: &Filter) -> Result<(), Error> {
        filter.validate()?;
        self.class(class)?;
        if let Some(owner) = self.owners.get(filter) {
            return Err(Error::invalid("filter", filter, format!("one that class {owner} does not have")));
        }
        let node = self.free_node(filter)?;
        let list = List::of(filter);
        let options = filter::leads_to(handle(class.0), node & 0xffff_f000, filter.keys());
        self.set_filter(list, node, options)?;
        self.nodes.insert(node);
        self.owners.insert(*filter, class);
        self.class(class)?.filters.insert(*filter, node);
        Ok(())
    }

    /// Leads these packets to the class no longer.
    ///
    /// # Errors
    /// When the class has no such filter, or the kernel refuses.
    pub fn remove_filter(&mut self, class: ClassId, filter: &Filter) -> Result<(), Error> {
        let node = self.class(class)?.filters.get(filter).copied();
        let node = node.ok_or_else(|| Error::invalid("filter", filter, format!("one of class {class}")))?;
        self.delete_filter(List::of(filter), node)?;
        self.nodes.remove(&node);
        self.owners.remove(filter);
        self.class(class)?.filters.remove(filter);
        Ok(())
    }

    /// Removes a class with its filters. Packets that wait in it are dropped.
    ///
    /// # Errors
    /// When there is no such class, or the kernel refuses.
    pub fn remove(&mut self, class: ClassId) -> Result<(), Error> {
        let filters: Vec<Filter> = self.class(class)?.filters.keys().copied().collect();
        for filter in filters {
            self.remove_filter(class, &filter)?;
        }
        let name = self.name.clone();
        let deleted = message(self.interface, handle(0), handle(class.0), 0, []);
        let deleted = self.channel.request(RouteNetlinkMessage::DelTrafficClass(deleted), 0, || {
            format!("class {class} of `{name}` cannot be removed")
        });
        removed(deleted)?;
        self.classes.remove(&class.0);
        self.weigh()
    }

    /// Returns the counters of all reservations.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn counters(&mut self) -> Result<BTreeMap<ClassId, Counters>, Error> {
        let mut all = self.all_counters()?;
        all.retain(|class, _| CLASSES.contains(&class.0));
        Ok(all)
    }

    /// Returns the counters of best effort.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
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

    /// What control and best effort keep, each.
    const fn kept(&self) -> Rate {
        Rate::from_bps(self.rate.as_bps() / SHARE)
    }

    fn on_wire(&self, reservation: &Reservation) -> Reservation {
        reservation.on_wire(self.overhead)
    }

    /// Checks that a reservation fits, if one of rate `freed` goes.
    fn admit(&self, reservation: &Reservation, freed: Rate) -> Result<(), Error> {
        reservation.validate()?;
        let wanted = self.on_wire(reservation).rate;
        let left = (self.reservable().as_bps() + freed.as_bps()).saturating_sub(self.reserved().as_bps());
        let left = Rate::from_bps(left);
        if wanted > left {
            let allowed = format!("up to {left} on `{}`, headers of the link included", self.name);
            return Err(Error::invalid("rate", wanted, allowed));
        }
        Ok(())
    }

    /// The class of a reservation.
    fn class_of(&self, reservation: &Reservation) -> Class {
        let wire = self.on_wire(reservation);
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

    /// The fifo of a reservation: its bucket, and what may wait as excess.
    fn fifo_of(&self, reservation: &Reservation) -> Bytes {
        let wire = self.on_wire(reservation);
        let excess = wire.rate.bytes_in(self.options.excess_delay);
        wire.bucket + excess.max(Bytes::new(LEAST_QUEUE * wire.max_packet.get()))
    }

    fn add_fixed_classes(&mut self) -> Result<(), Error> {
        let new = NLM_F_CREATE | NLM_F_EXCL;
        let whole = self.class_at(self.rate);
        let link = Class { burst: whole.ceiling_burst, ..whole };
        let link = self.class_message(handle(0), LINK, link)?;
        self.send_class(LINK, link, new)?;
        self.set_class(CONTROL, self.class_at(self.kept()), new)?;
        self.set_class(BEST_EFFORT, self.best_effort_class(), new)?;
        let most = self.rate.bytes_in(self.options.best_effort_delay);
        let best_effort = most.max(Bytes::new(LEAST_QUEUE * self.frame.get()));
        self.set_fifo(CONTROL, Bytes::new(LEAST_QUEUE * self.frame.get()), new)?;
        self.set_fifo(BEST_EFFORT, best_effort, new)
    }

    /// Best effort: its quantum grows with the number of reservations, because each may have excess.
    fn best_effort_class(&self) -> Class {
        let mut class = self.class_at(self.kept());
        let rivals = self.classes.len().max(1) as u64;
        let quantum = rivals * u64::from(self.options.best_effort_weight) * self.frame.get();
        // The kernel takes quanta of 31 bits.
        class.quantum = quantum.min(i32::MAX as u64) as u32;
        class
    }

    fn weigh(&mut self) -> Result<(), Error> {
        self.set_class(BEST_EFFORT, self.best_effort_class(), 0)
    }

    /// What must get through when best effort does not: without it there are no neighbours and no reservations.
    fn add_fixed_filters(&mut self) -> Result<(), Error> {
        let control = |keys: Vec<TcU32Key>| filter::leads_to(handle(CONTROL), ROOT_TABLE, keys);
        let discovery =
            |kind: u32| vec![filter::key(4, 0xff00, ICMPV6 << 8), filter::key(40, 0xff00_0000, kind << 24)];
        self.set_filter(ARP_LIST, 0, control(vec![filter::key(0, 0, 0)]))?;
        self.set_filter(IPV4_LIST, 0, control(vec![filter::key(8, 0x00ff_0000, RSVP << 16)]))?;
        self.set_filter(IPV6_LIST, 0, control(vec![filter::key(4, 0xff00, RSVP << 8)]))?;
        for port in RSVP_PORTS {
            // A header without options; no fragment.
            let [length, whole] = [filter::key(0, 0x0f00_0000, 0x0500_0000), filter::key(4, 0x3fff, 0)];
            let udp_v4 =
                vec![length, whole, filter::key(8, 0x00ff_0000, UDP << 16), filter::key(20, 0xffff, port)];
            let udp_v6 = vec![filter::key(4, 0xff00, UDP << 8), filter::key(40, 0xffff, port)];
            self.set_filter(IPV4_LIST, 0, control(udp_v4))?;
            self.set_filter(IPV6_LIST, 0, control(udp_v6))?;
        }
        // Router and neighbour solicitations and advertisements (RFC 4861 section 4).
        for kind in 133..=136 {
            self.set_filter(IPV6_LIST, 0, control(discovery(kind)))?;
        }
        for list in [IPV4_LIST, IPV6_LIST] {
            self.set_filter(list, list.table, filter::table())?;
            self.set_filter(list, 0, filter::link(list.table, list.protocol == IPV4))?;
        }
        Ok(())
    }

    fn set_class(&mut self, minor: u16, class: Class, flags: u16) -> Result<(), Error> {
        let message = self.class_message(handle(LINK), minor, class)?;
        self.send_class(minor, message, flags)
    }

    fn class_message(&self, parent: TcHandle, minor: u16, class: Class) -> Result<TcMessage, Error> {
        let attributes = [TcAttribute::Kind(htb::KIND.to_owned()), class.options()?];
        Ok(message(self.interface, parent, handle(minor), 0, attributes))
    }

    fn send_class(&mut self, minor: u16, message: TcMessage, flags: u16) -> Result<(), Error> {
        let name = &self.name;
        let failed = || format!("class {} of `{name}` cannot be set", ClassId(minor));
        self.channel.request(RouteNetlinkMessage::NewTrafficClass(message), flags, failed).map(drop)
    }

    fn set_fifo(&mut self, minor: u16, limit: Bytes, flags: u16) -> Result<(), Error> {
        let fifo = message(self.interface, handle(minor), TcHandle::UNSPEC, 0, htb::fifo(limit));
        let name = &self.name;
        let failed = || format!("the fifo of class {} of `{name}` cannot be set", ClassId(minor));
        self.channel.request(RouteNetlinkMessage::NewQueueDiscipline(fifo), flags, failed).map(drop)
    }

    /// Adds a node to a list, or a table to it. With number 0 the kernel numbers the node, behind those that are there.
    fn set_filter(&mut self, list: List, node: u32, options: TcAttribute) -> Result<(), Error> {
        let attributes = [TcAttribute::Kind(TcFilterU32::KIND.to_owned()), options];
        let filter = message(self.interface, handle(0), node.into(), list.info(), attributes);
        let name = &self.name;
        let failed = || format!("a filter of `{name}` cannot be added");
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.channel.request(RouteNetlinkMessage::NewTrafficFilter(filter), flags, failed).map(drop)
    }

    fn delete_filter(&mut self, list: List, node: u32) -> Result<(), Error> {
        let attributes = [TcAttribute::Kind(TcFilterU32::KIND.to_owned())];
        let filter = message(self.interface, handle(0), node.into(), list.info(), attributes);
        let name = &self.name;
        let failed = || format!("a filter of `{name}` cannot be removed");
        removed(self.channel.request(RouteNetlinkMessage::DelTrafficFilter(filter), 0, failed))
    }

    /// Returns the number of a node for a filter: its table, its bucket, and its place there. The kernel compares the nodes of a bucket
    /// in the order of their places; the first half is for filters that name a source.
    fn free_node(&self, filter: &Filter) -> Result<u32, Error> {
        let places = if filter.source.is_some() { 0x001..=0x7ff } else { 0x800..=0xfff };
        let bucket = List::of(filter).table | u32::from(filter.bucket()) << 12;
        let nodes = bucket | places.start()..=bucket | places.end();
        first_free(nodes.clone(), self.nodes.range(nodes).copied()).ok_or_else(|| {
            let allowed = "at most 2047 with a source and 2048 without for one destination, and those with the same last byte";
            Error::invalid("filter", filter.destination, allowed)
        })
    }
}

/// Returns the first number of a range that is not among the used ones, which are in order.
fn first_free(range: impl Iterator<Item = u32>, used: impl Iterator<Item = u32>) -> Option<u32> {
    let mut used = used.peekable();
    range.into_iter().find(|number| used.next_if_eq(number).is_none())
}

impl Drop for Shaper {
    fn drop(&mut self) {
        if self.is_installed {
            // An error cannot be reported here; the next process sweeps.
            drop(delete(&mut self.channel, self.interface, &self.name));
        }
    }
}

/// Removes what an earlier process has left on an interface, if that is ours. Returns whether there was anything.
///
/// # Errors
/// When the kernel cannot be asked, or refuses.
pub fn sweep(interface: &Interface) -> Result<bool, Error> {
    let mut channel = Channel::open()?;
    let is_ours = matches!(root(&mut channel, interface)?, Root::Ours);
    if is_ours {
        delete(&mut channel, interface.index, &interface.name)?;
    }
    Ok(is_ours)
}

/// The first table of a list, which the kernel makes with it.
const ROOT_TABLE: u32 = 0xfff0_0000;

const fn handle(minor: u16) -> TcHandle {
    TcHandle { major: MAJOR, minor }
}

/// Removes the discipline, with all that is in it.
fn delete(channel: &mut Channel, interface: u32, name: &str) -> Result<(), Error> {
    let discipline = message(interface, TcHandle::ROOT, handle(0), 0, []);
    let failed = || format!("the queueing discipline of `{name}` cannot be removed");
    removed(channel.request(RouteNetlinkMessage::DelQueueDiscipline(discipline), 0, failed))
}

/// What was gone before is removed, too: somebody else has done it, or the interface is gone.
fn removed<T>(answered: Result<T, Error>) -> Result<(), Error> {
    match answered {
        Err(error) if matches!(error.number(), Some(Errno::NOENT | Errno::NODEV)) => Ok(()),
        answered => answered.map(drop),
    }
}

/// What is at the root of an interface.
enum Root {
    /// What the kernel put there by itself: it has no number.
    Default,
    Ours,
    Other {
        kind: String,
        handle: u16,
    },
}

fn root(channel: &mut Channel, interface: &Interface) -> Result<Root, Error> {
    let failed = || format!("the queueing disciplines of `{}` cannot be listed", interface.name);
    let asked = RouteNetlinkMessage::GetQueueDiscipline(TcMessage::with_index(interface.index as i32));
    let answers = channel.list(&asked, failed)?;
    let discipline = answers.into_iter().find_map(|answer| match answer {
        RouteNetlinkMessage::NewQueueDiscipline(discipline) => {
            let header = &discipline.header;
            (header.index == interface.index as i32 && header.parent == TcHandle::ROOT).then_some(discipline)
        }
        _ => None,
    });
    let Some(discipline) = discipline.filter(|discipline| discipline.header.handle != TcHandle::UNSPEC)
    else {
        return Ok(Root::Default);
    };
    let kind = discipline.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.clone()),
        _ => None,
    });
    let kind = kind.unwrap_or_default();
    let is_marked = kind == htb::KIND && Discipline::read(&discipline.attributes) == Some(MARK);
    let handle = discipline.header.handle.major;
    Ok(if is_marked && handle == MAJOR { Root::Ours } else { Root::Other { kind, handle } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_is_used() {
        let free = |used: &[u32]| first_free(3..=6, used.iter().copied());
        assert_eq!([free(&[]), free(&[3]), free(&[4]), free(&[3, 4, 6])], [3, 4, 3, 5].map(Some));
        assert_eq!(free(&[3, 4, 5, 6]), None);
    }
}

//! The connections of a gateway, and their delivery.

use crate::document::{ConnectionDocument, GatewayDocument, MOST_LISTED};
use crate::networks::network_of;
use crate::plan::{GatewayRoute, Plan, ProgramTransport};
use crate::record::{
    ConnectionClosed, ConnectionOpened, IntervalReceived, IntervalSent, MessageReceived, RecordLine,
    Recorder, RecordingStarted, SamplesForgotten, seconds,
};
use cutline_socket::ConnectionHandle;
use cutline_sys::clock::unix_time;
use cutline_sys::lock;
use cutline_sys::now;
use cutline_units::Instant;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The most samples of a connection that wait to be recorded.
const MOST_SAMPLES: usize = 1 << 14;

/// Counters of datagrams that the QoS connection does not see.
#[derive(Debug, Default)]
pub struct Counters {
    pub oversized: AtomicU64,
    pub overflowed: AtomicU64,
    pub unsent: AtomicU64,
}

/// Counts one.
pub fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A connection that has not ended.
struct Open {
    route: usize,
    peer: SocketAddr,
    opened: Instant,
    link: Option<ConnectionHandle>,
    counters: Arc<Counters>,
    /// The ends of the last intervals that were recorded.
    sent_until: Instant,
    received_until: Instant,
}

/// Reason why a connection has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// As many connections as there may be.
    All,
    /// As many connections of its address as there may be.
    OfAddress,
}

impl Full {
    pub const fn is_of_address(self) -> bool {
        matches!(self, Self::OfAddress)
    }
}

struct Pages {
    open: BTreeMap<u64, Open>,
    /// Number of connections of each transport.
    by_transport: BTreeMap<ProgramTransport, usize>,
    /// Number of connections of each address, for addresses that may not have all.
    by_address: BTreeMap<IpAddr, usize>,
    last: u64,
    document: GatewayDocument,
}

/// All connections.
pub struct ConnectionTable {
    routes: Vec<GatewayRoute>,
    most: usize,
    /// The most of one transport: where there are routes of both, neither takes all places from the other.
    most_of_transport: usize,
    /// The most of one address; `None` where every peer has proved a key.
    most_of_one: Option<usize>,
    began: Instant,
    pages: Mutex<Pages>,
    recorder: Option<Mutex<Recorder>>,
}

/// A connection that has not ended. It ends when this is dropped.
pub struct Ticket {
    book: Arc<ConnectionTable>,
    number: u64,
    ending: Option<(String, bool)>,
}

impl ConnectionTable {
    pub fn new(plan: &Plan, recorder: Option<Recorder>) -> Self {
        let document = GatewayDocument::new(plan.side, &plan.routes);
        let book = Self {
            routes: plan.routes.clone(),
            most: plan.limits.connections,
            most_of_transport: plan.limit_of_transport(),
            most_of_one: plan.limit_of_one(),
            began: now(),
            pages: Mutex::new(Pages {
                open: BTreeMap::new(),
                by_transport: BTreeMap::new(),
                by_address: BTreeMap::new(),
                last: 0,
                document,
            }),
            recorder: recorder.map(Mutex::new),
        };
        let unix_s = unix_time().as_secs_f64();
        let side = plan.side.name().to_owned();
        book.record(&RecordLine::Start(RecordingStarted {
            kind: "start",
            side,
            at_s: seconds(book.began),
            unix_s,
        }));
        book
    }

    /// The routes have these addresses now.
    pub fn set_addresses(&mut self, addresses: &[SocketAddr]) {
        let mut pages = lock(&self.pages);
        for ((route, document), address) in
            self.routes.iter_mut().zip(&mut pages.document.routes).zip(addresses)
        {
            route.listen = *address;
            document.listen = address.to_string();
        }
    }

    pub fn route(&self, place: usize) -> &GatewayRoute {
        &self.routes[place]
    }

    /// Begins a connection.
    ///
    /// # Errors
    /// When there is no place for it. The caller may make one, or calls [`ConnectionTable::turn_away`].
    pub fn try_open(self: &Arc<Self>, route: usize, peer: SocketAddr) -> Result<Ticket, Full> {
        let limited = self.limited(peer);
        let (number, opened) = {
            let mut pages = lock(&self.pages);
            if let Some((address, most)) = limited
                && pages.by_address.get(&address).is_some_and(|open| *open >= most)
            {
                return Err(Full::OfAddress);
            }
            let transport = self.routes[route].transport;
            let of_transport = pages.by_transport.get(&transport).copied().unwrap_or(0);
            if pages.open.len() >= self.most || of_transport >= self.most_of_transport {
                return Err(Full::All);
            }
            pages.by_transport.insert(transport, of_transport + 1);
            if let Some((address, _)) = limited {
                *pages.by_address.entry(address).or_default() += 1;
            }
            pages.last += 1;
            pages.document.routes[route].totals.accepted += 1;
            let opened = now();
            let open = Open {
                route,
                peer,
                opened,
                link: None,
                counters: Arc::default(),
                sent_until: opened,
                received_until: opened,
            };
            let number = pages.last;
            pages.open.insert(number, open);
            (number, opened)
        };
        let of = &self.routes[route];
        self.record(&RecordLine::Open(ConnectionOpened {
            kind: "open",
            connection: number,
            transport: of.transport.name().to_owned(),
            listen: of.listen.to_string(),
            peer: peer.to_string(),
            at_s: seconds(opened),
        }));
        Ok(Ticket { book: Arc::clone(self), number, ending: None })
    }

    /// The address that a peer counts for, and the most connections of it; `None` if it may have all.
    fn limited(&self, peer: SocketAddr) -> Option<(IpAddr, usize)> {
        let most = self.most_of_one.filter(|_| !peer.ip().to_canonical().is_loopback())?;
        Some((network_of(peer.ip()), most))
    }

    /// Counts a connection for which there is no place.
    pub fn turn_away(&self, route: usize) {
        lock(&self.pages).document.routes[route].totals.turned_away += 1;
    }

    /// Counts a peer that has not shown that it is a gateway.
    pub fn count_stranger(&self, route: usize) {
        lock(&self.pages).document.routes[route].totals.strangers += 1;
    }

    fn record(&self, line: &RecordLine<'_>) {
        if let Some(recorder) = &self.recorder {
            lock(recorder).write(line);
        }
    }

    pub const fn records(&self) -> bool {
        self.recorder.is_some()
    }

    /// Records the intervals and messages that are new.
    pub fn record_news(&self) {
        let open: Vec<u64> = lock(&self.pages).open.keys().copied().collect();
        for number in open {
            let link = lock(&self.pages).open.get(&number).and_then(|open| open.link.clone());
            if let Some(link) = link {
                self.record_news_of(number, &link);
            }
        }
        if let Some(recorder) = &self.recorder {
            lock(recorder).flush();
        }
    }

    fn record_news_of(&self, number: u64, link: &ConnectionHandle) {
        let mib = link.mib();
        let (sent, received) = {
            let mut pages = lock(&self.pages);
            let Some(open) = pages.open.get_mut(&number) else { return };
            let sent = mib.send.last_sent.filter(|it| it.until > open.sent_until);
            let received = mib.receive.last.filter(|it| it.until > open.received_until);
            open.sent_until = sent.map_or(open.sent_until, |it| it.until);
            open.received_until = received.map_or(open.received_until, |it| it.until);
            (sent, received)
        };
        let (samples, forgotten) = link.take_samples();
        if forgotten > 0 {
            self.record(&RecordLine::Forgotten(SamplesForgotten {
                kind: "forgotten",
                connection: number,
                messages: forgotten,
            }));
        }
        for sample in &samples {
            self.record(&RecordLine::Message(MessageReceived::new(number, sample)));
        }
        if let Some(sent) = &sent {
            self.record(&RecordLine::Sent(IntervalSent::new(number, sent)));
        }
        if let Some(received) = &received {
            self.record(&RecordLine::Received(IntervalReceived::new(number, received, &mib)));
        }
    }

    fn close(&self, number: u64, ending: String, failed: bool) {
        let link = lock(&self.pages).open.get(&number).and_then(|open| open.link.clone());
        if let Some(link) = link.as_ref().filter(|_| self.records()) {
            self.record_news_of(number, link);
        }
        let Some(open) = self.take(number) else { return };
        let at = now();
        let elapsed = at.saturating_since(open.opened);
        let route = &self.routes[open.route];
        let mut document = ConnectionDocument::accepted(number, route, open.peer, seconds(open.opened));
        (document.ending, document.failed, document.elapsed_s) = (ending, failed, elapsed.as_secs_f64());
        let counted = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        document.oversized = counted(&open.counters.oversized);
        document.overflowed = counted(&open.counters.overflowed);
        document.unsent = counted(&open.counters.unsent);
        if let Some(link) = &link {
            let mib = link.mib();
            document.measured(&mib, elapsed);
            document.reserved(mib.reservation.as_ref(), link.reservation_events());
        }
        self.record(&RecordLine::Close(ConnectionClosed {
            kind: "close",
            at_s: seconds(at),
            delivered: &document,
        }));
        let mut pages = lock(&self.pages);
        let whole = &mut pages.document;
        whole.routes[open.route].totals.add(&document);
        if whole.connections.len() < MOST_LISTED {
            whole.connections.push(document);
        } else {
            whole.unlisted += 1;
        }
    }

    /// Releases the place of a connection.
    fn take(&self, number: u64) -> Option<Open> {
        let mut pages = lock(&self.pages);
        let open = pages.open.remove(&number)?;
        if let Some(count) = pages.by_transport.get_mut(&self.routes[open.route].transport) {
            *count -= 1;
        }
        if let Some((address, _)) = self.limited(open.peer)
            && let Some(count) = pages.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                pages.by_address.remove(&address);
            }
        }
        Some(open)
    }

    /// All that was delivered.
    pub fn document(&self) -> GatewayDocument {
        let mut document = lock(&self.pages).document.clone();
        document.elapsed_s = now().saturating_since(self.began).as_secs_f64();
        if let Some(recorder) = &self.recorder {
            let mut recorder = lock(recorder);
            recorder.flush();
            document.record_error = recorder.error().map(ToString::to_string);
        }
        document
    }
}

impl Ticket {
    /// The QoS connection is established.
    pub fn attach(&self, link: ConnectionHandle) {
        if self.book.records() {
            link.sample(MOST_SAMPLES);
        }
        if let Some(open) = lock(&self.book.pages).open.get_mut(&self.number) {
            open.link = Some(link);
        }
    }

    /// Returns the counters beside the QoS connection.
    pub fn counters(&self) -> Arc<Counters> {
        let pages = lock(&self.book.pages);
        pages.open.get(&self.number).map(|open| Arc::clone(&open.counters)).unwrap_or_default()
    }

    /// Ends the connection.
    pub fn close(mut self, ending: impl Into<String>, failed: bool) {
        self.ending = Some((ending.into(), failed));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let panicked = || ("its thread has failed".to_owned(), true);
        let (ending, failed) = self.ending.take().unwrap_or_else(panicked);
        self.book.close(self.number, ending, failed);
    }
}

//! Reservations between clients and the loop that forwards frames.
//!
//! ```text
//! client's thread ── order ──> bounded channel ──> Registrar, in the loop between frames
//!        └──────────── outcome, unpark ──────────────┘
//! ```
//!
//! The loop never blocks: it takes orders without waiting, puts the outcome into a cell that only it writes, and unparks the
//! thread. A client's thread never waits for room in the channel, so no sender is registered there and the loop need not wake one.
//!
//! Reservations belong to a *lease*, which is a client's connection. When the connection ends, for whatever reason, the lease ends and
//! all its reservations are removed.

use crate::reservation_request::{ReservationAction, ReservationRequest, RouterDirection};
use cutline_router::{CountedReservation, DuplexShaper, ReservationError, ReservationId, Shaper};
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

/// The clients' end: it gives leases.
#[derive(Debug)]
pub struct ReservationHandler {
    orders: SyncSender<Message>,
    next_owner: AtomicU64,
    leases: Arc<AtomicUsize>,
}

/// The loop's end: it carries out orders.
#[derive(Debug)]
pub struct Registrar {
    orders: Receiver<Message>,
    /// An owner whose reservations are being removed.
    ending: Option<u64>,
    /// End of the time in which orders are looked for often, because there was one.
    busy_until: Instant,
}

/// A client's right to reserve. Its reservations end when it is dropped.
#[derive(Debug)]
pub struct Lease {
    owner: u64,
    orders: SyncSender<Message>,
    leases: Arc<AtomicUsize>,
}

/// Reason why an order was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// The router refuses it.
    Refused(ReservationError),
    /// Too many orders wait. It was not carried out.
    Busy,
    /// The loop has not answered in time. The order may be carried out later.
    Silent,
}

/// Message to the loop.
#[derive(Debug)]
enum Message {
    Order { owner: u64, order: Order, cell: Arc<Cell> },
    End { owner: u64 },
}

#[derive(Debug)]
enum Order {
    Change(ReservationRequest),
    List { direction: RouterDirection, after: Option<ReservationId> },
}

type Outcome = Result<Vec<CountedReservation>, ReservationError>;

/// The place for an outcome, and the thread that waits for it.
#[derive(Debug)]
struct Cell {
    outcome: OnceLock<Outcome>,
    thread: Thread,
}

/// The most orders that wait.
const MAX_ORDERS: usize = 64;
/// The most leases at a time. They are fewer than clients, so that clients for statistics can always connect.
const MAX_LEASES: usize = 4;
/// The most orders, and the most reservations of an ended lease, that are handled at a time.
const BATCH: usize = 16;
/// The most reservations in an outcome.
const PAGE: usize = 64;
/// Time for which orders are polled often after one, and the interval of that polling.
const BUSY: Duration = Duration::from_millis(100);
const OFTEN: Duration = Duration::from_millis(1);
/// The longest time that an order may take. The loop looks every 50 ms unless the machine is stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time that a thread waits before it tries again to report the end of a lease.
const RETRY: std::time::Duration = std::time::Duration::from_millis(10);

/// Returns both ends.
pub fn reservation_channel() -> (ReservationHandler, Registrar) {
    let (sender, orders) = sync_channel(MAX_ORDERS);
    let handler =
        ReservationHandler { orders: sender, next_owner: AtomicU64::new(1), leases: Arc::default() };
    (handler, Registrar { orders, ending: None, busy_until: Instant::ZERO })
}

impl ReservationHandler {
    /// Returns a lease; `None` if the limit of leases is reached.
    pub fn lease(&self) -> Option<Lease> {
        let more = |held: usize| (held < MAX_LEASES).then_some(held + 1);
        self.leases.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        let owner = self.next_owner.fetch_add(1, Ordering::Relaxed);
        Some(Lease { owner, orders: self.orders.clone(), leases: Arc::clone(&self.leases) })
    }

    /// Returns up to [`PAGE`] reservations of a direction that follow `after`; fewer if these are the last.
    pub fn list(
        &self,
        direction: RouterDirection,
        after: Option<ReservationId>,
    ) -> Result<Vec<CountedReservation>, OrderError> {
        order(&self.orders, 0, Order::List { direction, after })
    }

    /// Returns all reservations of a direction.
    pub fn list_all(&self, direction: RouterDirection) -> Result<Vec<CountedReservation>, OrderError> {
        let mut all: Vec<CountedReservation> = Vec::new();
        loop {
            let page = self.list(direction, all.last().map(|last| last.id))?;
            let is_last = page.len() < PAGE;
            all.extend(page);
            if is_last {
                return Ok(all);
            }
        }
    }
}

impl Lease {
    /// The most leases at a time.
    pub const MAX: usize = MAX_LEASES;

    /// Returns the owner in the numbers of its reservations.
    pub const fn owner(&self) -> u64 {
        self.owner
    }

    /// Passes a request to the loop, and waits for its completion.
    pub fn change(&self, request: ReservationRequest) -> Result<(), OrderError> {
        order(&self.orders, self.owner, Order::Change(request)).map(drop)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // The end must not be lost. The thread of a client that has gone has nothing else to do.
        while let Err(TrySendError::Full(_)) = self.orders.try_send(Message::End { owner: self.owner }) {
            thread::park_timeout(RETRY);
        }
        self.leases.fetch_sub(1, Ordering::Relaxed);
    }
}

fn order(
    orders: &SyncSender<Message>,
    owner: u64,
    order: Order,
) -> Result<Vec<CountedReservation>, OrderError> {
    let cell = Arc::new(Cell { outcome: OnceLock::new(), thread: thread::current() });
    let message = Message::Order { owner, order, cell: Arc::clone(&cell) };
    orders.try_send(message).map_err(|error| match error {
        TrySendError::Full(_) => OrderError::Busy,
        TrySendError::Disconnected(_) => OrderError::Silent,
    })?;
    let end = now() + PATIENCE;
    loop {
        if let Some(outcome) = cell.outcome.get() {
            return outcome.clone().map_err(OrderError::Refused);
        }
        let left = end.saturating_since(now());
        if left.is_zero() {
            return Err(OrderError::Silent);
        }
        thread::park_timeout(std::time::Duration::from_nanos(left.as_nanos()));
    }
}

impl Registrar {
    /// Carries out some orders. Returns the time of the next call at the latest; `usual` if there are none.
    pub fn look(&mut self, now: Instant, duplex: &mut DuplexShaper, usual: Instant) -> Instant {
        for _ in 0..BATCH {
            // A client that has reconnected may reserve the same as its ended lease: the end is handled first.
            if let Some(owner) = self.ending {
                let [forward, reverse] =
                    [&mut duplex.forward, &mut duplex.reverse].map(|shaper| shaper.end_owner(owner, BATCH));
                if !(forward && reverse) {
                    break;
                }
                self.ending = None;
            }
            let Ok(message) = self.orders.try_recv() else { break };
            self.busy_until = now + BUSY;
            match message {
                Message::End { owner } => self.ending = Some(owner),
                Message::Order { owner, order, cell } => {
                    let outcome = carry_out(now, owner, order, duplex);
                    // No other code sets it.
                    drop(cell.outcome.set(outcome));
                    cell.thread.unpark();
                }
            }
        }
        let is_busy = self.ending.is_some() || now < self.busy_until;
        if is_busy { usual.min(now + OFTEN) } else { usual }
    }
}

fn carry_out(now: Instant, owner: u64, order: Order, duplex: &mut DuplexShaper) -> Outcome {
    let ReservationRequest { direction, number, action } = match order {
        Order::List { direction, after } => {
            return Ok(side(duplex, direction).reservations(after).take(PAGE).collect());
        }
        Order::Change(request) => request,
    };
    let (id, shaper) = (ReservationId { owner, number }, side(duplex, direction));
    match action {
        ReservationAction::Reserve(bucket, filters) => shaper.reserve(id, bucket, &filters),
        ReservationAction::Change(bucket) => shaper.change_reservation(now, id, bucket),
        ReservationAction::AddFilter(filter) => shaper.add_filter(id, filter),
        ReservationAction::RemoveFilter(filter) => shaper.remove_filter(id, &filter),
        ReservationAction::Release => shaper.end_reservation(id),
    }
    .map(|()| Vec::new())
}

const fn side(duplex: &mut DuplexShaper, direction: RouterDirection) -> &mut Shaper {
    match direction {
        RouterDirection::Forward => &mut duplex.forward,
        RouterDirection::Reverse => &mut duplex.reverse,
    }
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Busy => write!(f, "request limit reached ({MAX_ORDERS}): try again later"),
            Self::Silent => f.write_str("the router does not answer"),
        }
    }
}

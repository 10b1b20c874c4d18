//! Class-based scheduling on the sending host (QUANTA section 5, scheduling and monitoring by class).
//!
//! A [`ClassScheduler`] decides which of the messages that wait on a host is sent next:
//!
//! - *Real-time* flows by the earliest deadline of their first messages (EDF, Liu and Layland 1973).
//! - *Time-shared* flows by weighted fair queueing in the form of start tags (SFQ, Goyal et al. 1996): the message with
//!   the lowest start tag is first. A message of b bytes of a flow with weight w has
//!
//! ```text
//! S = max(v, F of the flow's message before)      F = S + b / w
//! ```
//!
//!   and v is the start tag of the message that was sent last.
//! - *Real-time before time-shared.* The totals of both classes are policed: a class sends at most at the sum of its
//!   flows' rates, with bursts of [`SchedulingParams::burst`] (one leaky bucket each). So real-time flows delay
//!   time-shared ones by their granted time, and no more. When the sum rises, what the class is ahead of its rate takes less time: a slow flow
//!   that has ended does not hold a fast one up. When it falls, that takes no more time than before.
//!
//! A message that leaves after its deadline counts as missed, and is sent nevertheless: only the application knows its value
//! then.
//!
//! Example: 8 Mbit/s for real-time flows, and messages of 1000 B. One leaves every millisecond, and with a burst of 2 ms
//! two more at once. Of messages with deadlines at 5, 3 and 4 ms the second one is first.
//!
//! The scheduler holds no data and no clock. Its owner keeps the messages, and requests the next one.

use crate::resources::{FlowId, MOST_WEIGHT, SchedulingClass};
use cutline_params::{ParameterError, Parameters};
use cutline_units::{Bytes, Duration, Instant, Rate};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Parameters of a scheduler.
#[derive(Clone, Debug, PartialEq, Parameters)]
pub struct SchedulingParams {
    /// Time for which a class may send ahead of its rate.
    #[param(
        default = Duration::from_millis(2),
        range = (Duration::ZERO, Duration::from_secs(1)),
        source = "ours: the lateness of timers of processes"
    )]
    pub burst: Duration,
}

/// A message that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageTicket(u64);

/// Decision on the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendTurn {
    /// The message may leave now.
    Send {
        /// The message.
        ticket: MessageTicket,
        /// Its flow.
        flow: FlowId,
        /// True if its deadline is over.
        is_late: bool,
    },
    /// The next message may leave then, unless another one comes.
    Wait(Instant),
    /// No message waits.
    Idle,
}

/// Counters of a flow or of a class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulingStats {
    /// Messages sent.
    pub sent: u64,
    /// Messages of them that left after their deadlines.
    pub missed: u64,
    /// The longest time by which a message left after its deadline.
    pub latest: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    ticket: MessageTicket,
    bytes: u64,
    deadline: Instant,
}

#[derive(Debug)]
struct ScheduledFlow {
    class: SchedulingClass,
    weight: u32,
    /// Rate, bit/s.
    bps: u64,
    waiting: VecDeque<Waiting>,
    /// Finish tag of the last message that was sent, and start tag of the first one that waits.
    tags: (u128, u128),
    stats: SchedulingStats,
}

/// Leaky bucket of a class.
#[derive(Clone, Copy, Debug, Default)]
struct ClassBucket {
    /// Sum of the rates of its flows, bit/s.
    bps: u64,
    /// Time at which all messages so far would have left at the rates of their times.
    schedule: Instant,
    /// Time of the last message.
    last: Instant,
    /// Bits by which the class was ahead of its rate then, times the nanoseconds of a second.
    ahead: u128,
    stats: SchedulingStats,
}

/// Scheduler of a host's messages.
#[derive(Debug)]
pub struct ClassScheduler {
    params: SchedulingParams,
    flows: BTreeMap<FlowId, ScheduledFlow>,
    tickets: BTreeMap<MessageTicket, FlowId>,
    /// First messages of real-time flows.
    deadlines: BTreeSet<(Instant, MessageTicket, FlowId)>,
    /// First messages of time-shared flows.
    starts: BTreeSet<(u128, MessageTicket, FlowId)>,
    real_time: ClassBucket,
    time_shared: ClassBucket,
    /// v of the module's documentation.
    virtual_time: u128,
    next: u64,
}

/// Units of a tag for a byte of a flow with weight 1: a multiple of every weight would be long, so tags are rounded down
/// by less than a millionth.
const TAG: u128 = 1_000_000;
const SECOND: u128 = 1_000_000_000;
const BITS: u128 = 8;

impl ClassScheduler {
    /// A scheduler without flows.
    ///
    /// # Errors
    /// When a parameter is not allowed.
    pub fn new(params: SchedulingParams) -> Result<Self, ParameterError> {
        params.validate()?;
        Ok(Self {
            params,
            flows: BTreeMap::new(),
            tickets: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            starts: BTreeSet::new(),
            real_time: ClassBucket::default(),
            time_shared: ClassBucket::default(),
            virtual_time: 0,
            next: 0,
        })
    }

    /// Adds a flow with the rate that it was granted, or changes its rate. Class and weight of a flow stay.
    ///
    /// # Errors
    /// When the weight is not allowed.
    pub fn set_flow(
        &mut self,
        flow: FlowId,
        class: SchedulingClass,
        weight: u32,
        rate: Rate,
    ) -> Result<(), ParameterError> {
        if !(1..=MOST_WEIGHT).contains(&weight) {
            return Err(ParameterError::new("weight", weight, format!("1 to {MOST_WEIGHT}")));
        }
        let tags = (self.virtual_time, self.virtual_time);
        let entry = self.flows.entry(flow).or_insert_with(|| ScheduledFlow {
            class,
            weight,
            bps: 0,
            waiting: VecDeque::new(),
            tags,
            stats: SchedulingStats::default(),
        });
        let (class, before) = (entry.class, std::mem::replace(&mut entry.bps, rate.as_bps()));
        let bucket = self.bucket(class);
        bucket.bps = bucket.bps - before + rate.as_bps();
        Ok(())
    }

    /// Removes a flow with its messages. Returns their tickets.
    pub fn remove_flow(&mut self, flow: FlowId) -> Vec<MessageTicket> {
        self.unlist(flow);
        let Some(found) = self.flows.remove(&flow) else { return Vec::new() };
        self.bucket(found.class).bps -= found.bps;
        let tickets: Vec<MessageTicket> = found.waiting.iter().map(|waiting| waiting.ticket).collect();
        for ticket in &tickets {
            self.tickets.remove(ticket);
        }
        tickets
    }

    /// Adds a message of a flow, behind its others; `deadline` is [`Instant::FAR_FUTURE`] for none. Returns its ticket;
    /// `None` if there is no such flow.
    pub fn offer(&mut self, flow: FlowId, bytes: Bytes, deadline: Instant) -> Option<MessageTicket> {
        let ticket = MessageTicket(self.next);
        let found = self.flows.get_mut(&flow)?;
        self.next += 1;
        found.waiting.push_back(Waiting { ticket, bytes: bytes.get(), deadline });
        let is_first = found.waiting.len() == 1;
        self.tickets.insert(ticket, flow);
        if is_first {
            self.list(flow);
        }
        Some(ticket)
    }

    /// Adds a withdrawn message of a flow again, in its former place among the messages that wait now. Returns false, and adds nothing, if there
    /// is no such flow, or the ticket is not that of a withdrawn message.
    pub fn offer_again(
        &mut self,
        ticket: MessageTicket,
        flow: FlowId,
        bytes: Bytes,
        deadline: Instant,
    ) -> bool {
        if ticket.0 >= self.next || self.tickets.contains_key(&ticket) || !self.flows.contains_key(&flow) {
            return false;
        }
        self.unlist(flow);
        if let Some(found) = self.flows.get_mut(&flow) {
            let place = found.waiting.partition_point(|waiting| waiting.ticket < ticket);
            found.waiting.insert(place, Waiting { ticket, bytes: bytes.get(), deadline });
            self.tickets.insert(ticket, flow);
        }
        self.list(flow);
        true
    }

    /// Takes a message back that was not sent. Returns whether it waited.
    pub fn withdraw(&mut self, ticket: MessageTicket) -> bool {
        let Some(flow) = self.tickets.remove(&ticket) else { return false };
        self.unlist(flow);
        if let Some(found) = self.flows.get_mut(&flow) {
            found.waiting.retain(|waiting| waiting.ticket != ticket);
        }
        self.list(flow);
        true
    }

    /// Returns the decision on the next message without carrying it out.
    pub fn peek(&self, now: Instant) -> SendTurn {
        let burst = self.params.burst;
        let first = self.deadlines.first().map(|(_, ticket, flow)| (*ticket, *flow, &self.real_time));
        let second = self.starts.first().map(|(_, ticket, flow)| (*ticket, *flow, &self.time_shared));
        let mut wait = Instant::FAR_FUTURE;
        for (ticket, flow, bucket) in first.into_iter().chain(second) {
            let ready = bucket.ready(burst);
            if ready <= now {
                let deadline = self.flows[&flow].waiting.front().map(|waiting| waiting.deadline);
                return SendTurn::Send { ticket, flow, is_late: deadline.is_some_and(|due| due < now) };
            }
            wait = wait.min(ready);
        }
        if self.tickets.is_empty() { SendTurn::Idle } else { SendTurn::Wait(wait) }
    }

    /// Takes the next message, if one may leave now.
    pub fn next(&mut self, now: Instant) -> SendTurn {
        let turn = self.peek(now);
        let SendTurn::Send { flow, .. } = turn else { return turn };
        self.unlist(flow);
        let found = self.flows.get_mut(&flow).expect("a flow with a listed message is there");
        let Waiting { ticket, bytes, deadline } =
            found.waiting.pop_front().expect("its first message is listed");
        let late = now.saturating_since(deadline);
        found.stats.count(late);
        let (class, weight, start) = (found.class, found.weight, found.tags.1);
        if class == SchedulingClass::TimeShared {
            found.tags.0 = start + u128::from(bytes) * TAG / u128::from(weight);
            self.virtual_time = start;
        }
        self.tickets.remove(&ticket);
        let bucket = self.bucket(class);
        bucket.take(now, bytes);
        bucket.stats.count(late);
        self.list(flow);
        turn
    }

    /// The counters of a flow; `None` if there is no such flow.
    pub fn stats(&self, flow: FlowId) -> Option<SchedulingStats> {
        self.flows.get(&flow).map(|flow| flow.stats)
    }

    /// The counters of a class.
    pub const fn class_stats(&self, class: SchedulingClass) -> SchedulingStats {
        match class {
            SchedulingClass::RealTime => self.real_time.stats,
            SchedulingClass::TimeShared => self.time_shared.stats,
        }
    }

    /// Number of messages that wait.
    pub fn waiting(&self) -> usize {
        self.tickets.len()
    }

    const fn bucket(&mut self, class: SchedulingClass) -> &mut ClassBucket {
        match class {
            SchedulingClass::RealTime => &mut self.real_time,
            SchedulingClass::TimeShared => &mut self.time_shared,
        }
    }

    /// Lists the first message of a flow, if there is one.
    fn list(&mut self, flow: FlowId) {
        let virtual_time = self.virtual_time;
        let Some(found) = self.flows.get_mut(&flow) else { return };
        let Some(Waiting { ticket, deadline, .. }) = found.waiting.front().copied() else { return };
        match found.class {
            SchedulingClass::RealTime => {
                self.deadlines.insert((deadline, ticket, flow));
            }
            SchedulingClass::TimeShared => {
                found.tags.1 = found.tags.0.max(virtual_time);
                self.starts.insert((found.tags.1, ticket, flow));
            }
        }
    }

    fn unlist(&mut self, flow: FlowId) {
        let Some(found) = self.flows.get(&flow) else { return };
        let Some(Waiting { ticket, deadline, .. }) = found.waiting.front().copied() else { return };
        match found.class {
            SchedulingClass::RealTime => self.deadlines.remove(&(deadline, ticket, flow)),
            SchedulingClass::TimeShared => self.starts.remove(&(found.tags.1, ticket, flow)),
        };
    }
}

impl ClassBucket {
    /// The time at which the next message may leave.
    fn ready(&self, burst: Duration) -> Instant {
        if self.bps == 0 {
            return Instant::FAR_FUTURE;
        }
        Instant::from_nanos(self.schedule().as_nanos().saturating_sub(burst.as_nanos()))
    }

    fn take(&mut self, now: Instant, bytes: u64) {
        let cost = (u128::from(bytes) * BITS * SECOND).div_ceil(u128::from(self.bps.max(1)));
        self.schedule = self.schedule().max(now).saturating_add(nanoseconds(cost));
        self.last = now;
        self.ahead = u128::from((self.schedule - now).as_nanos()) * u128::from(self.bps);
    }

    /// Returns the time at which all messages so far would have left, with the present rate if that is earlier.
    fn schedule(&self) -> Instant {
        let time = nanoseconds(self.ahead / u128::from(self.bps.max(1)));
        self.schedule.min(self.last.saturating_add(time))
    }
}

fn nanoseconds(count: u128) -> Duration {
    Duration::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

impl SchedulingStats {
    fn count(&mut self, late: Duration) {
        self.sent += 1;
        self.missed += u64::from(!late.is_zero());
        self.latest = self.latest.max(late);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RT: SchedulingClass = SchedulingClass::RealTime;
    const TS: SchedulingClass = SchedulingClass::TimeShared;
    const MESSAGE: Bytes = Bytes::new(1000);

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn scheduler(flows: &[(SchedulingClass, u32, u64)]) -> ClassScheduler {
        let mut scheduler = ClassScheduler::new(SchedulingParams::default()).unwrap();
        for (number, (class, weight, mbps)) in flows.iter().enumerate() {
            scheduler.set_flow(FlowId(number as u64), *class, *weight, Rate::from_mbps(*mbps)).unwrap();
        }
        scheduler
    }

    /// Sends everything that waits. Returns the flows with the times.
    fn run(scheduler: &mut ClassScheduler, mut now: Instant) -> Vec<(u64, Instant)> {
        let mut sent = Vec::new();
        loop {
            match scheduler.next(now) {
                SendTurn::Send { flow, .. } => sent.push((flow.0, now)),
                SendTurn::Wait(until) => {
                    assert!(until > now);
                    now = until;
                }
                SendTurn::Idle => return sent,
            }
        }
    }

    /// The example of the module's documentation.
    #[test]
    fn the_earliest_deadline_is_first_at_the_rate_of_the_class() {
        let mut scheduler = scheduler(&[(RT, 1, 3), (RT, 1, 3), (RT, 1, 2)]);
        for (flow, deadline) in [(0, 5), (1, 3), (2, 4), (1, 9), (0, 9)] {
            scheduler.offer(FlowId(flow), MESSAGE, ms(100 + deadline)).unwrap();
        }
        let sent = run(&mut scheduler, ms(100));
        let times: Vec<u64> = sent.iter().map(|(_, at)| at.as_nanos() / 1_000_000).collect();
        assert_eq!(times, [100, 100, 100, 101, 102], "a burst of 2 ms, and then one in each millisecond");
        assert_eq!(sent.iter().map(|(flow, _)| *flow).collect::<Vec<_>>(), [1, 2, 0, 1, 0]);
        assert_eq!(scheduler.class_stats(RT), SchedulingStats { sent: 5, ..SchedulingStats::default() });
    }

    #[test]
    fn a_message_after_its_deadline_is_sent_and_counted() {
        let mut scheduler = scheduler(&[(RT, 1, 8)]);
        for _ in 0..6 {
            scheduler.offer(FlowId(0), MESSAGE, ms(102)).unwrap();
        }
        // The last two are due at 103 and, if not for its bucket, 104 ms.
        run(&mut scheduler, ms(100));
        let stats = scheduler.stats(FlowId(0)).unwrap();
        assert_eq!((stats.sent, stats.missed, stats.latest), (6, 1, Duration::from_millis(1)));
        assert_eq!(scheduler.stats(FlowId(7)), None);
    }

    #[test]
    fn time_shared_flows_share_by_weight_and_real_time_flows_go_before_them() {
        let mut scheduler = scheduler(&[(TS, 3, 4), (TS, 1, 4), (RT, 1, 8)]);
        for _ in 0..400 {
            scheduler.offer(FlowId(0), MESSAGE, Instant::FAR_FUTURE).unwrap();
            scheduler.offer(FlowId(1), MESSAGE, Instant::FAR_FUTURE).unwrap();
        }
        for _ in 0..100 {
            scheduler.offer(FlowId(2), MESSAGE, ms(1000)).unwrap();
        }
        let sent = run(&mut scheduler, ms(100));
        let count = |flow, until| sent.iter().filter(|(its, at)| *its == flow && *at < ms(until)).count();
        // 200 ms at 8 Mbit/s are 200 messages of each class, and 2 more because of the burst.
        assert_eq!(count(0, 300) + count(1, 300), 202);
        assert_eq!(count(2, 200), 100, "the real-time class has its own rate");
        assert!((148..=154).contains(&count(0, 300)), "three of four: {}", count(0, 300));
        assert_eq!(scheduler.class_stats(TS).missed, 0);
    }

    #[test]
    fn messages_are_withdrawn_and_flows_leave_with_theirs() {
        let mut scheduler = scheduler(&[(RT, 1, 8), (TS, 1, 8)]);
        let tickets: Vec<MessageTicket> = (0..4)
            .map(|number| scheduler.offer(FlowId(number % 2), MESSAGE, ms(200 + number)).unwrap())
            .collect();
        assert!(scheduler.withdraw(tickets[0]) && !scheduler.withdraw(tickets[0]));
        let SendTurn::Send { ticket, is_late, .. } = scheduler.next(ms(203)) else { panic!("one may leave") };
        assert_eq!((ticket, is_late), (tickets[2], true));
        assert_eq!(scheduler.remove_flow(FlowId(1)), [tickets[1], tickets[3]]);
        assert_eq!((scheduler.next(ms(300)), scheduler.waiting()), (SendTurn::Idle, 0));
        assert_eq!(scheduler.offer(FlowId(1), MESSAGE, ms(1)), None);
        // A flow without a rate waits until it has one.
        scheduler.set_flow(FlowId(0), RT, 1, Rate::ZERO).unwrap();
        scheduler.offer(FlowId(0), MESSAGE, ms(1)).unwrap();
        assert_eq!(scheduler.next(ms(400)), SendTurn::Wait(Instant::FAR_FUTURE));
        scheduler.set_flow(FlowId(0), RT, 1, Rate::from_mbps(1)).unwrap();
        assert!(matches!(scheduler.next(ms(400)), SendTurn::Send { .. }));
        let error = scheduler.set_flow(FlowId(3), RT, 0, Rate::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "weight = 0: allowed is 1 to 1000");
    }

    #[test]
    fn a_slow_flow_that_has_ended_holds_no_fast_one_up() {
        let mut scheduler = scheduler(&[]);
        let send = |scheduler: &mut ClassScheduler, flow, rate, at| {
            scheduler.set_flow(FlowId(flow), TS, 1, rate).unwrap();
            scheduler.offer(FlowId(flow), MESSAGE, Instant::FAR_FUTURE).unwrap();
            scheduler.next(at)
        };
        // A message of 1000 B takes 100 s at 80 bit/s, and 8 ms at 1 Mbit/s.
        let slow = Rate::from_bps(80);
        assert!(matches!(send(&mut scheduler, 0, slow, ms(1000)), SendTurn::Send { .. }));
        scheduler.remove_flow(FlowId(0));
        let fast = Rate::from_mbps(1);
        let turn = send(&mut scheduler, 1, fast, ms(1000));
        assert_eq!(turn, SendTurn::Wait(ms(1006)), "8 ms without the burst of 2 ms");
        assert!(matches!(scheduler.next(ms(1006)), SendTurn::Send { .. }));
        // The slow one again has to wait no longer than the fast one would have.
        scheduler.remove_flow(FlowId(1));
        assert_eq!(send(&mut scheduler, 2, slow, ms(1006)), SendTurn::Wait(ms(1014)));
        assert!(matches!(scheduler.next(ms(1014)), SendTurn::Send { .. }));
        assert_eq!(send(&mut scheduler, 2, slow, ms(1014)), SendTurn::Wait(ms(101_014)));
    }

    /// A sender that looks for signals withdraws its message for a moment.
    #[test]
    fn a_withdrawn_message_returns_to_its_place() {
        for class in [RT, TS] {
            let mut scheduler = scheduler(&[(class, 1, 8), (class, 1, 8)]);
            let mut offer = |flow| scheduler.offer(FlowId(flow), MESSAGE, ms(200)).unwrap();
            let tickets = [offer(0), offer(1), offer(0)];
            for (ticket, flow) in [(tickets[0], 0), (tickets[2], 0), (tickets[1], 1)] {
                assert!(!scheduler.offer_again(ticket, FlowId(flow), MESSAGE, ms(200)), "it waits already");
                assert!(scheduler.withdraw(ticket));
                assert!(!scheduler.offer_again(ticket, FlowId(7), MESSAGE, ms(200)), "there is no such flow");
                assert!(scheduler.offer_again(ticket, FlowId(flow), MESSAGE, ms(200)));
            }
            let unknown = MessageTicket(3);
            assert!(!scheduler.offer_again(unknown, FlowId(0), MESSAGE, ms(200)), "it was never offered");
            // While one is away, those behind it go on.
            assert!(scheduler.withdraw(tickets[0]));
            let first = |scheduler: &mut ClassScheduler| match scheduler.next(ms(100)) {
                SendTurn::Send { ticket, .. } => ticket,
                turn => panic!("{turn:?}"),
            };
            assert_eq!(first(&mut scheduler), tickets[1]);
            assert!(scheduler.offer_again(tickets[0], FlowId(0), MESSAGE, ms(200)));
            assert_eq!([first(&mut scheduler), first(&mut scheduler)], [tickets[0], tickets[2]]);
            assert_eq!((scheduler.waiting(), scheduler.class_stats(class).sent), (0, 3));
        }
    }

    proptest! {
        /// No class exceeds its rate and burst in any window, every message leaves once, and messages of a flow keep
        /// their order.
        #[test]
        fn classes_are_policed_whatever_is_offered(
            flows in prop::collection::vec((any::<bool>(), 1_u32..50, 1_u64..20), 1..6),
            offers in prop::collection::vec((0_usize..6, 1_u64..3000, 0_u64..500, 0_u64..20), 1..200),
        ) {
            let flows: Vec<_> = flows
                .into_iter()
                .map(|(is_rt, weight, mbps)| (if is_rt { RT } else { TS }, weight, mbps))
                .collect();
            let mut scheduler = scheduler(&flows);
            let mut now = ms(1000);
            let (mut offered, mut sent) = (Vec::new(), Vec::new());
            let mut drain = |scheduler: &mut ClassScheduler, now: &mut Instant, until: Instant| loop {
                match scheduler.next(*now) {
                    SendTurn::Send { ticket, flow, .. } => sent.push((*now, ticket, flow)),
                    SendTurn::Wait(due) if due <= until => *now = due,
                    _ => {
                        *now = until;
                        return;
                    }
                }
            };
            for (flow, bytes, deadline, pause) in offers {
                let flow = flow % flows.len();
                let due = now + Duration::from_millis(deadline);
                let ticket = scheduler.offer(FlowId(flow as u64), Bytes::new(bytes), due).unwrap();
                offered.push((ticket, flow, bytes));
                let until = now + Duration::from_millis(pause);
                drain(&mut scheduler, &mut now, until);
            }
            drain(&mut scheduler, &mut now, ms(10_000_000));
            prop_assert_eq!(sent.len(), offered.len());
            for flow in 0..flows.len() {
                let own = |flow: usize| offered.iter().filter(move |offer| offer.1 == flow).map(|offer| offer.0);
                let left = sent.iter().filter(|sent| sent.2 == FlowId(flow as u64)).map(|sent| sent.1);
                prop_assert!(own(flow).eq(left), "in order");
            }
            for class in [RT, TS] {
                let bps: u64 = flows.iter().filter(|flow| flow.0 == class).map(|flow| flow.2 * 1_000_000).sum();
                let of_class: Vec<(Instant, u64)> = sent
                    .iter()
                    .filter(|sent| flows[sent.2.0 as usize].0 == class)
                    .map(|sent| (sent.0, offered.iter().find(|offer| offer.0 == sent.1).unwrap().2))
                    .collect();
                for begin in 0..of_class.len() {
                    // All but the last message of a window conform to the bucket.
                    let mut bytes = 0;
                    for (at, size) in &of_class[begin..] {
                        let window = at.saturating_since(of_class[begin].0).as_secs_f64() + 0.002;
                        prop_assert!(bytes as f64 * 8.0 <= bps as f64 * window + 8.0, "{bytes} in {window} s");
                        bytes += size;
                    }
                }
            }
        }
    }
}

//! Grants and their events.

use crate::client::DaemonClient;
use crate::protocol::Reply;
use crate::refusal::{Refusal, RefusalReason};
use cutline_flow::{Direction, TrafficSpec};
use cutline_service::JsonLineError;
use cutline_sys::now;
use cutline_units::Duration;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};

/// State of a direction of a grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GrantState {
    /// Nothing was requested.
    #[default]
    NotRequested,
    /// Not decided yet.
    Pending,
    /// Reserved with this token bucket. A confirmation does not say how much: then this is the requested
    /// bucket.
    Reserved(TrafficSpec),
    /// Refused or lost. It is requested again automatically.
    Failed(Refusal),
}

/// Event of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantEvent {
    /// Reserved direction, with the granted traffic.
    Granted(Direction, TrafficSpec),
    /// The reservation of a direction has changed.
    Changed(Direction, TrafficSpec),
    /// A direction is reserved along the whole path, as this node reports.
    Confirmed(Direction, IpAddr),
    /// A direction is refused, or lost.
    Lost(Direction, Refusal),
}

/// A grant. It ends when this is dropped.
#[derive(Debug)]
pub struct Grant {
    service: &'static str,
    /// None for a service that needs no agent.
    client: Option<DaemonClient>,
    /// The requests: send, receive.
    asked: [Option<TrafficSpec>; 2],
    /// The states of both directions.
    states: [GrantState; 2],
    /// True for a direction that has been reserved.
    held: [bool; 2],
    events: VecDeque<GrantEvent>,
}

/// The most events that wait to be taken; of more, the oldest are forgotten.
const MOST_EVENTS: usize = 256;

/// The client's numbers of the two directions.
pub(crate) const SEND: u64 = 1;
pub(crate) const RECEIVE: u64 = 2;

impl Grant {
    /// A grant of a service that needs no agent. It stays as it is.
    pub fn without_agent(service: &'static str) -> Self {
        Self {
            service,
            client: None,
            asked: [None; 2],
            states: Default::default(),
            held: [false; 2],
            events: VecDeque::new(),
        }
    }

    /// A grant that was requested from `cutlined` over this connection; `asked` has the traffic in both directions.
    pub(crate) fn asked(
        service: &'static str,
        client: DaemonClient,
        asked: [Option<TrafficSpec>; 2],
    ) -> Self {
        let states = asked.map(|asked| asked.map_or(GrantState::NotRequested, |_| GrantState::Pending));
        Self { service, client: Some(client), asked, states, held: [false; 2], events: VecDeque::new() }
    }

    /// The name of the service.
    pub const fn service(&self) -> &'static str {
        self.service
    }

    /// Returns the state of a direction, as far as [`Grant::event`] has read.
    pub const fn direction(&self, direction: Direction) -> &GrantState {
        &self.states[direction as usize]
    }

    /// Returns whether a direction was reserved and has failed since.
    pub const fn is_lost(&self, direction: Direction) -> bool {
        let direction = direction as usize;
        self.held[direction] && matches!(self.states[direction], GrantState::Failed(_))
    }

    /// Returns whether everything that was requested is reserved.
    pub fn is_complete(&self) -> bool {
        self.states.iter().all(|state| matches!(state, GrantState::Reserved(_) | GrantState::NotRequested))
    }

    /// Reads the agent's messages, without waiting. Events stay.
    pub fn refresh(&mut self) {
        self.read(Duration::ZERO);
    }

    /// Returns the next event, without waiting.
    pub fn event(&mut self) -> Option<GrantEvent> {
        self.read(Duration::ZERO);
        self.events.pop_front()
    }

    /// Waits until all that was requested is reserved, or something is refused.
    ///
    /// # Errors
    /// The refusal, or the absence of an answer in time. The request remains until the grant is dropped.
    pub fn wait(&mut self, time: Duration) -> Result<(), Refusal> {
        let until = now().saturating_add(time);
        loop {
            for state in &self.states {
                if let GrantState::Failed(refusal) = state {
                    return Err(refusal.clone());
                }
            }
            if self.is_complete() {
                return Ok(());
            }
            let left = until.saturating_since(now());
            if left.is_zero() {
                return Err(Refusal::new(RefusalReason::Unanswered));
            }
            self.read(left);
        }
    }

    /// The descriptor that is readable when there may be events; none if there will never be any.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.client.as_ref().map(|client| client.as_fd())
    }

    /// Reads the agent's messages, and waits at most so long for the first one.
    fn read(&mut self, time: Duration) {
        let Some(client) = &mut self.client else { return };
        let mut wait = time;
        loop {
            match client.reply(wait) {
                Ok(Some(reply)) => {
                    take(&self.asked, &mut self.states, &mut self.events, &reply);
                    for (held, state) in self.held.iter_mut().zip(&self.states) {
                        *held |= matches!(state, GrantState::Reserved(_));
                    }
                    let surplus = self.events.len().saturating_sub(MOST_EVENTS);
                    self.events.drain(..surplus);
                }
                Ok(None) => return,
                Err(error) => {
                    self.client = None;
                    self.fail(&error);
                    return;
                }
            }
            wait = Duration::ZERO;
        }
    }

    /// The connection to the agent is lost, and its grants with it.
    fn fail(&mut self, error: &JsonLineError) {
        let refusal = Refusal::new(RefusalReason::NoAgent(error.to_string()));
        for direction in [Direction::Send, Direction::Receive] {
            let state = &mut self.states[direction as usize];
            if *state != GrantState::NotRequested {
                *state = GrantState::Failed(refusal.clone());
                self.events.push_back(GrantEvent::Lost(direction, refusal.clone()));
            }
        }
    }
}

/// Handles a message of the agent.
fn take(
    asked: &[Option<TrafficSpec>; 2],
    states: &mut [GrantState; 2],
    events: &mut VecDeque<GrantEvent>,
    reply: &Reply,
) {
    let direction = match reply.id() {
        Some(SEND) => Direction::Send,
        Some(RECEIVE) => Direction::Receive,
        _ => return,
    };
    let state = &mut states[direction as usize];
    match reply {
        Reply::Reserved { bucket: Some(bucket), .. } => {
            let bucket = *bucket;
            match state {
                GrantState::Reserved(before) if *before == bucket => {}
                GrantState::Reserved(_) => events.push_back(GrantEvent::Changed(direction, bucket)),
                _ => events.push_back(GrantEvent::Granted(direction, bucket)),
            }
            *state = GrantState::Reserved(bucket);
        }
        Reply::Reserved { bucket: None, .. } if matches!(state, GrantState::Reserved(_)) => {
            let refusal = Refusal::new(RefusalReason::Ended);
            *state = GrantState::Failed(refusal.clone());
            events.push_back(GrantEvent::Lost(direction, refusal));
        }
        Reply::Confirmed { node, .. } => {
            // A confirmation does not say how much: it is for the request.
            let Some(bucket) = asked[direction as usize] else { return };
            if !matches!(state, GrantState::Reserved(_)) {
                *state = GrantState::Reserved(bucket);
                events.push_back(GrantEvent::Granted(direction, bucket));
            }
            events.push_back(GrantEvent::Confirmed(direction, *node));
        }
        Reply::SenderGone { .. } => {
            let refusal = Refusal::new(RefusalReason::NoPath);
            *state = GrantState::Failed(refusal.clone());
            events.push_back(GrantEvent::Lost(direction, refusal));
        }
        Reply::Failed { refusal, in_place: false, .. } => {
            *state = GrantState::Failed(refusal.clone());
            events.push_back(GrantEvent::Lost(direction, refusal.clone()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::VERSION;
    use cutline_flow::TrafficSpec;
    use cutline_units::Bytes;
    use cutline_units::Rate;
    use std::io::{Read as _, Write as _};
    use std::net::Shutdown;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_refusal_has_reason_node_and_available_rate() {
        let refusal = Refusal {
            reason: RefusalReason::Bandwidth,
            node: Some([10, 0, 0, 1].into()),
            available_bps: Some(400_000),
        };
        let said = "the bandwidth is not available at 10.0.0.1; 400 kbit/s would be granted";
        assert_eq!(refusal.to_string(), said);
        assert_eq!(refusal.available(), Some(Rate::from_kbps(400)));
        let text = serde_json::to_string(&refusal).unwrap();
        assert_eq!(serde_json::from_str::<Refusal>(&text).unwrap(), refusal);
    }

    /// An agent that welcomes a client and sends these replies, and then ends the connection.
    fn agent(folder: &std::path::Path, replies: Vec<Reply>) -> DaemonClient {
        let path = folder.join("agent.sock");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let welcome = Reply::Welcome { version: VERSION };
            for reply in std::iter::once(welcome).chain(replies) {
                stream.write_all(reply.line().as_bytes()).unwrap();
            }
            // The client may still write.
            stream.shutdown(Shutdown::Write).unwrap();
            let _ended = stream.read_to_end(&mut Vec::new());
        });
        DaemonClient::connect(&path).unwrap()
    }

    #[test]
    fn a_direction_is_lost_if_it_was_reserved_and_refused_if_it_was_not() {
        let folder = tempfile::tempdir().unwrap();
        let bucket = TrafficSpec {
            rate: Rate::from_kbps(100),
            bucket: Bytes::new(2000),
            peak: TrafficSpec::UNKNOWN_PEAK,
            min_policed: Bytes::new(64),
            max_packet: Bytes::new(1500),
        };
        let refusal = Refusal::new(RefusalReason::Bandwidth);
        let replies = vec![
            Reply::Failed { id: RECEIVE, refusal: refusal.clone(), in_place: false },
            Reply::Reserved { id: SEND, bucket: Some(bucket) },
        ];
        let mut grant = Grant::asked("rsvp", agent(folder.path(), replies), [Some(bucket); 2]);
        let both = [Direction::Send, Direction::Receive];
        let mut next = || {
            let until = now().saturating_add(Duration::from_secs(60));
            loop {
                if let Some(event) = grant.events.pop_front() {
                    return (event, both.map(|direction| grant.is_lost(direction)));
                }
                assert!(now() < until, "no event");
                grant.read(Duration::from_secs(1));
            }
        };
        let events = [(); 4].map(|()| next());
        assert_eq!(events[0].0, GrantEvent::Lost(Direction::Receive, refusal));
        assert_eq!(events[1].0, GrantEvent::Granted(Direction::Send, bucket));
        // The agent has gone, and its reservations with it.
        assert!(matches!(events[2].0, GrantEvent::Lost(Direction::Send, _)), "{events:?}");
        assert_eq!(events[3].1, [true, false]);
    }

    #[test]
    fn each_direction_has_its_reservation() {
        let bucket = |rate_bps| TrafficSpec {
            rate: Rate::from_bps(rate_bps),
            bucket: Bytes::new(2000),
            peak: Rate::from_bps(1_000_000),
            min_policed: Bytes::new(64),
            max_packet: Bytes::new(1500),
        };
        let [sent, received] = [100_000, 8000].map(bucket);
        let less = bucket(50_000);
        let asked = [Some(sent), Some(received)];
        let mut states = [GrantState::Pending, GrantState::Pending];
        let mut heard = |reply: &Reply| {
            let mut events = VecDeque::new();
            take(&asked, &mut states, &mut events, reply);
            (states.clone(), Vec::from(events))
        };
        let (now, events) = heard(&Reply::Reserved { id: SEND, bucket: Some(bucket(100_000)) });
        assert_eq!(now, [GrantState::Reserved(sent), GrantState::Pending]);
        assert_eq!(events, [GrantEvent::Granted(Direction::Send, sent)]);
        // A confirmation says no amount, and nothing of the other direction.
        let node = IpAddr::from([10, 0, 0, 1]);
        let (now, events) = heard(&Reply::Confirmed { id: RECEIVE, node });
        assert_eq!(now, [GrantState::Reserved(sent), GrantState::Reserved(received)]);
        let granted = GrantEvent::Granted(Direction::Receive, received);
        assert_eq!(events, [granted, GrantEvent::Confirmed(Direction::Receive, node)]);
        let (now, events) = heard(&Reply::Reserved { id: SEND, bucket: Some(bucket(50_000)) });
        assert_eq!(now, [GrantState::Reserved(less), GrantState::Reserved(received)]);
        assert_eq!(events, [GrantEvent::Changed(Direction::Send, less)]);
        assert_eq!(heard(&Reply::Reserved { id: SEND, bucket: Some(bucket(50_000)) }).1, []);
        let (now, events) = heard(&Reply::Reserved { id: SEND, bucket: None });
        let ended = Refusal::new(RefusalReason::Ended);
        assert_eq!(now, [GrantState::Failed(ended.clone()), GrantState::Reserved(received)]);
        assert_eq!(events, [GrantEvent::Lost(Direction::Send, ended)]);
    }
}

//! What is given, what becomes of it, and why something is refused.

use crate::client::{Client, ClientError};
use crate::protocol::Reply;
use cutline_sys::now;
use cutline_text::Printable;
use cutline_translate::TokenBucket;
use cutline_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};

/// Why something is refused, or lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The bandwidth is not there.
    Bandwidth,
    /// The buckets of all reservations together would be too deep.
    Burst,
    /// The packets are larger than the MTU.
    PacketSize,
    /// Nothing leads there, or nobody sends.
    NoPath,
    /// Another reservation for the same packets has another style, or other ports.
    Conflict,
    /// It was given to somebody else.
    Preempted,
    /// It was not refreshed, or the node that had it has gone.
    Ended,
    /// Nobody has answered in time.
    Unanswered,
    /// This host's `cutlined` cannot be reached.
    NoAgent(String),
    /// A value is not allowed.
    Invalid(String),
    /// Something else, in words.
    Other(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bandwidth => f.write_str("the bandwidth is not available"),
            Self::Burst => f.write_str("the buckets of all reservations would be too deep"),
            Self::PacketSize => f.write_str("the packets are larger than the link's MTU"),
            Self::NoPath => f.write_str("there is no path"),
            Self::Conflict => f.write_str("another reservation for these packets has another style or ports"),
            Self::Preempted => f.write_str("it was given to another one"),
            Self::Ended => f.write_str("the network does not have it any more"),
            Self::Unanswered => f.write_str("nobody has answered in time"),
            Self::NoAgent(why) => write!(f, "cutlined cannot be reached: {}", Printable(why)),
            Self::Invalid(what) | Self::Other(what) => write!(f, "{}", Printable(what)),
        }
    }
}

/// Why something is not given, where, and what would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{reason}{}{}", at(node.as_ref()), would(*available_bps))]
pub struct Refusal {
    /// Why.
    pub reason: Reason,
    /// The node that has refused; `null` if that is not known.
    #[schemars(with = "Option<String>")]
    pub node: Option<IpAddr>,
    /// The rate that would be granted, bits per second; `null` if that is not known.
    pub available_bps: Option<u64>,
}

fn at(node: Option<&IpAddr>) -> String {
    node.map(|node| format!(" at {node}")).unwrap_or_default()
}

fn would(available_bps: Option<u64>) -> String {
    available_bps.map(|bps| format!("; {} would be granted", Rate::from_bps(bps))).unwrap_or_default()
}

impl Refusal {
    /// A refusal of which nothing but the reason is known.
    pub const fn new(reason: Reason) -> Self {
        Self { reason, node: None, available_bps: None }
    }

    /// The rate that would be granted, if that is known.
    pub fn available(&self) -> Option<Rate> {
        self.available_bps.map(Rate::from_bps)
    }
}

/// A direction, as this end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// What this end sends.
    Send,
    /// What it receives.
    Receive,
}

/// How a direction stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Nothing was asked for.
    #[default]
    NotAsked,
    /// It is not decided.
    Pending,
    /// It is reserved.
    Reserved,
    /// It was refused, or is lost; it comes back by itself if the network can have it again.
    Failed(Refusal),
}

/// What becomes of a grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A direction is reserved.
    Granted(Direction),
    /// What is reserved for a direction has changed.
    Changed(Direction, TokenBucket),
    /// A direction is reserved along the whole path, as this node says.
    Confirmed(IpAddr),
    /// A direction is refused, or lost.
    Lost(Direction, Refusal),
}

/// What is given. It ends when this is dropped.
#[derive(Debug)]
pub struct Grant {
    service: &'static str,
    /// None for a service that needs no agent.
    client: Option<Client>,
    /// The directions: send, receive.
    standings: [Standing; 2],
    /// What is reserved for what this end sends.
    reserved: Option<TokenBucket>,
    events: VecDeque<Event>,
}

/// The client's numbers of the two directions.
pub(crate) const SEND: u64 = 1;
pub(crate) const RECEIVE: u64 = 2;

impl Grant {
    /// A grant of a service that needs no agent. It stays as it is.
    pub fn standing(service: &'static str) -> Self {
        Self { service, client: None, standings: Default::default(), reserved: None, events: VecDeque::new() }
    }

    /// A grant for which `cutlined` was asked, over this connection, with the numbers of the directions that it was asked for.
    pub(crate) fn asked(service: &'static str, client: Client, [send, receive]: [bool; 2]) -> Self {
        let begin = |asked| if asked { Standing::Pending } else { Standing::NotAsked };
        let standings = [begin(send), begin(receive)];
        Self { service, client: Some(client), standings, reserved: None, events: VecDeque::new() }
    }

    /// The name of the service.
    pub const fn service(&self) -> &'static str {
        self.service
    }

    /// How a direction stands, as far as [`Grant::event`] has read.
    pub const fn direction(&self, direction: Direction) -> &Standing {
        &self.standings[direction as usize]
    }

    /// Whether all that was asked for is reserved.
    pub fn is_complete(&self) -> bool {
        self.standings.iter().all(|standing| matches!(standing, Standing::Reserved | Standing::NotAsked))
    }

    /// Reads what the agent has said, without waiting. Events stay.
    pub fn refresh(&mut self) {
        self.read(Duration::ZERO);
    }

    /// Returns the next event, without waiting.
    pub fn event(&mut self) -> Option<Event> {
        self.read(Duration::ZERO);
        self.events.pop_front()
    }

    /// Waits until all that was asked for is reserved, or something is refused.
    ///
    /// # Errors
    /// Says what was refused, or that nobody has answered in time. The request is at work nevertheless, until the grant is dropped.
    pub fn wait(&mut self, time: Duration) -> Result<(), Refusal> {
        let until = now().saturating_add(time);
        loop {
            for standing in &self.standings {
                if let Standing::Failed(refusal) = standing {
                    return Err(refusal.clone());
                }
            }
            if self.is_complete() {
                return Ok(());
            }
            let left = until.saturating_since(now());
            if left.is_zero() {
                return Err(Refusal::new(Reason::Unanswered));
            }
            self.read(left);
        }
    }

    /// The descriptor that is readable when there may be events; none if there will never be any.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.client.as_ref().map(|client| client.as_fd())
    }

    /// Reads what the agent has said, and waits at most so long for the first of it.
    fn read(&mut self, time: Duration) {
        let Some(client) = &mut self.client else { return };
        let mut wait = time;
        loop {
            match client.reply(wait) {
                Ok(Some(reply)) => take(&mut self.standings, &mut self.reserved, &mut self.events, &reply),
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

    /// The agent has gone, and with it what it gave.
    fn fail(&mut self, error: &ClientError) {
        let refusal = Refusal::new(Reason::NoAgent(error.to_string()));
        for direction in [Direction::Send, Direction::Receive] {
            let standing = &mut self.standings[direction as usize];
            if *standing != Standing::NotAsked {
                *standing = Standing::Failed(refusal.clone());
                self.events.push_back(Event::Lost(direction, refusal.clone()));
            }
        }
    }
}

/// Notes what the agent says.
fn take(
    standings: &mut [Standing; 2],
    reserved: &mut Option<TokenBucket>,
    events: &mut VecDeque<Event>,
    reply: &Reply,
) {
    let direction = match reply.id() {
        Some(SEND) => Direction::Send,
        Some(RECEIVE) => Direction::Receive,
        _ => return,
    };
    let standing = &mut standings[direction as usize];
    match reply {
        Reply::Reserved { bucket: Some(bucket), .. } => {
            let bucket = TokenBucket::from(*bucket);
            let is_new = *standing != Standing::Reserved;
            *standing = Standing::Reserved;
            if is_new {
                events.push_back(Event::Granted(direction));
            }
            if !is_new && *reserved != Some(bucket) {
                events.push_back(Event::Changed(direction, bucket));
            }
            *reserved = Some(bucket);
        }
        Reply::Reserved { bucket: None, .. } if *standing == Standing::Reserved => {
            let refusal = Refusal::new(Reason::Ended);
            *standing = Standing::Failed(refusal.clone());
            events.push_back(Event::Lost(direction, refusal));
        }
        Reply::Confirmed { node, .. } => {
            if *standing != Standing::Reserved {
                *standing = Standing::Reserved;
                events.push_back(Event::Granted(direction));
            }
            events.push_back(Event::Confirmed(*node));
        }
        Reply::SenderGone { .. } => {
            let refusal = Refusal::new(Reason::NoPath);
            *standing = Standing::Failed(refusal.clone());
            events.push_back(Event::Lost(direction, refusal));
        }
        Reply::Failed { refusal, in_place: false, .. } => {
            *standing = Standing::Failed(refusal.clone());
            events.push_back(Event::Lost(direction, refusal.clone()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why_where_and_what_would_be_granted() {
        let refusal = Refusal {
            reason: Reason::Bandwidth,
            node: Some([10, 0, 0, 1].into()),
            available_bps: Some(400_000),
        };
        let said = "the bandwidth is not available at 10.0.0.1; 400 kbit/s would be granted";
        assert_eq!(refusal.to_string(), said);
        assert_eq!(refusal.available(), Some(Rate::from_kbps(400)));
        let text = serde_json::to_string(&refusal).unwrap();
        assert_eq!(serde_json::from_str::<Refusal>(&text).unwrap(), refusal);
    }
}

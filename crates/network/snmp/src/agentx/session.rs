//! A session with a master agent: it is opened again when it ends.

use super::message::{self, AgentxHeader, AgentxRequest, HEADER, MalformedMessage, NameRange};
use crate::mib::ROOT;
use crate::notification::Notification;
use crate::objects::HostObjects;
use crate::outbox::Outbox;
use crate::standard::{intsrv, rsvp};
use async_snmp::Value;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::time::{interval, sleep, timeout};

/// Time between attempts to connect to the master.
const RETRY: Duration = Duration::from_secs(5);
/// Time within which the master has to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval of questions whether the master is there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// The most values of an answer: a master requests as many as fit into a datagram.
const MOST_VALUES: usize = 500;
/// The most notifications of which the answer of the master is awaited.
const MOST_UNACKNOWLEDGED: usize = 256;
/// Error of a change that is not allowed (RFC 3416).
const NOT_WRITABLE: u16 = 17;

/// Reason why a session has ended.
#[derive(Debug, thiserror::Error)]
enum SessionError {
    /// The connection has failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The master sends something else than AgentX.
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    /// The master refuses the session.
    #[error("the master refuses: error {0} of AgentX")]
    Refused(u16),
    /// The master does not answer.
    #[error("the master does not answer")]
    Silent,
    /// The master has closed the session.
    #[error("the master has closed the session")]
    Closed,
}

/// Serves the objects through the master that listens at `path`, and connects again whenever the session ends. `say` gets a message
/// when a session begins or ends.
pub async fn serve(
    path: &Path,
    objects: &Arc<HostObjects>,
    outbox: &Outbox,
    say: &(dyn Fn(String) + Send + Sync),
) {
    let at = path.display();
    let mut was_said = false;
    loop {
        let ending = match Session::open(path, objects).await {
            Ok(session) => {
                say(format!("agentx: the objects are served through the master at {at}"));
                was_said = false;
                session.run(outbox).await
            }
            Err(error) => error,
        };
        // A master that is away for hours is worth one message.
        if !std::mem::replace(&mut was_said, true) {
            say(format!("agentx: {at}: {ending}; trying again every {} s", RETRY.as_secs()));
        }
        sleep(RETRY).await;
    }
}

/// A session.
struct Session<'o> {
    objects: &'o Arc<HostObjects>,
    stream: UnixStream,
    number: u32,
    packet: u32,
}

/// Reads a message.
async fn receive(
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
) -> Result<(AgentxHeader, AgentxRequest), SessionError> {
    let mut header = [0; HEADER];
    stream.read_exact(&mut header).await?;
    let header = AgentxHeader::parse(header)?;
    let mut payload = vec![0; header.length];
    stream.read_exact(&mut payload).await?;
    let request = AgentxRequest::parse(&header, &payload)?;
    Ok((header, request))
}

impl<'o> Session<'o> {
    /// Opens a session, and registers the modules.
    async fn open(path: &Path, objects: &'o Arc<HostObjects>) -> Result<Self, SessionError> {
        let stream =
            timeout(PATIENCE, UnixStream::connect(path)).await.map_err(|_| SessionError::Silent)??;
        let mut session = Self { objects, stream, number: 0, packet: 0 };
        let about = concat!("Cutline ", env!("CARGO_PKG_VERSION"));
        let open = message::open(session.next_packet(), ROOT, about);
        session.number = session.ask(&open).await?.session;
        for name in [ROOT, rsvp::ROOT, intsrv::ROOT] {
            let (number, packet) = (session.number, session.next_packet());
            session.ask(&message::register(number, packet, name)).await?;
        }
        Ok(session)
    }

    fn next_packet(&mut self) -> u32 {
        self.packet = self.packet.wrapping_add(1);
        self.packet
    }

    /// Sends a message and waits for its answer.
    async fn ask(&mut self, message: &[u8]) -> Result<AgentxHeader, SessionError> {
        self.stream.write_all(message).await?;
        let answer =
            timeout(PATIENCE, receive(&mut self.stream)).await.map_err(|_| SessionError::Silent)??;
        match answer {
            (header, AgentxRequest::Response { error: 0 }) => Ok(header),
            (_, AgentxRequest::Response { error }) => Err(SessionError::Refused(error)),
            _ => Err(SessionError::Closed),
        }
    }

    /// Answers the master until the session ends. Returns the reason.
    async fn run(self, outbox: &Outbox) -> SessionError {
        let Self { objects, stream, number, packet } = self;
        let (mut reader, writer) = stream.into_split();
        let (requests, received) = tokio::sync::mpsc::channel(16);
        // A message is read whole: reading is not interrupted by notifications.
        let read = async {
            loop {
                let request = receive(&mut reader).await;
                let is_last = request.is_err();
                if requests.send(request).await.is_err() || is_last {
                    return;
                }
            }
        };
        let mut answerer =
            Answerer { objects, outbox, writer, number, packet, unacknowledged: VecDeque::new() };
        let answer = async {
            let ending = answerer.run(received).await;
            // The master that comes next gets them, one or the other for the second time.
            outbox.put_back(answerer.unacknowledged.drain(..).map(|(_, notification)| notification));
            ending
        };
        tokio::join!(read, answer).1
    }
}

/// The answering side of a session.
struct Answerer<'o> {
    objects: &'o Arc<HostObjects>,
    outbox: &'o Outbox,
    writer: OwnedWriteHalf,
    number: u32,
    packet: u32,
    /// Notifications that the master has not answered yet, with the numbers of their messages, the oldest first.
    unacknowledged: VecDeque<(u32, Arc<Notification>)>,
}

impl Answerer<'_> {
    async fn run(
        &mut self,
        mut requests: tokio::sync::mpsc::Receiver<Result<(AgentxHeader, AgentxRequest), SessionError>>,
    ) -> SessionError {
        let mut pings = interval(PING_EVERY);
        pings.tick().await;
        loop {
            let done = tokio::select! {
                request = requests.recv() => match request {
                    Some(Ok((header, request))) => self.answer(&header, &request).await,
                    Some(Err(error)) => Err(error),
                    None => Err(SessionError::Closed),
                },
                notification = self.outbox.take() => self.notify(notification).await,
                _ = pings.tick() => self.ping().await,
            };
            if let Err(error) = done {
                return error;
            }
        }
    }

    fn next_packet(&mut self) -> u32 {
        self.packet = self.packet.wrapping_add(1);
        self.packet
    }

    async fn send(&mut self, message: &[u8]) -> Result<(), SessionError> {
        timeout(PATIENCE, self.writer.write_all(message)).await.map_err(|_| SessionError::Silent)??;
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), SessionError> {
        let packet = self.next_packet();
        self.send(&message::ping(self.number, packet)).await
    }

    async fn notify(&mut self, notification: Arc<Notification>) -> Result<(), SessionError> {
        let packet = self.next_packet();
        let message = message::notify(self.number, packet, &notification.kind, &notification.objects);
        if self.unacknowledged.len() == MOST_UNACKNOWLEDGED {
            // A master that answers none of them has them all the same.
            self.unacknowledged.pop_front();
        }
        self.unacknowledged.push_back((packet, notification));
        self.send(&message).await
    }

    async fn answer(&mut self, header: &AgentxHeader, request: &AgentxRequest) -> Result<(), SessionError> {
        let message = match request {
            AgentxRequest::Get(ranges) => {
                let values: Vec<_> = ranges.iter().map(|range| self.get(&range.from)).collect();
                message::response(header, (0, 0), &values)
            }
            AgentxRequest::GetNext(ranges) => {
                let values: Vec<_> = ranges.iter().map(|range| self.next(range)).collect();
                message::response(header, (0, 0), &values)
            }
            AgentxRequest::GetBulk { single, most, ranges } => {
                message::response(header, (0, 0), &self.bulk(*single, *most, ranges))
            }
            AgentxRequest::Set { is_test: true } => message::response(header, (NOT_WRITABLE, 1), &[]),
            AgentxRequest::Set { is_test: false } => message::response(header, (0, 0), &[]),
            AgentxRequest::Close => return Err(SessionError::Closed),
            AgentxRequest::Response { .. } => {
                self.unacknowledged.retain(|(packet, _)| *packet != header.packet);
                return Ok(());
            }
            AgentxRequest::Other => return Ok(()),
        };
        self.send(&message).await
    }

    fn get(&self, name: &[u32]) -> (Vec<u32>, Value) {
        let value = match self.objects.get(name) {
            Ok(Some(value)) => value,
            Ok(None) => Value::NoSuchInstance,
            Err(_) => Value::NoSuchObject,
        };
        (name.to_vec(), value)
    }

    fn next(&self, range: &NameRange) -> (Vec<u32>, Value) {
        if range.is_included
            && let Ok(Some(value)) = self.objects.get(&range.from)
        {
            return (range.from.clone(), value);
        }
        let found = self.objects.next_of_subagent(&range.from);
        let found = found.filter(|(name, _)| range.to.is_empty() || *name < range.to);
        found.unwrap_or_else(|| (range.from.clone(), Value::EndOfMibView))
    }

    /// Returns the values of a request for many (section 7.2.3.3).
    fn bulk(&self, single: usize, most: usize, ranges: &[NameRange]) -> Vec<(Vec<u32>, Value)> {
        let single = single.min(ranges.len());
        let mut values: Vec<_> = ranges[..single].iter().map(|range| self.next(range)).collect();
        let mut places = ranges[single..].to_vec();
        for _ in 0..most {
            if places.is_empty() || values.len() + places.len() > MOST_VALUES {
                break;
            }
            let found: Vec<_> = places.iter().map(|range| self.next(range)).collect();
            for (range, (name, _)) in places.iter_mut().zip(&found) {
                (range.from, range.is_included) = (name.clone(), false);
            }
            let is_end = found.iter().all(|(_, value)| *value == Value::EndOfMibView);
            values.extend(found);
            if is_end {
                break;
            }
        }
        values
    }
}

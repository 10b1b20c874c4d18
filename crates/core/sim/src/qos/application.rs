//! The two agents of a QoS connection: the producer and the consumer of messages.

use super::end::End;
use super::record::{Passage, QosLog};
use super::{Beginning, LOWER_HEADERS};
use crate::agent::{Address, Agent, AgentMessage, Context};
use crate::managed::ManagedShare;
use cutline_manager::feedback::{FlowEdges, FlowReport};
use cutline_manager::resources::FlowId;
use cutline_quality::spec::Region;
use cutline_signal::frame::{DATAGRAM_HEADER, datagram_header};
use cutline_units::{Duration, Instant, Rate};

/// The agent at the source: an application over a socket that blocks.
pub(super) struct Sender {
    end: End,
    /// Time of the application's next message; `None` while it may not send.
    next: Option<Instant>,
    /// The message that waits.
    waiting: Option<Waiting>,
    /// The first message comes at this share of an interval.
    phase: f64,
    share: Option<Share>,
}

/// A connection's share of its host.
struct Share {
    spec: ManagedShare,
    /// `None` while it is not requested, or if it is refused.
    flow: Option<FlowId>,
    is_asked: bool,
    /// Bytes on the wire for a byte of a message.
    factor: f64,
    /// Rate of messages that the session knows.
    limit: Option<Rate>,
    /// End of the last interval that was reported.
    reported: Instant,
    /// Time of the last renewal.
    renewed: Instant,
}

/// Interval of renewals without reports.
const RENEWAL: Duration = Duration::from_secs(1);

impl Share {
    fn new(spec: ManagedShare) -> Self {
        let (flow, is_asked, factor, limit) = (None, false, 1.0, None);
        Self { spec, flow, is_asked, factor, limit, reported: Instant::ZERO, renewed: Instant::ZERO }
    }

    /// Requests the flow once, reports deliveries, and follows the granted rate.
    fn follow(&mut self, now: Instant, end: &mut End, context: &mut Context<'_>) {
        if !self.is_asked {
            self.ask(now, end, context);
        }
        let Some(flow) = self.flow else { return };
        let delivery = end.delivered().filter(|delivery| delivery.until > self.reported);
        if let Some(delivery) = delivery {
            self.reported = delivery.until;
            let report = FlowReport { delivery, ..FlowReport::default() };
            self.spec.host.report(now, flow, Some(&report), context);
            self.renewed = now;
        } else if now.saturating_since(self.renewed) >= RENEWAL {
            self.spec.host.report(now, flow, None, context);
            self.renewed = now;
        }
        let rate = self.spec.host.rate(flow);
        let rate = rate.map(|rate| Rate::from_bps((rate.as_bps() as f64 / self.factor) as u64));
        if rate != self.limit {
            self.limit = rate;
            end.limit(now, rate, context);
        }
    }

    fn ask(&mut self, now: Instant, end: &End, context: &mut Context<'_>) {
        let Some(sending) = end.sending() else { return };
        let (Some(desired), size) = (sending.max_throughput(), end.message_size()) else { return };
        self.is_asked = true;
        self.factor = (size + DATAGRAM_HEADER as u64 + u64::from(LOWER_HEADERS)) as f64 / size as f64;
        let on_wire = |rate: Rate| Rate::from_bps((rate.as_bps() as f64 * self.factor).ceil() as u64);
        let rates = (on_wire(sending.min_throughput().unwrap_or(Rate::from_bps(1))), on_wire(desired));
        let edges = FlowEdges::new(&Region::new(sending));
        self.flow = self.spec.host.admit(now, &self.spec, rates, edges, context);
        self.renewed = now;
    }
}

/// A message that waits for its turn.
#[derive(Clone, Copy)]
struct Waiting {
    made: Instant,
    until: Instant,
}

/// The agent at the sink.
pub(super) struct Receiver {
    end: End,
}

impl Sender {
    pub(super) fn new(mut beginning: Beginning, to: Address, log: QosLog) -> Self {
        let phase = beginning.random.uniform();
        let share = beginning.connection.managed.clone().map(Share::new);
        Self { end: End::new(beginning, to, log), next: None, waiting: None, phase, share }
    }

    /// The time between two messages.
    fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.end.rate().recip())
    }

    /// Runs the due actions of the application.
    fn work(&mut self, now: Instant, context: &mut Context<'_>) {
        if !self.end.may_send() {
            return;
        }
        if let Some(share) = &mut self.share {
            share.follow(now, &mut self.end, context);
        }
        if self.next.is_none() {
            self.next = Some(now.saturating_add(self.interval().mul_f64(self.phase)));
        }
        self.look_again(now);
        if self.waiting.is_some_and(|waiting| waiting.until <= now) {
            self.go_on(now, context);
        }
        while let Some(made) = self.next.filter(|next| self.waiting.is_none() && *next <= now) {
            if made >= self.end.connection().stop {
                self.next = Some(Instant::FAR_FUTURE);
                return;
            }
            // Who was blocked makes the next message at once, if it is late.
            self.next = Some(made.saturating_add(self.interval()).max(now));
            let Some((out, _)) = self.end.outbound() else { return };
            let until = out.ready_at(now);
            if until > now {
                out.hold(now);
                self.waiting = Some(Waiting { made: now, until });
                return;
            }
            self.send(now, now, context);
        }
    }

    /// Feedback of rate control, or the manager of the host, may have changed when the message that waits may be sent.
    fn look_again(&mut self, now: Instant) {
        if let (Some(waiting), Some((out, _))) = (&mut self.waiting, self.end.outbound())
            && (out.has_rate_control() || self.share.is_some())
        {
            waiting.until = out.ready_at(now);
        }
    }

    /// The message that waits may perhaps be sent now.
    fn go_on(&mut self, now: Instant, context: &mut Context<'_>) {
        let (Some(waiting), Some((out, _))) = (self.waiting, self.end.outbound()) else { return };
        let until = out.ready_at(now);
        if until > now {
            self.waiting = Some(Waiting { until, ..waiting });
            return;
        }
        out.release(now);
        let feedback = self.end.feedback();
        feedback.pacing_waits += 1;
        feedback.waited += now.saturating_since(waiting.made);
        self.waiting = None;
        self.next = self.next.map(|next| next.max(now));
        self.send(waiting.made, now, context);
    }

    fn send(&mut self, made: Instant, now: Instant, context: &mut Context<'_>) {
        let size = self.end.message_size();
        let number = {
            let messages = &mut self.end.log().lock().messages;
            messages.push(Passage { made, sent: now, arrived: None, bytes: size as u32 });
            messages.len() as u64 - 1
        };
        let Some((out, token)) = self.end.outbound() else { return };
        let mut bytes = Vec::with_capacity(size as usize + 64);
        if let Some(token) = token {
            bytes.extend(datagram_header(token, out.number(), now, out.stated_rtt()));
        }
        let length = bytes.len() + size as usize;
        bytes.extend(number.to_be_bytes());
        bytes.resize(length, 0);
        out.on_send(now, size);
        self.end.send(bytes, context);
    }
}

impl Agent for Sender {
    fn on_message(&mut self, now: Instant, message: &AgentMessage, context: &mut Context<'_>) {
        self.end.take(now, &message.payload, context);
        self.work(now, context);
    }

    fn deadline(&self) -> Instant {
        if !self.end.has_begun() {
            return self.end.connection().start;
        }
        let application = self.waiting.map(|waiting| waiting.until).or(self.next);
        self.end.deadline().min(application.unwrap_or(Instant::FAR_FUTURE))
    }

    fn on_deadline(&mut self, now: Instant, context: &mut Context<'_>) {
        if !self.end.has_begun() {
            self.end.begin(now, context);
        }
        self.end.advance(now, context);
        self.work(now, context);
    }
}

impl Receiver {
    pub(super) fn new(beginning: Beginning, to: Address, log: QosLog) -> Self {
        Self { end: End::new(beginning, to, log) }
    }
}

impl Agent for Receiver {
    fn on_message(&mut self, now: Instant, message: &AgentMessage, context: &mut Context<'_>) {
        if !self.end.has_begun() {
            self.end.begin(now, context);
        }
        let Some(begin) = self.end.take(now, &message.payload, context) else { return };
        if let Some(number) = message.payload.get(begin..).and_then(|content| content.first_chunk()) {
            let number = u64::from_be_bytes(*number) as usize;
            if let Some(passage) = self.end.log().lock().messages.get_mut(number) {
                passage.arrived = Some(now);
            }
        }
    }

    fn deadline(&self) -> Instant {
        self.end.deadline()
    }

    fn on_deadline(&mut self, now: Instant, context: &mut Context<'_>) {
        self.end.advance(now, context);
    }
}

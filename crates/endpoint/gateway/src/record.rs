//! Recording of the delivered traffic as lines of JSON: intervals of the MIB and samples of messages
//! (QoSockets eq. 2 to 5). 2 to 5).

use crate::document::ConnectionDocument;
use cutline_records::record;
use cutline_socket::{Delivery, Mib, Sample, SentInterval};
use cutline_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// A line of a recording. `kind` is the kind of line; times are seconds of the host's monotonic clock.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RecordLine<'l> {
    /// The first line.
    Start(RecordingStarted),
    /// A connection was accepted.
    Open(ConnectionOpened),
    /// Traffic that a connection sent in an interval.
    Sent(IntervalSent),
    /// Traffic that a connection received in an interval.
    Received(IntervalReceived),
    /// A message that a connection received.
    Message(MessageReceived),
    /// Messages without lines of their own, because too many came at once.
    Forgotten(SamplesForgotten),
    /// A connection has ended.
    Close(ConnectionClosed<'l>),
}

/// A connection that has ended.
#[derive(Serialize, JsonSchema)]
pub struct ConnectionClosed<'l> {
    /// `close`.
    pub kind: &'static str,
    /// Time, s.
    #[schemars(extend("x-unit" = "s", "x-kind" = "gauge"))]
    pub at_s: f64,
    /// Traffic that the connection has delivered.
    pub delivered: &'l ConnectionDocument,
}

record! {
    /// The beginning of a recording.
    pub struct RecordingStarted {
        kind: &'static str, label, "`start`.";
        side: String, label, "Side of the recording gateway: `near` or `far`.";
        at_s: f64, gauge("s"), "Time of the beginning.";
        unix_s: f64, gauge("s"), "The same time by the system's clock, since 1970.";
    }

    /// A connection that was accepted.
    pub struct ConnectionOpened {
        kind: &'static str, label, "`open`.";
        connection: u64, label, "Number of the connection, from 1.";
        transport: String, label, "Protocol of the programs: `tcp` or `udp`.";
        listen: String, label, "Address at which the gateway has accepted it.";
        peer: String, label, "Address of the program or of the near gateway that has connected.";
        at_s: f64, gauge("s"), "Time of the acceptance.";
    }

    /// Traffic that a connection sent in an interval.
    pub struct IntervalSent {
        kind: &'static str, label, "`sent`.";
        connection: u64, label, "The connection.";
        from_s: f64, gauge("s"), "Beginning of the interval.";
        to_s: f64, gauge("s"), "End of the interval.";
        messages: u64, gauge("messages"), "Messages sent in the interval.";
        bytes: u64, gauge("B"), "Bytes of these messages.";
        throughput_bps: u64, gauge("bit/s"), "The throughput.";
        held_ms: f64, gauge("ms"), "Time in the interval for which sending was held back.";
    }

    /// Traffic that a connection received in an interval.
    pub struct IntervalReceived {
        kind: &'static str, label, "`received`.";
        connection: u64, label, "The connection.";
        from_s: f64, gauge("s"), "Beginning of the interval.";
        to_s: f64, gauge("s"), "End of the interval.";
        sent: u64, gauge("messages"), "Messages that the other gateway sent in the interval, as their numbers show.";
        messages: u64, gauge("messages"), "Messages received in the interval.";
        bytes: u64, gauge("B"), "Bytes of these messages.";
        lost: i64, gauge("messages"), "Messages lost; negative if messages came that had been counted as lost.";
        throughput_bps: u64, gauge("bit/s"), "The throughput.";
        loss_percent: Option<f64>, gauge("%"), "The loss; null if nothing was sent.";
        mean_delay_ms: Option<f64>, gauge("ms"), "The mean one-way delay; null if there is none.";
        max_delay_ms: Option<f64>, gauge("ms"), "The longest delay; null if there is none.";
        mean_jitter_ms: Option<f64>, gauge("ms"), "The mean change of delay between consecutive messages; null if there is none.";
        max_jitter_ms: Option<f64>, gauge("ms"), "The largest change; null if there is none.";
        clock_error_ms: Option<f64>, gauge("ms"), "The largest error of the delays because of the two clocks; null if it is not known.";
        unread_ms: f64, gauge("ms"), "Time in the interval in which data waited because the program did not read.";
        overflowed: u64, gauge("datagrams"), "Datagrams that the host dropped in the interval because the receive buffer of the socket was full.";
    }

    /// A message that a connection received.
    pub struct MessageReceived {
        kind: &'static str, label, "`message`.";
        connection: u64, label, "The connection.";
        number: u64, label, "Number of the message, which the other gateway gave it, from 0.";
        at_s: f64, gauge("s"), "Time of the arrival.";
        bytes: u64, gauge("B"), "Length of the message.";
        delay_ms: Option<f64>, gauge("ms"), "One-way delay of the message; null while the offset between the clocks is not known.";
        jitter_ms: Option<f64>, gauge("ms"), "The change of delay since the message before it; null of the first one.";
    }

    /// Messages without lines of their own.
    pub struct SamplesForgotten {
        kind: &'static str, label, "`forgotten`.";
        connection: u64, label, "The connection.";
        messages: u64, gauge("messages"), "Number of messages.";
    }
}

/// Seconds of the monotonic clock.
pub fn seconds(at: Instant) -> f64 {
    at.saturating_since(Instant::ZERO).as_secs_f64()
}

fn ms(time: Duration) -> f64 {
    time.as_millis_f64()
}

impl IntervalSent {
    pub(crate) fn new(connection: u64, of: &SentInterval) -> Self {
        Self {
            kind: "sent",
            connection,
            from_s: seconds(of.since),
            to_s: seconds(of.until),
            messages: of.sent.messages,
            bytes: of.sent.bytes,
            throughput_bps: of.throughput().as_bps(),
            held_ms: ms(of.sent.held),
        }
    }
}

impl IntervalReceived {
    pub(crate) fn new(connection: u64, of: &Delivery, mib: &Mib) -> Self {
        Self {
            kind: "received",
            connection,
            from_s: seconds(of.since),
            to_s: seconds(of.until),
            sent: of.sent,
            messages: of.messages,
            bytes: of.bytes,
            lost: of.lost,
            throughput_bps: of.throughput().as_bps(),
            loss_percent: of.loss(),
            mean_delay_ms: of.delay.map(|delay| ms(delay.mean)),
            max_delay_ms: of.delay.map(|delay| ms(delay.worst)),
            mean_jitter_ms: of.jitter.map(|jitter| ms(jitter.mean)),
            max_jitter_ms: of.jitter.map(|jitter| ms(jitter.worst)),
            clock_error_ms: mib.clock.as_ref().map(|clock| ms(clock.error)),
            unread_ms: ms(of.unread),
            overflowed: of.overflowed,
        }
    }
}

impl MessageReceived {
    pub(crate) fn new(connection: u64, of: &Sample) -> Self {
        Self {
            kind: "message",
            connection,
            number: of.number,
            at_s: seconds(of.arrived),
            bytes: of.bytes,
            delay_ms: of.delay.map(ms),
            jitter_ms: of.jitter.map(ms),
        }
    }
}

/// Writer of the recording.
pub struct Recorder {
    to: Box<dyn Write + Send>,
    /// The first error, after which nothing is written.
    error: Option<io::Error>,
}

impl Recorder {
    pub fn new(to: Box<dyn Write + Send>) -> Self {
        Self { to, error: None }
    }

    pub fn write(&mut self, line: &RecordLine<'_>) {
        if self.error.is_none() {
            let mut text = serde_json::to_vec(line).expect("the lines have text keys only");
            text.push(b'\n');
            self.error = self.to.write_all(&text).err();
        }
    }

    pub fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.to.flush().err();
        }
    }

    /// Returns the error that has ended the recording.
    pub const fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }
}

//! The report of one end of a connection to the other, and its feedback for rate control: accepted bytes are those that would be written,
//! and whatever the contents of a report, the end that takes it stays within its own counts.

use cutline_quality::spec::{Preset, Specification};
use cutline_signal::clock::{ClockParams, OffsetEstimator, Stamper};
use cutline_signal::monitor::{PeerReports, Report, Sent};
use cutline_signal::rate_control::FeedbackMessage;
use cutline_signal::violation::{Watch, WatchParams};
use cutline_units::{Duration, Instant};

/// Traffic sent by the end that takes the reports.
const SENT: Sent = Sent { messages: 1000, bytes: 1_000_000, held: Duration::ZERO };

/// Takes the bytes as one feedback after the other. Returns whether one is accepted.
fn feedback(bytes: &[u8]) -> bool {
    let mut is_accepted = false;
    for bytes in bytes.chunks(FeedbackMessage::LENGTH) {
        let Some(message) = FeedbackMessage::decode(bytes) else { continue };
        assert_eq!(message.encode(), bytes, "it is what would be written");
        is_accepted = true;
    }
    is_accepted
}

/// Takes the bytes as one report after the other, of the same length each, or as feedback.
pub(crate) fn parse(bytes: &[u8]) -> bool {
    let found = [feedback(bytes), reports(bytes, Report::LENGTH), reports(bytes, Report::LONGEST)];
    found.contains(&true)
}

/// Takes the bytes as reports of this length. Returns whether one is accepted.
fn reports(bytes: &[u8], length: usize) -> bool {
    let (mut reports, mut stamper) = (PeerReports::default(), Stamper::default());
    let clock = OffsetEstimator::new(ClockParams::default());
    let mut clock = clock.expect("the defaults are allowed");
    let spec: Specification = Preset::Video.specification();
    let mut watch = Watch::new(&spec, WatchParams::default()).expect("the defaults are allowed");
    let mut now = Instant::ZERO;
    let mut is_accepted = false;
    for bytes in bytes.chunks(length) {
        now += Duration::from_millis(500);
        stamper.stamp(now);
        let Some(report) = Report::decode(bytes) else { continue };
        assert_eq!(report.encode(), bytes, "it is what would be written");
        is_accepted = true;
        if let Some(exchange) = stamper.on_stamps(now, &report.stamps) {
            clock.add(&exchange);
        }
        let Ok(delivery) = reports.accept(now, report, SENT, clock.estimate(now)) else { continue };
        assert!(delivery.messages <= SENT.messages && delivery.bytes <= SENT.bytes, "{delivery:?}");
        assert!(delivery.sent <= SENT.messages && delivery.since <= delivery.until, "{delivery:?}");
        assert!(delivery.until <= now, "it ended before it was told");
        let error = reports.last().map_or(Duration::ZERO, |report| report.delay_error);
        let assessment = watch.on_interval(&delivery, error, reports.demand());
        let worst = assessment.worst(&cutline_quality::spec::Measure::ALL);
        assert!(worst.is_none_or(f64::is_finite), "{delivery:?}");
    }
    is_accepted
}

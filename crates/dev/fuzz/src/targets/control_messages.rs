//! The generator's control protocol: `cutline_traffic::control::message`.
//!
//! - Messages read back the same after they were written, and each is one line.
//! - A message that is too long is refused, and no more of it is read than allowed.
//! - The tag of a line is the digits at its beginning, and its message is the rest.
//! - A receiver's report can be summed up and shown, whatever numbers are in it.
//! - The flows that a receiver is asked to send are refused or have valid plans.

use cutline_traffic::control::message::{
    ControlReply, ControlRequest, LONGEST_REPLY, LONGEST_START, Report, TAG, read_message, split_tag,
    write_message,
};
use cutline_traffic::{FlowsSummary, Generator, SenderReport};
use cutline_units::{Duration, Streams};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub fn request(bytes: &[u8]) -> bool {
    let message_of = |bytes| {
        let request = message::<ControlRequest>(bytes, LONGEST_START);
        request.as_ref().inspect(|request| plan(request)).is_some()
    };
    let Some((tag, rest)) = split_tag(bytes) else { return message_of(bytes) };
    for (byte, digits) in tag.iter().zip(bytes[..2 * TAG].chunks(2)) {
        assert!(digits.eq_ignore_ascii_case(format!("{byte:02x}").as_bytes()), "{byte} is {digits:?}");
    }
    assert_eq!(bytes.len(), 2 * TAG + 1 + rest.len());
    message_of(rest)
}

pub fn reply(bytes: &[u8]) -> bool {
    let Some(reply) = message::<ControlReply>(bytes, LONGEST_REPLY) else { return false };
    if let ControlReply::Report(report) = &reply {
        sum_up(report);
    }
    true
}

/// Plans the flows that a receiver is asked to send.
fn plan(request: &ControlRequest) {
    let ControlRequest::Start(start) = request else { return };
    for group in &start.reverse {
        let Ok(plans) = group.plans("192.0.2.1:9".parse().expect("it is an address")) else { continue };
        for plan in plans {
            assert!(plan.validate().is_ok(), "{plan:?}");
            let _starts = Generator::new(vec![plan], Streams::new(start.seed)).expect("a valid plan");
        }
    }
}

fn message<T: Serialize + DeserializeOwned>(bytes: &[u8], longest: u64) -> Option<T> {
    let mut rest = bytes;
    let read = read_message::<T>(&mut rest, longest);
    let taken = bytes.len() - rest.len();
    assert!(taken as u64 <= longest, "no more is read than allowed");
    let message = read.ok()??;
    let line = write_message(&message).expect("what was JSON can be JSON");
    assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1), "one line");
    let again: T =
        read_message(&line[..], u64::MAX).expect("what we write can be read").expect("it is there");
    assert_eq!(write_message(&again).expect("it is JSON"), line, "the same again");
    Some(message)
}

/// Sums up a report as `cutline tg send` does.
fn sum_up(report: &Report) {
    let (mut summary, mut all) = (FlowsSummary::default(), FlowsSummary::default());
    for sent in &report.sent {
        summary.add(sent, None);
        let _shown = (sent.responses.mean(), sent.lateness.quantile(0.99));
    }
    for flow in &report.received.flows {
        summary.add(&SenderReport::default(), Some(flow));
        for delays in [&flow.delay, &flow.ipdv] {
            let _shown = (delays.mean(), delays.quantile(0.5), delays.quantile(0.99), delays.max());
        }
        for interval in &flow.intervals {
            let _shown = interval.mean_delay();
        }
    }
    all.merge(&summary);
    all.merge(&summary);
    assert!(all.loss().is_none_or(|loss| (0.0..=1.0).contains(&loss)), "{:?}", all.loss());
    assert!(all.goodput_bps(Duration::from_secs(1)) >= 0.0);
}

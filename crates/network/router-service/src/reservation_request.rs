//! Requests that reserve: a JSON object in a line, read strictly.
//!
//! ```json
//! {"request":"reserve","direction":"forward","reservation":1,"rate_bps":640000,"bucket_bytes":2000,"min_policed_bytes":64,
//!  "max_packet_bytes":1500,"filters":[{"destination":"10.0.1.1","protocol":17,"destination_port":5004,"source":"10.0.0.1",
//!  "source_port":4000}]}
//! ```
//!
//! `change` has the same keys but `filters`; `add-filter` and `remove-filter` have `filter` instead of a bucket; `release` has none of
//! these. A filter without `source`, `source_port` or `destination_port` matches any.

use crate::reload::shortened;
use cutline_config::{Document, Node, TableReader, Value, ValueKind, kind};
use cutline_flow::{FlowSelector, TrafficSpec};
use cutline_text::Printable;
use cutline_units::{Bytes, Rate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// One of the directions of a router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RouterDirection {
    /// From `in` to `out`.
    #[default]
    Forward,
    /// From `out` to `in`.
    Reverse,
}

/// A request that changes the reservations. Its text is the line that a client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationRequest {
    /// The direction in which it is reserved.
    pub direction: RouterDirection,
    /// The number of the reservation, which the client has chosen.
    pub number: u64,
    /// The requested action.
    pub action: ReservationAction,
}

/// Action on a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReservationAction {
    /// Reserve for the packets of these filters.
    Reserve(TrafficSpec, Vec<FlowSelector>),
    /// Change the token bucket.
    Change(TrafficSpec),
    /// Reserve for the packets of a further filter.
    AddFilter(FlowSelector),
    /// Stop reserving for the packets of this filter.
    RemoveFilter(FlowSelector),
    /// End the reservation.
    Release,
}

/// Reason why a line is not such a request: each key with its value and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReservationRequestError(String);

/// The largest number of a reservation, which every JSON parser reads exactly.
const LARGEST_NUMBER: i64 = (1 << 53) - 1;
/// The deepest nesting. A request has three levels; the parser must not use up a small stack.
const DEEPEST: usize = 8;

impl ReservationRequest {
    /// The most filters in a request.
    pub const MAX_FILTERS: usize = 16;
}

impl FromStr for ReservationRequest {
    type Err = ReservationRequestError;

    fn from_str(line: &str) -> Result<Self, ReservationRequestError> {
        if is_deep(line) {
            return Err(ReservationRequestError(format!("the request is nested more than {DEEPEST} deep")));
        }
        let read = || cutline_config::read(&Document::parse_json(line, "request")?, request);
        read()
            .map_err(|errors: cutline_config::Errors| ReservationRequestError(shortened(errors.to_string())))
    }
}

/// Returns whether brackets are nested too deep. Brackets in text count, too; no request has any there.
fn is_deep(line: &str) -> bool {
    let mut depth = 0_usize;
    line.bytes().any(|byte| {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEEPEST
    })
}

/// The names of the actions.
#[derive(Clone, Copy)]
enum Name {
    Reserve,
    Change,
    AddFilter,
    RemoveFilter,
    Release,
}

const NAMES: [(&str, Name); 5] = [
    ("reserve", Name::Reserve),
    ("change", Name::Change),
    ("add-filter", Name::AddFilter),
    ("remove-filter", Name::RemoveFilter),
    ("release", Name::Release),
];

fn request(root: &TableReader<'_>) -> Option<ReservationRequest> {
    let Some(name) = root.required("request", &kind::one_of("one of", &NAMES)) else {
        root.report_missing();
        return None;
    };
    let directions = [("forward", RouterDirection::Forward), ("reverse", RouterDirection::Reverse)];
    let direction = root.required("direction", &kind::one_of("one of", &directions));
    let number = root.required("reservation", &kind::integer(0, LARGEST_NUMBER));
    let action = match name {
        Name::Reserve => {
            let filters = filters(root);
            bucket(root).zip(filters).map(|(bucket, filters)| ReservationAction::Reserve(bucket, filters))
        }
        Name::Change => bucket(root).map(ReservationAction::Change),
        Name::AddFilter => only_filter(root).map(ReservationAction::AddFilter),
        Name::RemoveFilter => only_filter(root).map(ReservationAction::RemoveFilter),
        Name::Release => Some(ReservationAction::Release),
    };
    root.finish();
    Some(ReservationRequest { direction: direction?, number: number?, action: action? })
}

fn bucket(root: &TableReader<'_>) -> Option<TrafficSpec> {
    let within = |least: u64, most: u64| kind::integer(least as i64, i64::try_from(most).unwrap_or(i64::MAX));
    let size = |key, most: Bytes| root.required(key, &within(1, most.get())).map(Bytes::new);
    let rates = within(TrafficSpec::MIN_RATE.as_bps(), TrafficSpec::MAX_RATE.as_bps());
    let rate = root.required("rate_bps", &rates).map(Rate::from_bps);
    let bucket = size("bucket_bytes", TrafficSpec::MAX_BUCKET);
    let [min_policed, max_packet] =
        ["min_policed_bytes", "max_packet_bytes"].map(|key| size(key, TrafficSpec::MAX_PACKET));
    Some(TrafficSpec {
        rate: rate?,
        bucket: bucket?,
        // The router polices no peak rate.
        peak: TrafficSpec::UNKNOWN_PEAK,
        min_policed: min_policed?,
        max_packet: max_packet?,
    })
}

fn only_filter(root: &TableReader<'_>) -> Option<FlowSelector> {
    const EXPECTED: &str = "an object with destination and protocol";
    if !root.has("filter") {
        root.lacks("filter", EXPECTED);
    }
    filter(&root.table("filter", EXPECTED)?)
}

fn filters(root: &TableReader<'_>) -> Option<Vec<FlowSelector>> {
    let expected = format!("a list of 1 to {} filters", ReservationRequest::MAX_FILTERS);
    let Some(node) = root.node("filters") else {
        root.lacks("filters", &expected);
        return None;
    };
    let Value::List(list) = &node.value else {
        root.wrong("filters", node, &expected, "");
        return None;
    };
    if list.is_empty() || list.len() > ReservationRequest::MAX_FILTERS {
        root.wrong("filters", node, &expected, &format!("it has {}", list.len()));
        return None;
    }
    let read = |(place, node): (usize, &Node)| {
        let key = format!("filters[{}]", place + 1);
        root.table_in(node, &key, "an object with destination and protocol").and_then(|table| filter(&table))
    };
    // All of them are read, so that all errors are reported.
    list.iter().enumerate().map(read).collect::<Vec<_>>().into_iter().collect()
}

fn filter(table: &TableReader<'_>) -> Option<FlowSelector> {
    let port = kind::integer(1, u16::MAX.into()).map(|port| port as u16);
    let destination = table.required("destination", &address());
    let protocol = table.required("protocol", &kind::integer(0, u8::MAX.into()));
    let destination_port = table.optional("destination_port", &port);
    let source = table.optional("source", &address());
    let source_port = table.optional("source_port", &port);
    let flow_label = table
        .optional("flow_label", &kind::integer(0, FlowSelector::MAX_LABEL.into()))
        .map(|label| label as u32);
    table.finish();
    let (destination, protocol) = (destination?, Some(protocol? as u8));
    let filter = FlowSelector { destination, protocol, destination_port, source, source_port, flow_label };
    if let Err(error) = filter.check() {
        table.refuse(&error.parameter.replace('-', "_"), &format!("it must be {}", error.allowed));
        return None;
    }
    Some(filter)
}

fn address() -> ValueKind<IpAddr> {
    ValueKind::new("an address of IPv4 or IPv6 such as \"10.0.0.1\"", |node| match &node.value {
        Value::Text(text) => text.parse().map_err(|_| format!("{:?} is none", Printable(text).to_string())),
        _ => Err(String::new()),
    })
}

impl fmt::Display for ReservationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Map::new();
        let name = match &self.action {
            ReservationAction::Reserve(bucket, filters) => {
                write_bucket(&mut line, bucket);
                line.insert("filters".to_owned(), filters.iter().map(filter_json).collect());
                "reserve"
            }
            ReservationAction::Change(bucket) => {
                write_bucket(&mut line, bucket);
                "change"
            }
            ReservationAction::AddFilter(filter) => {
                line.insert("filter".to_owned(), filter_json(filter));
                "add-filter"
            }
            ReservationAction::RemoveFilter(filter) => {
                line.insert("filter".to_owned(), filter_json(filter));
                "remove-filter"
            }
            ReservationAction::Release => "release",
        };
        line.insert("request".to_owned(), json!(name));
        line.insert("direction".to_owned(), json!(self.direction));
        line.insert("reservation".to_owned(), json!(self.number));
        write!(f, "{}", serde_json::Value::Object(line))
    }
}

fn write_bucket(line: &mut Map<String, serde_json::Value>, bucket: &TrafficSpec) {
    let TrafficSpec { rate, bucket, peak: _, min_policed, max_packet } = bucket;
    for (key, value) in [
        ("rate_bps", rate.as_bps()),
        ("bucket_bytes", bucket.get()),
        ("min_policed_bytes", min_policed.get()),
        ("max_packet_bytes", max_packet.get()),
    ] {
        line.insert(key.to_owned(), value.into());
    }
}

fn filter_json(filter: &FlowSelector) -> serde_json::Value {
    let FlowSelector { destination, protocol, destination_port, source, source_port, flow_label } = filter;
    let mut line = Map::new();
    line.insert("destination".to_owned(), json!(destination));
    let parts = [
        ("protocol", protocol.map(|protocol| json!(protocol))),
        ("destination_port", destination_port.map(|port| json!(port))),
        ("source", source.map(|source| json!(source))),
        ("source_port", source_port.map(|port| json!(port))),
        ("flow_label", flow_label.map(|label| json!(label))),
    ];
    for (key, value) in parts {
        line.extend(value.map(|value| (key.to_owned(), value)));
    }
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket() -> TrafficSpec {
        let [bucket, min_policed, max_packet] = [2000, 64, 1500].map(Bytes::new);
        let peak = TrafficSpec::UNKNOWN_PEAK;
        TrafficSpec { rate: Rate::from_kbps(640), bucket, peak, min_policed, max_packet }
    }

    fn filter() -> FlowSelector {
        FlowSelector {
            destination: "10.0.1.1".parse().unwrap(),
            protocol: Some(17),
            destination_port: Some(5004),
            source: Some("10.0.0.1".parse().unwrap()),
            source_port: None,
            flow_label: None,
        }
    }

    #[test]
    fn a_request_is_read_as_it_is_written() {
        let longest: IpAddr = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff1".parse().unwrap();
        let long = FlowSelector {
            destination: longest,
            protocol: Some(255),
            destination_port: Some(65_535),
            source: Some(longest),
            source_port: Some(65_535),
            flow_label: Some(FlowSelector::MAX_LABEL),
        };
        let widest = TrafficSpec {
            rate: TrafficSpec::MAX_RATE,
            bucket: TrafficSpec::MAX_BUCKET,
            peak: TrafficSpec::UNKNOWN_PEAK,
            min_policed: TrafficSpec::MAX_PACKET,
            max_packet: TrafficSpec::MAX_PACKET,
        };
        for action in [
            ReservationAction::Reserve(bucket(), vec![filter(), FlowSelector { source: None, ..filter() }]),
            ReservationAction::Reserve(widest, vec![long; ReservationRequest::MAX_FILTERS]),
            ReservationAction::Change(bucket()),
            ReservationAction::AddFilter(long),
            ReservationAction::RemoveFilter(filter()),
            ReservationAction::Release,
        ] {
            let request = ReservationRequest {
                direction: RouterDirection::Reverse,
                number: LARGEST_NUMBER as u64,
                action,
            };
            let line = request.to_string();
            assert!(line.len() < crate::local_socket::MAX_REQUEST && !line.contains('\n'), "{}", line.len());
            assert_eq!(line.parse(), Ok(request));
        }
    }

    /// Key, value, and the allowed values.
    #[test]
    fn errors_have_key_value_and_range() {
        let good = ReservationRequest {
            direction: RouterDirection::Forward,
            number: 1,
            action: ReservationAction::Reserve(bucket(), vec![filter()]),
        }
        .to_string();
        for (from, to, why) in [
            (
                "640000",
                "0",
                "key \"rate_bps\": value 0 is not allowed: expected a whole number from 8 to 320000000000000",
            ),
            ("640000", "6.5", "key \"rate_bps\": value 6.5 is not allowed"),
            ("\"rate_bps\"", "\"rate\"", "rate_bps"),
            ("1500", "70000", "key \"max_packet_bytes\": value 70000 is not allowed"),
            (
                "5004",
                "0",
                "destination_port\": value 0 is not allowed: expected a whole number from 1 to 65535",
            ),
            (
                "\"10.0.0.1\"",
                "\"::1\"",
                "source\": value \"::1\" is not allowed: it must be an address of the destination's version of IP",
            ),
            ("\"protocol\":17,", "", "protocol"),
            (
                "\"protocol\":17,",
                "\"protocol\":17,\"flow_label\":7,",
                "flow_label\": value 7 is not allowed: it must be none with IPv4",
            ),
            ("\"10.0.0.1\"", "\"host\"", "expected an address of IPv4 or IPv6"),
            ("17", "256", "protocol\": value 256 is not allowed"),
            ("\"forward\"", "\"forth\"", "key \"direction\": value \"forth\" is not allowed"),
            ("\"reserve\"", "\"grab\"", "key \"request\": value \"grab\" is not allowed"),
            ("\"request\":\"reserve\",", "", "request"),
            ("\"reservation\":1", "\"reservation\":1,\"x\":1", "key \"x\""),
            ("\"protocol\":17", "\"protocol\":17,\"protocol\":6", "the name \"protocol\" is there twice"),
        ] {
            assert!(good.contains(from), "{from} is in {good}");
            let error = good.replacen(from, to, 1).parse::<ReservationRequest>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}\nnot: {why}");
        }
        for line in ["", "[]", "{", "{}", "null", "{\"request\":null}"] {
            assert!(line.parse::<ReservationRequest>().is_err(), "{line}");
        }
        let deep = "[".repeat(4000).parse::<ReservationRequest>().unwrap_err().to_string();
        assert!(deep.contains("nested more than 8 deep"), "{deep}");
    }
}

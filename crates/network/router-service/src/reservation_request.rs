//! Requests that reserve: a JSON object in a line, read strictly.
//!
//! ```json
//! {"request":"reserve","direction":"forward","reservation":1,"rate_bps":640000,"bucket_bytes":2000,"min_unit_bytes":64,
//!  "max_packet_bytes":1500,"filters":[{"destination":"10.0.1.1","protocol":17,"destination_port":5004,"source":"10.0.0.1",
//!  "source_port":4000}]}
//! ```
//!
//! `change` has the same keys but `filters`; `add-filter` and `remove-filter` have `filter` instead of a bucket; `release` has none of
//! these. A filter without `source`, `source_port` or `destination_port` matches any.

use crate::reload::shortened;
use cutline_aqm::PolicerParams;
use cutline_config::{Document, Node, TableReader, Value, ValueKind, kind};
use cutline_router::FlowFilter;
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
    pub way: RouterDirection,
    /// The number of the reservation, which the client has chosen.
    pub number: u64,
    /// The requested action.
    pub action: Action,
}

/// Action on a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reserve for the packets of these filters.
    Reserve(PolicerParams, Vec<FlowFilter>),
    /// Change the token bucket.
    Change(PolicerParams),
    /// Reserve for the packets of a further filter.
    AddFilter(FlowFilter),
    /// Do not reserve for the packets of this filter any more.
    RemoveFilter(FlowFilter),
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
    let ways = [("forward", RouterDirection::Forward), ("reverse", RouterDirection::Reverse)];
    let way = root.required("direction", &kind::one_of("one of", &ways));
    let number = root.required("reservation", &kind::integer(0, LARGEST_NUMBER));
    let action = match name {
        Name::Reserve => {
            let filters = filters(root);
            bucket(root).zip(filters).map(|(bucket, filters)| Action::Reserve(bucket, filters))
        }
        Name::Change => bucket(root).map(Action::Change),
        Name::AddFilter => only_filter(root).map(Action::AddFilter),
        Name::RemoveFilter => only_filter(root).map(Action::RemoveFilter),
        Name::Release => Some(Action::Release),
    };
    root.finish();
    Some(ReservationRequest { way: way?, number: number?, action: action? })
}

fn bucket(root: &TableReader<'_>) -> Option<PolicerParams> {
    let within = |most: u64| kind::integer(1, i64::try_from(most).unwrap_or(i64::MAX));
    let size = |key| root.required(key, &within(PolicerParams::LONGEST.into())).map(|size| size as u32);
    let rate = root.required("rate_bps", &within(PolicerParams::MAX_RATE.as_bps()));
    let bucket = root.required("bucket_bytes", &within(PolicerParams::MAX_BUCKET.get()));
    let (min_unit, max_packet) = (size("min_unit_bytes"), size("max_packet_bytes"));
    let (rate, bucket) = (Rate::from_bps(rate?), Bytes::new(bucket?));
    Some(PolicerParams { rate, bucket, min_unit: min_unit?, max_packet: max_packet? })
}

fn only_filter(root: &TableReader<'_>) -> Option<FlowFilter> {
    const EXPECTED: &str = "an object with destination and protocol";
    if !root.has("filter") {
        root.lacks("filter", EXPECTED);
    }
    filter(&root.table("filter", EXPECTED)?)
}

fn filters(root: &TableReader<'_>) -> Option<Vec<FlowFilter>> {
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

fn filter(table: &TableReader<'_>) -> Option<FlowFilter> {
    let port = kind::integer(1, u16::MAX.into()).map(|port| port as u16);
    let destination = table.required("destination", &address());
    let protocol = table.required("protocol", &kind::integer(0, u8::MAX.into()));
    let destination_port = table.optional("destination_port", &port);
    let source = table.optional("source", &address());
    let source_port = table.optional("source_port", &port);
    table.finish();
    let (destination, protocol) = (destination?, protocol? as u8);
    let filter = FlowFilter { destination, protocol, destination_port, source, source_port };
    if !filter.is_consistent() {
        table.refuse("source", "it must be of the same version of IP as the destination");
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
            Action::Reserve(bucket, filters) => {
                write_bucket(&mut line, bucket);
                line.insert("filters".to_owned(), filters.iter().map(filter_json).collect());
                "reserve"
            }
            Action::Change(bucket) => {
                write_bucket(&mut line, bucket);
                "change"
            }
            Action::AddFilter(filter) => {
                line.insert("filter".to_owned(), filter_json(filter));
                "add-filter"
            }
            Action::RemoveFilter(filter) => {
                line.insert("filter".to_owned(), filter_json(filter));
                "remove-filter"
            }
            Action::Release => "release",
        };
        line.insert("request".to_owned(), json!(name));
        line.insert("direction".to_owned(), json!(self.way));
        line.insert("reservation".to_owned(), json!(self.number));
        write!(f, "{}", serde_json::Value::Object(line))
    }
}

fn write_bucket(line: &mut Map<String, serde_json::Value>, bucket: &PolicerParams) {
    let PolicerParams { rate, bucket, min_unit, max_packet } = bucket;
    for (key, value) in [
        ("rate_bps", rate.as_bps()),
        ("bucket_bytes", bucket.get()),
        ("min_unit_bytes", u64::from(*min_unit)),
        ("max_packet_bytes", u64::from(*max_packet)),
    ] {
        line.insert(key.to_owned(), value.into());
    }
}

fn filter_json(filter: &FlowFilter) -> serde_json::Value {
    let FlowFilter { destination, protocol, destination_port, source, source_port } = filter;
    let mut line = Map::new();
    line.insert("destination".to_owned(), json!(destination));
    line.insert("protocol".to_owned(), json!(protocol));
    let parts = [
        ("destination_port", destination_port.map(|port| json!(port))),
        ("source", source.map(|source| json!(source))),
        ("source_port", source_port.map(|port| json!(port))),
    ];
    for (key, value) in parts {
        line.extend(value.map(|value| (key.to_owned(), value)));
    }
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket() -> PolicerParams {
        PolicerParams { rate: Rate::from_kbps(640), bucket: Bytes::new(2000), min_unit: 64, max_packet: 1500 }
    }

    fn filter() -> FlowFilter {
        FlowFilter {
            destination: "10.0.1.1".parse().unwrap(),
            protocol: 17,
            destination_port: Some(5004),
            source: Some("10.0.0.1".parse().unwrap()),
            source_port: None,
        }
    }

    #[test]
    fn a_request_is_read_as_it_is_written() {
        let longest: IpAddr = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff1".parse().unwrap();
        let long = FlowFilter {
            destination: longest,
            protocol: 255,
            destination_port: Some(65_535),
            source: Some(longest),
            source_port: Some(65_535),
        };
        let widest = PolicerParams {
            rate: PolicerParams::MAX_RATE,
            bucket: PolicerParams::MAX_BUCKET,
            min_unit: PolicerParams::LONGEST,
            max_packet: PolicerParams::LONGEST,
        };
        for action in [
            Action::Reserve(bucket(), vec![filter(), FlowFilter { source: None, ..filter() }]),
            Action::Reserve(widest, vec![long; ReservationRequest::MAX_FILTERS]),
            Action::Change(bucket()),
            Action::AddFilter(long),
            Action::RemoveFilter(filter()),
            Action::Release,
        ] {
            let request =
                ReservationRequest { way: RouterDirection::Reverse, number: LARGEST_NUMBER as u64, action };
            let line = request.to_string();
            assert!(line.len() < crate::local_socket::MAX_REQUEST && !line.contains('\n'), "{}", line.len());
            assert_eq!(line.parse(), Ok(request));
        }
    }

    /// Key, value, and the allowed values.
    #[test]
    fn what_is_wrong_is_told_with_key_value_and_range() {
        let good = ReservationRequest {
            way: RouterDirection::Forward,
            number: 1,
            action: Action::Reserve(bucket(), vec![filter()]),
        }
        .to_string();
        for (from, to, why) in [
            (
                "640000",
                "0",
                "key \"rate_bps\": value 0 is not allowed: expected a whole number from 1 to 320000000000000",
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
                "source\": value \"::1\" is not allowed: it must be of the same version of IP",
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

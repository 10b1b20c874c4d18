//! A router's configuration, as text and as JSON.

use crate::spec::{DirectionSpec, ProcessSpec, RouterSpec};
use cutline_aqm::{Limit, QueueSpec};
use cutline_params::{Parameters as _, Value as Setting};
use cutline_units::{Bytes, Dscp, HintTable};
use serde_json::{Map, Value, json};

/// Returns the complete configuration of a router for scripts: rates in bit/s, quantities as people write them.
pub fn configuration(spec: &RouterSpec) -> Value {
    let ProcessSpec { fix_offloads, spin, seed, socket, memory: _, user } = &spec.process;
    json!({
        "in": spec.input,
        "out": spec.output,
        "forward": direction(&spec.forward),
        "reverse": direction(&spec.reverse),
        "fix_offloads": fix_offloads,
        "spin_us": spin.map(|spin| spin.as_nanos() as f64 / 1e3),
        "seed": seed,
        "socket": socket,
        "memory_bytes": 2 * spec.process.memory_each(),
        "user": user,
    })
}

fn direction(spec: &DirectionSpec) -> Value {
    let standard = HintTable::standard();
    let hint = |dscp: Dscp| {
        let hint = spec.hints.hint(dscp);
        (hint != standard.hint(dscp)).then(|| (dscp.to_string(), Value::from(hint.level())))
    };
    let remarked = |dscp: Dscp| {
        let to = spec.remark.remark(dscp);
        (to != dscp).then(|| (dscp.to_string(), Value::from(to.to_string())))
    };
    json!({
        "rate_bps": spec.queue.rate.as_bps(),
        "queue": queue(&spec.queue),
        "overhead": spec.overhead.name(),
        "hints": Dscp::all().filter_map(hint).collect::<Map<_, _>>(),
        "remark": Dscp::all().filter_map(remarked).collect::<Map<_, _>>(),
    })
}

fn queue(spec: &QueueSpec) -> Value {
    json!({
        "aqm": spec.aqm.name(),
        "parameters": settings(spec.aqm.values()),
        "limit": limit(spec.limit),
        "ecn": spec.ecn,
        "tsq": spec.tsq.map(|tsq| settings(tsq.values())),
    })
}

/// Returns the parameters that are set, as people write them.
fn settings(values: Vec<(&'static str, Setting)>) -> Map<String, Value> {
    let set = values.into_iter().filter(|(_, value)| *value != Setting::Off);
    set.map(|(name, value)| (name.to_owned(), value.to_string().into())).collect()
}

fn limit(limit: Limit) -> String {
    match limit {
        Limit::Packets(packets) => format!("{packets} packets"),
        Limit::Bytes(bytes) => Bytes::new(bytes).to_string(),
    }
}

/// Returns a summary of both directions in one line.
pub fn summary(spec: &RouterSpec) -> String {
    let RouterSpec { input, output, forward, reverse, .. } = spec;
    format!("{input} -> {output} {}, reverse {}", through(&forward.queue), through(&reverse.queue))
}

fn through(queue: &QueueSpec) -> String {
    format!("at {} through {}", queue.rate, in_words(queue))
}

/// Returns a queue's name, such as `TSQ over pi`.
pub fn in_words(queue: &QueueSpec) -> String {
    let tsq = if queue.tsq.is_some() { "TSQ over " } else { "" };
    format!("{tsq}{}", queue.aqm.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_says_what_differs_from_the_standard() {
        let text = "in = 'a'\nout = 'b'\nhints = { EF = 4 }\nremark = { CS1 = 'LE' }\n\
                    queue.q = { aqm = 'pi', limit = '64 KB', q-ref = '100 packets', tsq = true }\n\
                    forward = { rate = '15 Mbit/s', queue = 'q' }\n\
                    reverse = { rate = '2 Mbit/s', queue = { aqm = 'codel', limit = '9 packets' } }\n";
        let spec = RouterSpec::parse(text, "r.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let all = configuration(&spec);
        assert_eq!(all["forward"]["hints"], json!({ "EF": 4 }));
        assert_eq!(all["reverse"]["remark"], json!({ "CS1": "LE" }));
        assert_eq!(all["forward"]["queue"]["parameters"]["q-ref"], "100");
        assert_eq!(all["forward"]["queue"]["tsq"]["l"], "40 ms");
        assert_eq!(
            (&all["reverse"]["queue"]["limit"], &all["reverse"]["queue"]["tsq"]),
            (&json!("9 packets"), &Value::Null)
        );
        assert_eq!(
            summary(&spec),
            "a -> b at 15 Mbit/s through TSQ over pi, reverse at 2 Mbit/s through codel"
        );
    }
}

//! Queue disciplines: the kinds that the kernel has, tried on an interface of the sandbox, and the backlog on an interface.

use super::answer::Answer;
use super::command;
use super::kernel::{self, KernelConfig};
use super::sandbox::Sandbox;
use serde_json::Value;

/// The kinds that are tried, and the options that the kernel requires for them.
pub const KINDS: [(&str, &str); 16] = [
    ("tbf", "rate 1mbit burst 16kb latency 50ms"),
    ("htb", ""),
    ("hfsc", ""),
    ("prio", ""),
    ("ingress", ""),
    ("clsact", ""),
    ("netem", ""),
    ("fq", ""),
    ("fq_codel", ""),
    ("codel", ""),
    ("pie", ""),
    ("fq_pie", ""),
    ("red", "limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02"),
    ("cake", ""),
    ("etf", "clockid CLOCK_TAI delta 200000"),
    ("dualpi2", ""),
];

/// Tries each kind in turn.
pub fn kinds(sandbox: &Sandbox) -> Vec<(&'static str, Answer)> {
    KINDS.iter().map(|&(kind, options)| (kind, is_taken(sandbox, kind, options))).collect()
}

/// Returns the kinds that the kernel lists, as a module or in its configuration. Used if nothing can be
/// tried.
pub fn listed_kinds(release: &str, config: Option<&KernelConfig>) -> Vec<(&'static str, Answer)> {
    let is_listed = |kind: &str| {
        // `clsact` is part of the module of `ingress`.
        let module = if kind == "clsact" { "ingress" } else { kind };
        let option = format!("NET_SCH_{}", module.to_uppercase());
        config.map(|config| config.has(&option)).or_else(|| kernel::module(release, &format!("sch_{module}")))
    };
    let answer = |kind: &str| match is_listed(kind) {
        Some(true) => Answer::Yes,
        Some(false) => Answer::No("the kernel does not list it".to_owned()),
        None => Answer::Unknown("the kernel has no list".to_owned()),
    };
    KINDS.iter().map(|&(kind, _)| (kind, answer(kind))).collect()
}

fn is_taken(sandbox: &Sandbox, kind: &str, options: &str) -> Answer {
    let name = sandbox.namespace().name();
    let place: &[&str] = if matches!(kind, "ingress" | "clsact") { &[] } else { &["root"] };
    let on = |action| [&["-n", name, "qdisc", action, "dev", Sandbox::NEAR], place].concat();
    let options = options.split_whitespace().collect::<Vec<_>>();
    match command::run("tc", &[&on("add")[..], &[kind], &options].concat()) {
        Ok(_) => {
            // If this fails, it is removed with the sandbox.
            let _removed = command::run("tc", &[&on("del")[..], &[kind]].concat());
            Answer::Yes
        }
        Err(message) if message.contains("not permitted") => Answer::Unknown(message),
        Err(message) if message.contains("kind is unknown") => Answer::No("not in this kernel".to_owned()),
        Err(message) => Answer::No(message.lines().next().unwrap_or_default().to_owned()),
    }
}

/// A queue discipline of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// Its kind, such as `fq_codel`.
    pub kind: String,
    /// True if it is the root of the interface's queue disciplines.
    pub root: bool,
    /// The backlog, bytes.
    pub backlog_bytes: u64,
    /// The backlog, packets.
    pub backlog_packets: u64,
    /// The packets dropped since it was created.
    pub dropped: u64,
}

/// The queue disciplines of an interface.
///
/// # Errors
/// When `tc` fails or is missing; the error is its message.
pub fn qdiscs(interface: &str) -> Result<Vec<Qdisc>, String> {
    Ok(command::list("tc", &["-j", "-s", "qdisc", "show", "dev", interface])?.iter().map(qdisc).collect())
}

/// Kinds of the queue disciplines right below `mq` at the root of an interface, in the output of `tc -j qdisc show`; none if the root is another one.
pub(super) fn below_mq(documents: &[Value], interface: &str) -> Vec<String> {
    let all: Vec<&Value> = documents.iter().filter(|document| text(document, "dev") == interface).collect();
    let is_root = |document: &&&Value| document["root"].as_bool().unwrap_or_default();
    let Some(root) = all.iter().find(is_root).filter(|root| text(root, "kind") == "mq") else {
        return Vec::new();
    };
    let is_below = |document: &&&Value| {
        let parent = text(document, "parent");
        parent.contains(':') && major(parent) == major(text(root, "handle"))
    };
    all.iter().filter(is_below).map(|document| text(document, "kind").to_owned()).collect()
}

fn text<'d>(document: &'d Value, key: &str) -> &'d str {
    document[key].as_str().unwrap_or_default()
}

/// Returns the major number of a handle or a parent. That of the kernel's default is 0, which a parent leaves out (`:1`).
fn major(handle: &str) -> &str {
    let number = handle.split(':').next().unwrap_or_default();
    if number == "0" { "" } else { number }
}

fn qdisc(document: &Value) -> Qdisc {
    let number = |key: &str| document[key].as_u64().unwrap_or_default();
    Qdisc {
        kind: document["kind"].as_str().unwrap_or("unknown").to_owned(),
        root: document["root"].as_bool().unwrap_or_default(),
        backlog_bytes: number("backlog"),
        backlog_packets: number("qlen"),
        dropped: number("drops"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_tc_is_read() {
        let text = r#"{"kind":"tbf","handle":"8001:","root":true,"options":{"rate":125000},"bytes":70,"packets":1,
            "drops":7,"overlimits":0,"requeues":0,"backlog":1500,"qlen":2}"#;
        let read = qdisc(&serde_json::from_str(text).unwrap());
        let expected =
            Qdisc { kind: "tbf".into(), root: true, backlog_bytes: 1500, backlog_packets: 2, dropped: 7 };
        assert_eq!(read, expected);
    }

    #[test]
    fn queue_disciplines_below_mq_are_found() {
        let text = r#"[{"kind":"noqueue","handle":"0:","dev":"lo","root":true,"refcnt":2,"options":{}},
            {"kind":"mq","handle":"0:","dev":"eth0","root":true,"options":{}},
            {"kind":"fq_codel","handle":"0:","dev":"eth0","parent":":2","options":{}},
            {"kind":"fq_codel","handle":"0:","dev":"eth0","parent":":1","options":{}},
            {"kind":"clsact","handle":"ffff:","dev":"eth0","parent":"ffff:fff1","options":{}},
            {"kind":"mq","handle":"8001:","dev":"eth1","root":true,"options":{}},
            {"kind":"cutline_sieve3","handle":"8002:","dev":"eth1","parent":"8001:1","options":{}},
            {"kind":"htb","handle":"3:","dev":"eth1","parent":"8001:2","options":{}},
            {"kind":"pfifo","handle":"0:","dev":"eth1","parent":"3:1","options":{}},
            {"kind":"htb","handle":"1:","dev":"eth2","root":true,"options":{}},
            {"kind":"fq","handle":"0:","dev":"eth2","parent":"1:1","options":{}}]"#;
        let documents: Vec<Value> = serde_json::from_str(text).unwrap();
        let found = |interface| below_mq(&documents, interface);
        assert_eq!(found("eth0"), ["fq_codel", "fq_codel"]);
        assert_eq!(found("eth1"), ["cutline_sieve3", "htb"]);
        let none: [&str; 0] = [];
        assert_eq!([found("eth2"), found("lo"), found("eth3")], [none, none, none]);
    }
}

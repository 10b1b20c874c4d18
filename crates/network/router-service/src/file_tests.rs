//! The router's file: its valid contents, and the messages about errors in it.

use super::*;
use cutline_aqm::Limit;
use proptest::prelude::*;

const GOOD: &str = r#"
in = "eth0"
out = "eth1"

[forward]
rate = "15 Mbit/s"
queue = { aqm = "pi", limit = "800 packets", q-ref = "100 packets", tsq = { l = "60 ms" } }

[reverse]
rate = "2 Mbit/s"
queue = "reverse"

[queue.reverse]
aqm = "fq-codel"
limit = "64 KB"
ecn = false
"#;

fn parse(text: &str) -> RouterSpec {
    RouterSpec::parse(text, "r.toml").unwrap_or_else(|errors| panic!("{}", errors.render()))
}

/// The messages about a file, without their excerpts.
fn refusals(text: &str) -> String {
    RouterSpec::parse(text, "r.toml").expect_err("it is wrong").to_string()
}

/// The messages about the good file with one text replaced.
fn refusals_with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    refusals(&GOOD.replacen(from, to, 1))
}

fn dscp(name: &str) -> Dscp {
    name.parse().unwrap()
}

#[test]
fn each_direction_has_its_own_queue() {
    let RouterSpec { input, output, forward, reverse, autorate, process } = parse(GOOD);
    assert_eq!((input.as_str(), output.as_str()), ("eth0", "eth1"));
    assert_eq!((forward.queue.rate, reverse.queue.rate), (Rate::from_mbps(15), Rate::from_mbps(2)));
    assert_eq!((forward.queue.aqm.name(), reverse.queue.aqm.name()), ("pi", "fq-codel"));
    assert_eq!(forward.queue.tsq.map(|tsq| tsq.l), Some(Duration::from_millis(60)));
    assert_eq!(reverse.queue.limit, Limit::Bytes(64_000));
    assert!(forward.queue.ecn && !reverse.queue.ecn);
    assert_eq!(forward.overhead, Overhead::Ethernet);
    assert_eq!((forward.hints, forward.remark), (HintTable::standard(), RemarkTable::unchanged()));
    assert_eq!(process, ProcessSpec::default());
    assert_eq!((autorate, forward.autorate), (None, None));
}

#[test]
fn a_direction_may_follow_the_link() {
    let autorate = "[autorate]\nreflectors = [\"192.0.2.1\", \"fe80::1%lo\"]\ndelay = \"30 ms\"\n";
    let own = "[reverse]\nautorate = { least = \"500 kbit/s\", most = \"8 Mbit/s\" }";
    let text = [&GOOD.replace("[reverse]", own), autorate].concat();
    let spec = parse(&text);
    assert_eq!(spec.reverse.autorate, Some(Rate::from_kbps(500)..=Rate::from_mbps(8)));
    let read = spec.autorate.unwrap();
    assert_eq!((read.reflectors.len(), read.delay), (2, Duration::from_millis(30)));
    for (from, to, what) in [
        (
            "least = \"500 kbit/s\"",
            "least = \"3 Mbit/s\"",
            "the rate is 2 Mbit/s, and autorate from 3 Mbit/s to 8 Mbit/s must contain it",
        ),
        ("most = \"8 Mbit/s\"", "most = \"1 Mbit/s\"", "must contain it"),
        ("\"fe80::1%lo\"", "\"192.0.2.1\"", "a reflector is named twice"),
        ("[\"192.0.2.1\", \"fe80::1%lo\"]", "[]", "0 reflectors; allowed is 1 to 16"),
        ("\"192.0.2.1\", ", "\"example\", ", "a list of addresses"),
        (autorate, "", "key \"autorate\" is missing"),
        ("autorate = { least = \"500 kbit/s\", most = \"8 Mbit/s\" }", "", "no direction follows the link"),
    ] {
        assert!(text.contains(from), "{from}");
        let errors = refusals(&text.replacen(from, to, 1));
        assert!(errors.contains(what), "{what}: {errors}");
    }
}

#[test]
fn keys_of_the_file_apply_to_both_directions() {
    for (written, read) in [("18", "18"), ("'atm:10'", "atm:10"), ("'docsis'", "docsis")] {
        let spec = parse(&format!("overhead = {written}\n{GOOD}"));
        assert_eq!(spec.forward.overhead.to_string(), read);
    }
    let top = "overhead = \"pppoe\"\nhints = { EF = 4, 12 = 9 }\nremark = \"to-hints\"\n";
    let own =
        "[reverse.remark]\nall = \"without-hints\"\nCS1 = \"LE\"\nhint-1 = 46\n[reverse.hints]\nEF = 2\n";
    let spec = parse(&[top, GOOD, own].concat());
    assert_eq!((spec.forward.overhead, spec.reverse.overhead), (Overhead::Pppoe, Overhead::Pppoe));
    assert_eq!(spec.forward.hints.hint(dscp("EF")).level(), 4);
    assert_eq!(spec.forward.remark.remark(dscp("EF")), dscp("hint-4"));
    assert_eq!(spec.reverse.hints.hint(dscp("EF")).level(), 2);
    assert_eq!(spec.reverse.hints.hint(dscp("12")).level(), 16, "a direction's own table replaces the other");
    let remarked = ["CS1", "hint-1", "hint-2"].map(|name| spec.reverse.remark.remark(dscp(name)));
    assert_eq!(remarked, [dscp("LE"), dscp("EF"), Dscp::DEFAULT]);
}

#[test]
fn to_hints_follows_the_hints_of_its_direction() {
    let spec = parse(&format!("remark = \"to-hints\"\n{GOOD}[reverse.hints]\nEF = 2\n"));
    assert_eq!(spec.forward.remark.remark(dscp("EF")), dscp("hint-6"));
    assert_eq!(spec.reverse.remark.remark(dscp("EF")), dscp("hint-2"));
}

#[test]
fn the_process_is_described_too() {
    let top = "socket = \"/run/r.sock\"\nmetrics = \"127.0.0.1:9105\"\nmemory = \"10 MB\"\nseed = 7\nspin = \"80 us\"\nfix-offloads = true\nforce-bridge = true\nuser = \"nobody\"\n";
    let spec = parse(&[top, GOOD].concat());
    let expected = ProcessSpec {
        fix_offloads: true,
        spin: Some(Duration::from_micros(80)),
        seed: Some(7),
        socket: Some("/run/r.sock".into()),
        metrics: Some("127.0.0.1:9105".parse().unwrap()),
        memory: Some(Bytes::new(10_000_000)),
        user: Some("nobody".to_owned()),
        force_bridge: true,
        reservations: None,
    };
    assert_eq!(spec.process, expected);
    let all = ["in", "fix-offloads", "spin", "seed", "socket", "metrics", "memory", "user"];
    let plain = parse(&GOOD.replace("eth0", "eth2"));
    assert_eq!(spec.fixed_differences(&plain), all);
    assert_eq!(spec.fixed_differences(&spec), Vec::<&str>::new());
}

/// File, line, key, value and the allowed values.
#[test]
fn an_error_has_the_place_of_the_value() {
    assert_eq!(
        refusals_with("\"2 Mbit/s\"", "\"2 MB/s\""),
        "r.toml:10:8: key \"reverse.rate\": value \"2 MB/s\" is not allowed: expected a rate such as \"15 Mbit/s\" \
         (bit/s, kbit/s, Mbit/s, Gbit/s), above 0, from 1 kbit/s to 10000 Gbit/s; \"MB/s\" is refused: it is ambiguous, because it often means bits: write \
         Mbit/s (and 8 times the number for bytes)"
    );
    assert_eq!(
        refusals_with("out = \"eth1\"", "out = \"eth0\""),
        "r.toml:3:7: key \"out\": value \"eth0\" is not allowed: it is the same interface as \"in\""
    );
    let errors = refusals_with("\"15 Mbit/s\"", "\"0 bit/s\"");
    assert!(errors.contains("r.toml:6:8: key \"forward.rate\": value \"0 bit/s\""), "{errors}");
}

#[test]
fn misspelt_names_have_the_nearest_right_name() {
    let slips = [
        (
            "queue = \"reverse\"",
            "queue = \"revrese\"",
            "there is no [queue.revrese], did you mean \"reverse\"?",
        ),
        ("[reverse]", "[revrese]", "key \"revrese\" is not known here: did you mean \"reverse\"?"),
        ("q-ref", "qref", "key \"forward.queue.qref\" is not known here: did you mean \"q-ref\"?"),
        ("\"fq-codel\"", "\"fq-codl\"", "did you mean \"fq-codel\"?"),
        ("in = \"eth0\"", "input = \"eth0\"", "key \"in\" is missing: expected a text in quotes"),
        ("rate = \"2 Mbit/s\"\n", "", "key \"reverse.rate\" is missing: expected a rate"),
        ("\n[queue.reverse]", "\noverhead = \"atm\"\n[queue.reverse]", "such as 18, atm:10 or ptm:22"),
        (
            "tsq = { l",
            "tsq = { bits = 4, L",
            "\"forward.queue.tsq.L\" is not known here: did you mean \"l\"?",
        ),
    ];
    for (from, to, what) in slips {
        let errors = refusals_with(from, to);
        assert!(errors.contains(what), "{errors}");
    }
}

#[test]
fn settings_that_the_router_lacks_are_refused() {
    let refused = [
        ("ecn = false", "pass-on-waiting = true", "this one leaves hints unchanged"),
        ("ecn = false", "tsq = true", "fq-codel is a complete queue"),
        ("in = \"eth0\"", "in = \"an-interface-name\"", "of 1 to 15 bytes"),
        ("in =", "socket = \"r.sock\"\nin =", "an absolute path"),
        ("in =", "spin = \"1 s\"\nin =", "at most 10 ms"),
        ("in =", "seed = -1\nin =", "a whole number of at least 0"),
        (
            "[reverse]",
            "[hints]\nEF = 17\n[reverse]",
            "key \"hints.EF\": value 17 is not allowed: expected a whole number from 1 to 16",
        ),
        (
            "[reverse]",
            "[hints]\nEG = 1\n[reverse]",
            "key \"hints.EG\": a code point is a number from 0 to 63",
        ),
        ("[reverse]", "[remark]\nCS1 = 64\n[reverse]", "a number is from 0 to 63"),
        ("[reverse]", "[remark]\nall = \"to-hint\"\n[reverse]", "did you mean \"to-hints\"?"),
        ("in =", "remark = 3\nin =", "\"to-hints\", \"without-hints\" or a table"),
    ];
    for (from, to, what) in refused {
        let errors = refusals_with(from, to);
        assert!(errors.contains(what), "{errors}");
    }
}

#[test]
fn all_problems_are_reported_together() {
    let errors = refusals("in = \"\"\nspeed = 3\n[forward]\nrate = 15\n");
    assert_eq!(errors.lines().count(), 6, "{errors}");
    assert!(refusals("in = ").contains("r.toml:1:"));
    let unreadable = RouterSpec::load(Path::new("/nosuch/r.toml")).expect_err("it is not there").to_string();
    assert!(unreadable.starts_with("/nosuch/r.toml: cannot be read: "), "{unreadable}");
}

/// A line of the good file, or a replacement.
fn line() -> impl Strategy<Value = String> {
    let good: Vec<String> = GOOD.lines().map(str::to_owned).collect();
    let words = [
        "hints", "remark", "all", "EF", "tsq", "queue", "rate", "socket", "spin", "in", "seed", "=", "{", "}",
    ];
    let values =
        ["1", "-1", "1e9", "true", "\"to-hints\"", "\"5 ms\"", "{}", "[]", "[1, 2]", "\"\"", "2020-01-01"];
    prop_oneof![
        4 => prop::sample::select(good),
        2 => (prop::sample::select(words.to_vec()), prop::sample::select(values.to_vec()))
            .prop_map(|(key, value)| format!("{key} = {value}")),
        1 => ".{0,30}",
    ]
}

proptest! {
    /// Any mixture of lines is read or refused with at least one message that names the file.
    #[test]
    fn no_input_causes_a_panic(lines in prop::collection::vec(line(), 0..25)) {
        if let Err(errors) = RouterSpec::parse(&lines.join("\n"), "r.toml") {
            prop_assert!(errors.problems().iter().all(|problem| problem.to_string().starts_with("r.toml:")));
        }
    }
}

#[test]
fn reservations_are_allowed_with_a_socket_and_a_limit() {
    let with = |top: &str| [top, GOOD].concat();
    assert_eq!(parse(&with("reservations = \"none\"\n")).process.reservations, None);
    let allowed = "socket = \"/run/r.sock\"\nreservations = \"allowed\"\n";
    assert_eq!(parse(&with(allowed)).process.reservations, Some(ProcessSpec::RESERVATIONS));
    let limited = parse(&with(&format!("{allowed}reservation-limit = 20\n")));
    assert_eq!(limited.process.reservations, Some(20));
    assert_eq!(limited.fixed_differences(&parse(&with(allowed))), ["reservations"]);
    for (top, why) in [
        (
            "reservations = \"allowed\"\n",
            "key \"reservations\": value \"allowed\" is not allowed: clients reserve at the router's socket",
        ),
        ("reservations = true\n", "expected one of"),
        ("reservation-limit = 5\n", "there is a limit only with reservations = \"allowed\""),
        (
            &format!("{allowed}reservation-limit = 0\n"),
            "value 0 is not allowed: expected a whole number from 1 to 100000",
        ),
    ] {
        let errors = refusals(&with(top));
        assert!(errors.contains(why), "{errors}\nnot: {why}");
    }
}

//! The options of a socket, by name and text.

use cutline_config::kind::{self, ValueKind};
use cutline_config::{Document, Errors, TableReader, parameter, read};
use cutline_manager::resources::{HIGHEST_PRIORITY, MOST_WEIGHT};
use cutline_params::{Choice as _, Parameters};
use cutline_provision::{DEFAULT_SOCKET, services};
use cutline_quality::spec::ConnectionSpecification;
use cutline_quality::{Class, HintGoal, HintParams};
use cutline_signal::operation::OperationParams;
use cutline_signal::renegotiation::Alternatives;
use cutline_socket::{
    Access, AckPath, AllocationOptions, IfRefused, Marking, Pacing, Peer, QosOptions, RateControl,
    SchedulingClass, TfrcParams,
};
use cutline_tables::specification;
use cutline_units::{Dscp, Hint};
use std::time::Duration;

/// Name of the options in messages.
const NAME: &str = "options";
/// The parameters of TFRC that a QoS socket does not use: its messages have sizes of their own, and it has no queue.
const UNUSED: [&str; 4] = ["packet-size", "header", "feedback-size", "send-buffer"];

/// The options of a socket.
///
/// They are a document: that of a specification file, and beside it
///
/// | name | meaning | allowed |
/// | --- | --- | --- |
/// | `peer` | knowledge of the peer | `detect`, `speaks`, `plain` |
/// | `pacing` | behaviour when datagrams are sent too fast | `block`, `refuse`, `count` |
/// | `rate-control` | limits of the rate of datagrams | `agreed`, `tfrc`: fair to TCP as well |
/// | `marking` | the packets' delay hint | `translated`, `none`, 1 to 16, `adaptive-audio` and other classes |
/// | `dscp` | the code point of packets, instead of `marking` | 0 to 63, or a name such as EF, AF41, CS5 |
/// | `hint-goal` | goal of an adaptive marking | `within-limit`, `quality` |
/// | `weakest.*` | a weaker specification that the socket may request | as the specification, whose values absent keys have |
/// | `adapt-rate` | whether the rate moves inside the region of operation | `true`, `false` |
/// | `detection` | how long an end that connects asks whether the peer is a QoS socket | a time |
/// | `connect-timeout` | how long connecting takes at most | a time |
/// | `linger` | how long a closed stream waits for the peer to acknowledge something more | a time |
/// | `publish` | whether the delivery of the connection is published to the monitor of this host | `true`, `false` |
/// | `managed` | whether managers of this host may request weaker limits | `true`, `false` |
/// | `reconnect` | whether a connection that breaks is made again within `recovery` | `true`, `false` |
/// | `service` | the service of the network from which a reservation is requested | `mark`, `local`, `rsvp`, and registered ones |
/// | `service-socket` | where `cutlined` of this host listens | an absolute path |
/// | `allocation` | the class of the share that is requested from the resource manager of this host | `real-time`, `time-shared` |
/// | `allocation-weight` | the weight among the connections of the same user | 1 to 1000 |
/// | `allocation-priority` | the importance: those of low importance are lowered first | 0 to 15 |
/// | `allocation-socket` | the socket of the resource manager of this host | an absolute path |
/// | `ack-path` | whether a direction that has acknowledgements alone is reserved, too | `reserved`, `best-effort` |
/// | `if-refused` | the outcome of a connection whose reservation or share is refused | `best-effort`, `fail` |
/// | `reservation-patience` | how long connecting waits for the network | a time |
/// | `path.*` | properties of the path | as `cutline translate` |
/// | `tfrc.*` | how `tfrc` controls the rate | the parameters of TFRC but for sizes, which messages have |
/// | `negotiation.*`, `monitor.*`, `operation.*`, `renegotiation.*` | how the protocol is carried out | the parameters of those names |
#[derive(Clone, Debug)]
pub struct Options {
    document: Document,
    key: Option<Vec<u8>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { document: empty(), key: None }
    }
}

impl Options {
    /// Reads a document, TOML or JSON. It replaces all that was set before, but for the key.
    ///
    /// # Errors
    /// When it is neither, or something in it is not allowed: each place and the allowed values.
    pub fn read(&mut self, text: &str) -> Result<(), String> {
        let is_json = text.trim_start().starts_with('{');
        let parsed = if is_json { Document::parse_json(text, NAME) } else { Document::parse(text, NAME) };
        let read = parsed.and_then(|document| qos_options(&document, Check::Each).map(|_| document));
        self.document = read.map_err(|errors| errors.to_string())?;
        Ok(())
    }

    /// Sets one option. It is checked by itself; whether all go together is checked when a socket is made of them, so that
    /// they can be set in any order.
    ///
    /// # Errors
    /// When there is no such option, or the value is not allowed; the error gives the allowed values.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), String> {
        let (mut alone, mut all) = (empty(), self.document.clone());
        alone.set_text(name, text).map_err(|errors| without_place(&errors))?;
        all.set_text(name, text).map_err(|errors| without_place(&errors))?;
        // Options that need others, as a bit rate needs a size, are checked with them.
        let checked = qos_options(&alone, Check::Each)
            .or_else(|error| qos_options(&all, Check::Each).map_err(|_| error));
        checked.map_err(|errors| without_place(&errors))?;
        self.document = all;
        Ok(())
    }

    /// Demands that the peer shows that it has this key, of 32 to 4096 bytes.
    ///
    /// # Errors
    /// When the key is shorter or longer.
    pub fn set_key(&mut self, key: &[u8]) -> Result<(), String> {
        QosOptions::default().key(key)?;
        self.key = Some(key.to_vec());
        Ok(())
    }

    /// The options of a socket.
    ///
    /// # Errors
    /// When they do not go together.
    pub fn qos_options(&self) -> Result<QosOptions, String> {
        let (_, options) = qos_options(&self.document, Check::All).map_err(|errors| by_name(&errors))?;
        self.key.as_deref().map_or(Ok(options.clone()), |key| options.key(key))
    }

    /// The specification alone.
    ///
    /// # Errors
    /// As [`Options::qos_options`].
    pub fn specification(&self) -> Result<ConnectionSpecification, String> {
        let (specification, _) =
            qos_options(&self.document, Check::Each).map_err(|errors| by_name(&errors))?;
        Ok(specification)
    }
}

/// Returns the errors of an option, which has no place in a file.
fn without_place(errors: &Errors) -> String {
    let problems = errors.problems().iter().cloned().map(|mut problem| {
        problem.location = None;
        problem.to_string()
    });
    problems.collect::<Vec<_>>().join("\n")
}

/// Returns the errors of options, some of which may have been set by name: those have no place in a document.
fn by_name(errors: &Errors) -> String {
    let problems = errors.problems().iter().cloned().map(|mut problem| {
        problem.location = problem.location.filter(|place| place.line_column.is_some());
        problem.to_string()
    });
    problems.collect::<Vec<_>>().join("\n")
}

fn empty() -> Document {
    Document::parse("", NAME).expect("no text is a document without keys")
}

/// Extent of a check of options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// Each option. Others may be set later.
    Each,
    /// All checks, for missing options too: a socket is made of them.
    All,
}

fn qos_options(document: &Document, check: Check) -> Result<(ConnectionSpecification, QosOptions), Errors> {
    read(document, |root| {
        let specification = specification::connection(root);
        let adapts = root.or("adapt-rate", &kind::flag(), false);
        let operation: Option<OperationParams> = parameters(root, "operation");
        let reconnects = root.or("reconnect", &kind::flag(), false);
        let publishes = root.or("publish", &kind::flag(), true);
        let is_managed = root.or("managed", &kind::flag(), false);
        let detection = root.optional("detection", &kind::positive_duration());
        let connect_timeout = root.optional("connect-timeout", &kind::positive_duration());
        let linger = root.optional("linger", &kind::duration());
        let own = specification.clone().unwrap_or_default();
        let weakest = root.table("weakest", "a specification").and_then(|table| {
            let weakest = specification::change(&table, &own);
            table.finish();
            weakest
        });
        let renegotiation = parameters(root, "renegotiation").unwrap_or_default();
        let goal = root.or("hint-goal", &hint_goal(), HintGoal::WithinLimit);
        let tfrc = parameters_but(&UNUSED, root, "tfrc").unwrap_or_default();
        let reserve = reservation(root, check);
        let allocate = allocation(root, check);
        let options = specification.clone().and_then(|it| {
            let options = QosOptions::new(it)
                .peer(root.or("peer", &peer(), Peer::default()))
                .pacing(root.or("pacing", &pacing(), Pacing::default()))
                .rate_control(root.or("rate-control", &rate_control(tfrc), RateControl::default()))
                .marking(marked(root, goal))
                .path(parameters(root, "path").unwrap_or_default());
            let negotiation = parameters(root, "negotiation").unwrap_or_default();
            let monitor = parameters(root, "monitor").unwrap_or_default();
            let options = options.negotiation(negotiation).monitor(monitor);
            let options = options.reconnect(reconnects).publish(publishes).managed(is_managed);
            let options = match detection {
                Some(time) => options.detection(Duration::from_nanos(time.as_nanos())),
                None => options,
            };
            let options = match connect_timeout {
                Some(time) => options.connect_timeout(Duration::from_nanos(time.as_nanos())),
                None => options,
            };
            let options = match linger {
                Some(time) => options.linger(Duration::from_nanos(time.as_nanos())),
                None => options,
            };
            let options = match weakest {
                Some(weakest) => {
                    let specifications = vec![weakest];
                    options.alternatives(Alternatives { specifications, params: renegotiation })
                }
                None => options,
            };
            let options = allocate(reserve(options)?);
            Some(if adapts { options.adapt_rate(operation.unwrap_or_default()) } else { options })
        });
        root.finish();
        Some((specification?, options?))
    })
}

/// Reads the request to the network, which is not sent yet. Returns a function that adds the request to a socket's options.
fn reservation(root: &TableReader<'_>, check: Check) -> impl FnOnce(QosOptions) -> Option<QosOptions> {
    let service = root.optional("service", &service());
    let socket = root.or("service-socket", &kind::absolute_path(), DEFAULT_SOCKET.to_owned());
    let ack_path = root.or("ack-path", &ack_path(), AckPath::default());
    let if_refused = root.or("if-refused", &if_refused(), IfRefused::default());
    let patience = root.optional("reservation-patience", &kind::duration());
    if check == Check::All && !root.has("service") {
        for name in ["service-socket", "ack-path", "reservation-patience"] {
            if let Some(node) = root.node(name) {
                root.wrong(name, node, "it to be absent unless service is set", "");
            }
        }
        if let Some(node) = root.node("if-refused").filter(|_| !root.has("allocation")) {
            root.wrong("if-refused", node, "it to be absent unless service or allocation is set", "");
        }
    }
    move |options| {
        let Some(service) = service else { return Some(options) };
        let asking = options.service(&service, &Access { socket: socket.into() });
        let asking = asking.map_err(|unknown| root.refuse("service", &unknown.to_string())).ok()?;
        let asking = asking.ack_path(ack_path).if_refused(if_refused);
        Some(match patience {
            Some(time) => asking.reservation_patience(Duration::from_nanos(time.as_nanos())),
            None => asking,
        })
    }
}

/// Reads the request to the resource manager of this host. Returns a function that adds the request to a socket's options.
fn allocation(root: &TableReader<'_>, check: Check) -> impl FnOnce(QosOptions) -> QosOptions + use<> {
    let class = root.optional("allocation", &scheduling_class());
    let weight = root.or("allocation-weight", &kind::integer(1, MOST_WEIGHT.into()), 1) as u32;
    let priority = root.optional("allocation-priority", &kind::integer(0, HIGHEST_PRIORITY.into()));
    let socket = root.optional("allocation-socket", &kind::absolute_path());
    let if_refused = root.or("if-refused", &if_refused(), IfRefused::default());
    if check == Check::All && !root.has("allocation") {
        for name in ["allocation-weight", "allocation-priority", "allocation-socket"] {
            if let Some(node) = root.node(name) {
                root.wrong(name, node, "it to be absent unless allocation is set", "");
            }
        }
    }
    move |options| {
        let Some(class) = class else { return options };
        let allocation = AllocationOptions::new(class).weight(weight).if_refused(if_refused);
        let allocation = match priority {
            Some(priority) => allocation.priority(priority as u8),
            None => allocation,
        };
        options.allocation(match socket {
            Some(path) => allocation.socket(path.as_ref()),
            None => allocation,
        })
    }
}

fn scheduling_class() -> ValueKind<SchedulingClass> {
    let words = [("real-time", SchedulingClass::RealTime), ("time-shared", SchedulingClass::TimeShared)];
    kind::one_of("the class of the connection at the resource manager", &words)
}

fn service() -> ValueKind<String> {
    let words = services().into_iter().map(|service| (service.name().to_owned(), service.name().to_owned()));
    kind::choice("a service of the network", words.collect())
}

fn ack_path() -> ValueKind<AckPath> {
    let words = [("reserved", AckPath::Reserved), ("best-effort", AckPath::BestEffort)];
    kind::one_of("the reservation of a direction with acknowledgements alone", &words)
}

fn if_refused() -> ValueKind<IfRefused> {
    let words = [("best-effort", IfRefused::BestEffort), ("fail", IfRefused::Fail)];
    kind::one_of("the effect of a refused reservation", &words)
}

/// The parameters that a table sets; `None` if there is no such table, or something in it is wrong, which is reported.
fn parameters<P: Parameters>(root: &TableReader<'_>, key: &str) -> Option<P> {
    parameters_but(&[], root, key)
}

/// As [`parameters`], but those of these names cannot be set.
fn parameters_but<P: Parameters>(names: &[&str], root: &TableReader<'_>, key: &str) -> Option<P> {
    let table = root.table(key, "a table of parameters")?;
    let described = P::describe().into_iter().filter(|parameter| !names.contains(&parameter.name));
    let values = parameter::values(&table, &described.collect::<Vec<_>>());
    let params = parameter::checked(&table, P::from_values(values));
    table.finish();
    params
}

fn peer() -> ValueKind<Peer> {
    let words = [("detect", Peer::Detect), ("speaks", Peer::Speaks), ("plain", Peer::Plain)];
    kind::one_of("knowledge of the peer", &words)
}

fn pacing() -> ValueKind<Pacing> {
    let words = [("block", Pacing::Block), ("refuse", Pacing::Refuse), ("count", Pacing::Count)];
    kind::one_of("the effect of sending too fast", &words)
}

fn rate_control(tfrc: TfrcParams) -> ValueKind<RateControl> {
    let words = [("agreed", RateControl::Agreed), ("tfrc", RateControl::Tfrc(tfrc))];
    kind::one_of("the limit of the rate of datagrams", &words)
}

fn marking() -> ValueKind<Marking> {
    let adaptive = |class: Class| {
        (format!("adaptive-{}", class.name()), Marking::Adaptive(class, HintParams::default()))
    };
    let fixed = [("translated", Marking::Translated), ("none", Marking::None)];
    let fixed = fixed.map(|(word, marking)| (word.to_owned(), marking));
    let words = fixed.into_iter().chain(Class::ALL.map(adaptive)).collect();
    let level = kind::integer(1, 16).map(|level| Marking::Fixed(Hint::from_level(level as u16)));
    kind::choice("the mark of packets", words).or(level)
}

/// The marks of packets: those of `dscp`, or of `marking`.
fn marked(root: &TableReader<'_>, goal: HintGoal) -> Marking {
    let marking = root.or("marking", &marking(), Marking::default());
    match root.optional("dscp", &dscp()) {
        Some(dscp) => {
            if let Some(node) = root.node("marking") {
                root.wrong("marking", node, "it to be absent where dscp is set", "");
            }
            Marking::Dscp(dscp)
        }
        None => with_goal(marking, goal),
    }
}

fn dscp() -> ValueKind<Dscp> {
    let number = kind::integer(0, 63).map(|number| Dscp::new(number as u8).unwrap_or(Dscp::DEFAULT));
    let is_name = |text: &String| text.parse::<Dscp>().is_ok();
    let name = kind::text().only("a name such as EF, AF41 or CS5", is_name);
    number.or(name.map(|text| text.parse().unwrap_or(Dscp::DEFAULT)))
}

fn with_goal(marking: Marking, goal: HintGoal) -> Marking {
    match marking {
        Marking::Adaptive(class, params) => Marking::Adaptive(class, HintParams { goal, ..params }),
        marking => marking,
    }
}

fn hint_goal() -> ValueKind<HintGoal> {
    let words = [HintGoal::WithinLimit, HintGoal::Quality].map(|goal| (goal.name(), goal));
    kind::one_of("the goal of an adaptive marking", &words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_quality::spec::Preset;

    #[test]
    fn a_code_point_is_set_by_number_or_name() {
        for (text, number) in [("46", 46), ("EF", 46), ("af41", 34), ("0", 0)] {
            let mut options = Options::default();
            options.set("dscp", text).unwrap();
            let options = format!("{:?}", options.qos_options().unwrap());
            assert!(options.contains(&format!("Dscp(Dscp({number}))")), "{options}");
        }
        let mut options = Options::default();
        let error = options.set("dscp", "64").unwrap_err();
        assert!(error.contains("0 to 63") || error.contains("from 0"), "{error}");
        options.set("dscp", "EF").unwrap();
        options.set("marking", "6").unwrap();
        let error = options.qos_options().unwrap_err();
        assert!(error.contains("absent where dscp is set"), "{error}");
    }

    #[test]
    fn errors_of_options_that_do_not_go_together_name_them() {
        let mut options = Options::default();
        options.set("ack-path", "best-effort").unwrap();
        let error = options.qos_options().unwrap_err();
        assert!(error.contains("key \"ack-path\"") && !error.contains("--set"), "{error}");
        let mut options = Options::default();
        options.set("allocation-weight", "2").unwrap();
        let error = options.qos_options().unwrap_err();
        assert!(error.contains("absent unless allocation is set"), "{error}");
        options.set("allocation", "time-shared").unwrap();
        options.set("if-refused", "fail").unwrap();
        options.qos_options().unwrap();
        let error = options.set("allocation-weight", "0").unwrap_err();
        assert!(error.contains("1 to 1000") || error.contains("from 1"), "{error}");
    }

    #[test]
    fn options_are_set_in_any_order_and_in_the_words_of_files() {
        let mut options = Options::default();
        // More than the class's max-rate, until that is set as well.
        for (name, text) in [
            ("class", "video"),
            ("send.min-rate", "1000"),
            ("send.max-rate", "2000"),
            ("send.peak-rate", "2000"),
            ("send.max-delay", "150 ms"),
            ("send.min_delay", "10 ms"),
            ("send.coerce", "true"),
            ("receive.class", "telemetry"),
            ("peer", "speaks"),
            ("pacing", "refuse"),
            ("tfrc.t-mbi", "32 s"),
            ("tfrc.gradual-increase", "true"),
            ("rate-control", "tfrc"),
            ("tfrc.q", "0.5"),
            ("marking", "6"),
            ("marking", "adaptive-audio"),
            ("adapt-rate", "true"),
            ("operation.decrease", "0.5"),
            ("hint-goal", "quality"),
            ("weakest.send.min-rate", "100"),
            ("renegotiation.patience", "2 s"),
            ("detection", "50 ms"),
            ("publish", "false"),
            ("managed", "true"),
            ("reconnect", "true"),
            ("negotiation.give-up", "1 s"),
            ("monitor.interval", "100 ms"),
            ("path.rtt", "20 ms"),
            ("ack-path", "best-effort"),
            ("if-refused", "fail"),
            ("reservation-patience", "500 ms"),
            ("service-socket", "/run/other/cutlined.sock"),
            ("allocation-priority", "9"),
            ("allocation-weight", "3"),
            ("allocation-socket", "/run/other/manager.sock"),
            ("allocation", "time-shared"),
            ("allocation", "real-time"),
            ("service", "rsvp"),
        ] {
            options.set(name, text).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        }
        options.set_key(&[7; 32]).unwrap();
        let spec = options.specification().unwrap();
        assert_eq!((spec.send.min_rate, spec.send.max_rate), (Some(1000.0), Some(2000.0)));
        assert_eq!(spec.send.max_delay, Some(cutline_units::Duration::from_millis(150)));
        assert_eq!(spec.receive, Preset::Telemetry.specification());
        assert!(options.qos_options().is_ok());
        options.set("send.max-rate", "10").unwrap();
        let error = options.qos_options().unwrap_err();
        assert!(error.contains("it must be at most max-rate, which is 10"), "{error}");
    }

    #[test]
    fn a_bit_rate_needs_a_size() {
        let mut options = Options::default();
        let error = options.set("send.minSendRate", "64 kbit/s").unwrap_err();
        assert!(error.contains("set size"), "{error}");
        options.set("send.size", "160 B").unwrap();
        options.set("send.minSendRate", "64 kbit/s").unwrap();
        assert_eq!(options.specification().unwrap().send.min_rate, Some(50.0));
    }

    #[test]
    fn a_wrong_option_is_named_with_what_is_allowed_and_changes_nothing() {
        let mut options = Options::default();
        options.set("class", "audio").unwrap();
        for (name, text, expected) in [
            ("clas", "video", "key \"clas\" is not known here: did you mean \"class\"?"),
            ("class", "vidoe", "\"audio\", \"video\""),
            ("send.max-delay", "150", "expected a duration such as"),
            ("send.loss", "101", "from 0 to 100"),
            ("send", "3", "a table of parameters"),
            (
                "peer",
                "friend",
                "options: key \"peer\": value friend is not allowed: expected knowledge of the peer: \"detect\"",
            ),
            ("marking", "17", "from 1 to 16"),
            ("rate-control", "tcp", "\"agreed\", \"tfrc\""),
            (
                "tfrc.q",
                "1",
                "key \"tfrc.q\": value 1 is not allowed: expected a number such as 0.05, or a percentage such as \"5 %\", from 0 to 0.999999",
            ),
            ("tfrc.t-mbi", "0.5 s", "from 1 s to 3600 s"),
            ("tfrc.packet-size", "500 B", "key \"tfrc.packet-size\" is not known here"),
            ("marking", "adaptive", "\"adaptive-audio\""),
            ("publish", "no", "true"),
            ("managed", "maybe", "true"),
            ("reconnect", "yes", "true"),
            ("path.mtu", "10 B", "from 576"),
            ("monitor.interval", "1 ms", "from 10 ms"),
            (
                "service",
                "rspv",
                "options: key \"service\": value rspv is not allowed: expected a service of the network: \"mark\", \"local\", \"rsvp\"",
            ),
            ("service-socket", "cutlined.sock", "an absolute path of at most 107 bytes"),
            ("service-socket", &format!("/{}", "x".repeat(107)), "an absolute path of at most 107 bytes"),
            ("ack-path", "none", "\"reserved\", \"best-effort\""),
            ("if-refused", "ignore", "\"best-effort\", \"fail\""),
            ("reservation-patience", "3", "expected a duration such as"),
            ("", "1", ""),
        ] {
            let error = options.set(name, text).unwrap_err();
            assert!(error.contains(expected), "{name} = {text}: {error}");
        }
        assert!(options.set_key(b"short").unwrap_err().contains("32"));
        assert_eq!(options.specification().unwrap().send, Preset::Audio.specification());
        assert!(options.read("class = ").is_err() && options.read("{\"class\": 3}").is_err());
        assert_eq!(options.specification().unwrap().send, Preset::Audio.specification());
    }

    /// Every option of a reservation, and an agent that is not there.
    const RESERVATION: [(&str, &str); 4] = [
        ("ack-path", "best-effort"),
        ("if-refused", "fail"),
        ("reservation-patience", "1 s"),
        ("service-socket", "/nosuch/cutlined.sock"),
    ];

    #[test]
    fn options_of_reservations_need_a_service_when_a_socket_is_made() {
        for (name, text) in RESERVATION {
            let mut options = Options::default();
            options.set(name, text).unwrap();
            let error = options.qos_options().unwrap_err();
            let what = if name == "if-refused" { "service or allocation" } else { "service" };
            let expected = format!(
                "key \"{name}\": value {text} is not allowed: expected it to be absent unless {what} is set"
            );
            assert!(error.contains(&expected), "{error}");
            assert!(options.specification().is_ok(), "a specification alone asks for nothing");
            // No request is sent yet, so no process has to listen at the socket.
            options.set("service", "rsvp").unwrap();
            options.qos_options().unwrap();
        }
        let mut options = Options::default();
        options.read("if-refused = 'fail'").unwrap();
        assert!(options.qos_options().unwrap_err().contains("options:1:14"));
        options.set("service", "mark").unwrap();
        assert!(options.qos_options().is_ok());
    }

    #[test]
    fn a_document_is_toml_or_json() {
        let toml = "class = 'video'\nmarking = 'none'\n[path]\nrtt = '10 ms'\n";
        let json = r#" {"class": "video", "marking": "none", "path": {"rtt": "10 ms"}}"#;
        for text in [toml, json] {
            let mut options = Options::default();
            options.read(text).unwrap();
            assert_eq!(options.specification().unwrap().receive, Preset::Video.specification());
        }
    }
}

//! QoS specifications: the requirements of a connection's two directions.
//!
//! ```toml
//! class = "video"              # where both directions start; without a class they demand nothing
//!
//! [send]
//! min-rate = 60                # messages/s
//! size = "1280 B"
//! max-delay = "100 ms"
//! coerce = ["min-rate"]        # true: all; false: none
//!
//! [receive]
//! class = "telemetry"
//! ```
//!
//! The names of QoSockets (`int_delay`) and of TAPS (RFC 9622: `minSendRate`) are understood, too.

use cutline_config::Document;
use cutline_config::Errors;
use cutline_config::Value as Written;
use cutline_config::kind::{self, ValueKind};
use cutline_config::parameter;
use cutline_config::{TableReader, read};
use cutline_params::{Choice as _, ParameterValue, Parameters as _};
use cutline_quality::spec::{
    CapacityProfile, Coerced, ConnectionSpecification, Preset, SpecParameter, Specification, TapsProperties,
};
use cutline_units::Bytes;

/// The specification in a document of its own.
///
/// # Errors
/// Everything that is wrong with it.
pub fn specification(document: &Document) -> Result<ConnectionSpecification, Errors> {
    read(document, |root| {
        let spec = connection(root);
        root.finish();
        spec
    })
}

/// The specification in a table. The caller reads the table's other keys, if it has any, and finishes it.
pub fn connection(table: &TableReader<'_>) -> Option<ConnectionSpecification> {
    change(table, &ConnectionSpecification::default())
}

/// The specification in a table in which absent keys are those of another specification.
pub fn change(table: &TableReader<'_>, other: &ConnectionSpecification) -> Option<ConnectionSpecification> {
    let class = table.optional("class", &class()).map(Preset::specification);
    let profile = table.optional("connCapacityProfile", &profile()).or(other.profile);
    let side = |key, other: &Specification, rates| {
        let start = class.as_ref().unwrap_or(other).clone();
        match table.table(key, "a table of parameters") {
            Some(table) => direction(&table, start, rates),
            None => (!table.has(key)).then_some(start),
        }
    };
    let (send, receive) =
        (side("send", &other.send, SEND_RATES), side("receive", &other.receive, RECEIVE_RATES));
    Some(ConnectionSpecification { send: send?, receive: receive?, profile })
}

/// The TAPS names of the lowest and the highest rate.
const SEND_RATES: [&str; 2] = ["minSendRate", "maxSendRate"];
const RECEIVE_RATES: [&str; 2] = ["minRecvRate", "maxRecvRate"];

/// One direction. Absent keys are those of the table's own class, or of `start`.
fn direction(
    table: &TableReader<'_>,
    start: Specification,
    taps_rates: [&'static str; 2],
) -> Option<Specification> {
    let start = table.optional("class", &class()).map_or(start, Preset::specification);
    let start = taps(table, &start, taps_rates)?;
    let mut values = parameter::values(table, &Specification::describe());
    for (name, parameter) in PAPER {
        if let Some(value) = table.optional(name, &parameter::kind_of(parameter.about())) {
            if table.has(parameter.name()) {
                table.refuse(name, &format!("it is another name of {parameter}, which is there, too"));
            }
            values.push((parameter.name(), value));
        }
    }
    let coerced = table.or("coerce", &coerced(), start.coerced);
    let spec = parameter::checked(table, start.with_values(values));
    table.finish();
    Some(Specification { coerced, ..spec? })
}

/// The names that QoSockets section II gives and that are not ours.
const PAPER: [(&str, SpecParameter); 8] = [
    ("min_rate", SpecParameter::MinRate),
    ("max_rate", SpecParameter::MaxRate),
    ("peak_rate", SpecParameter::PeakRate),
    ("min_delay", SpecParameter::MinDelay),
    ("max_delay", SpecParameter::MaxDelay),
    ("int_delay", SpecParameter::MaxGap),
    ("rec_time", SpecParameter::Recovery),
    ("permt", SpecParameter::Reordering),
];

/// Adds the TAPS properties in the table to a specification.
fn taps(
    table: &TableReader<'_>,
    start: &Specification,
    [min, max]: [&'static str; 2],
) -> Option<Specification> {
    let properties = TapsProperties {
        min_send_rate: table.optional(min, &kind::rate()),
        max_send_rate: table.optional(max, &kind::rate()),
        reliability: table.optional("reliability", &kind::flag()),
        preserve_order: table.optional("preserveOrder", &kind::flag()),
        conn_timeout: table.optional("connTimeout", &kind::positive_duration()),
        conn_capacity_profile: CapacityProfile::Default,
    };
    let size = table.optional("size", &kind::positive_size()).or(start.size);
    let size = match (size, [min, max].into_iter().find(|rate| table.has(rate))) {
        (None, Some(rate)) => {
            table.refuse(
                rate,
                "the size of messages, by which it becomes a rate of messages, is missing: set size",
            );
            return None;
        }
        (size, _) => size.unwrap_or(Bytes::new(1)),
    };
    Some(properties.apply_to(start, size))
}

fn class() -> ValueKind<Preset> {
    kind::one_of("a class of application", &Preset::ALL.map(|preset| (preset.name(), preset)))
}

fn profile() -> ValueKind<CapacityProfile> {
    let names = CapacityProfile::ALL.map(CapacityProfile::name).join(", ");
    ValueKind::new(format!("a capacity profile of RFC 9622: {names}"), |node| {
        CapacityProfile::parse(node.as_text().unwrap_or_default()).map_err(|_| String::new())
    })
}

fn coerced() -> ValueKind<Coerced> {
    let all = kind::flag().map(|all| if all { Coerced::ALL } else { Coerced::NONE });
    let some = ValueKind::new("a list of parameters such as [\"max-delay\"]", |node| {
        let Written::List(list) = &node.value else { return Err(String::new()) };
        let parameter = |node: &cutline_config::Node| {
            let name = node.as_text().ok_or_else(String::new)?;
            SpecParameter::parse(name).map_err(|error| error.to_string())
        };
        list.iter().map(parameter).collect()
    });
    all.or(some)
}

/// The parameters of one direction that are set, as people write them, and as [`specification`] reads them.
pub fn written(spec: &Specification) -> Vec<(&'static str, String)> {
    let values = Specification::describe().into_iter().zip(spec.values());
    let set = values.filter(|(_, (_, value))| *value != ParameterValue::Off);
    set.map(|(about, (name, value))| (name, parameter::written(about, &value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::Duration;

    fn read_toml(text: &str) -> Result<ConnectionSpecification, String> {
        let document = Document::parse(text, "spec.toml").expect("the test's own text is TOML");
        specification(&document).map_err(|errors| errors.to_string())
    }

    /// QoSockets section IV: NetVideo.
    const NET_VIDEO: &str = "[send]\n min-rate = 60\n max-rate = 80\n peak-rate = 100\n size = '1280 B'\n \
        min-delay = '0 ms'\n max-delay = '100 ms'\n max-gap = '50 ms'\n recovery = '5 s'\n loss = 5\n \
        reordering = false\n coerce = true\n";

    #[test]
    fn a_specification_is_read_in_our_words_and_in_the_papers() {
        let ours = read_toml(NET_VIDEO).unwrap();
        assert_eq!(ours.send.max_throughput().unwrap().as_bps(), 819_200);
        assert_eq!((ours.send.coerced, &ours.receive), (Coerced::ALL, &Specification::OPEN));
        let papers =
            [("-rate", "_rate"), ("-delay", "_delay"), ("max-gap", "int_delay"), ("recovery", "rec_time")];
        let papers =
            papers.iter().fold(NET_VIDEO.to_owned(), |text, (ours, theirs)| text.replace(ours, theirs));
        assert_eq!(read_toml(&papers.replace("reordering", "permt")), Ok(ours));
    }

    #[test]
    fn written_values_are_read_back_unchanged() {
        for preset in Preset::ALL {
            let spec = preset.specification();
            let lines = written(&spec).into_iter().map(|(name, value)| format!("{name} = {value}\n"));
            let text = format!("[receive]\ncoerce = true\n{}", lines.collect::<String>());
            assert_eq!(read_toml(&text).map(|read| read.receive), Ok(spec), "{text}");
        }
    }

    #[test]
    fn a_class_is_where_a_direction_starts() {
        let spec = read_toml("class = 'video'\n[send]\nmin-rate = 50\n[receive]\nclass = 'audio'\n").unwrap();
        let video = Preset::Video.specification();
        assert_eq!(spec.send, Specification { min_rate: Some(50.0), ..video });
        assert_eq!(spec.receive, Preset::Audio.specification());
        let open =
            read_toml("class = 'video'\n[send]\njitter = 'off'\ncoerce = ['loss', 'max_delay']\n").unwrap();
        assert_eq!(open.send.jitter, None);
        let coerced = [SpecParameter::Loss, SpecParameter::MaxDelay].into_iter().collect();
        assert_eq!((open.send.coerced, open.receive), (coerced, Preset::Video.specification()));
    }

    #[test]
    fn taps_properties_are_understood() {
        // RFC 9622 section 8.1.6: the capacity profile.
        let text = "connCapacityProfile = 'Constant-Rate Streaming'\n[send]\nsize = '160 B'\nminSendRate = '64 kbit/s'\n\
            maxSendRate = '64 kbit/s'\npreserveOrder = true\nreliability = true\nconnTimeout = '2 s'\n[receive]\n\
            minRecvRate = '8 kbit/s'\nsize = '1000 B'\n";
        let spec = read_toml(text).unwrap();
        assert_eq!(spec.profile, Some(CapacityProfile::ConstantRateStreaming));
        let send = Specification::builder().min_rate(50.0).peak_rate(50.0).size(Bytes::new(160));
        let send = send.reordering(false).loss(0.0).recovery(Duration::from_secs(2));
        assert_eq!(Ok(spec.send), send.build());
        assert_eq!(spec.receive.min_rate, Some(1.0));
        let error = read_toml("[send]\nminSendRate = '64 kbit/s'\n").unwrap_err();
        assert!(error.contains("send.minSendRate") && error.contains("set size"), "{error}");
    }

    #[test]
    fn errors_name_the_allowed_values() {
        for (text, expected) in [
            ("clas = 'video'", "key \"clas\" is not known here: did you mean \"class\"?"),
            ("class = 'vidoe'", "expected a class of application: \"audio\", \"video\", \"file\""),
            ("[send]\nlos = 1", "key \"send.los\" is not known here: did you mean \"loss\"?"),
            ("[send]\nloss = 101", "expected a number of per cent, such as 5 or \"5 %\", from 0 to 100"),
            ("[send]\nmax-delay = 100", "expected a duration such as"),
            ("[send]\ncoerce = ['dealy']", "delay"),
            ("[send]\nmin-rate = 9\nmax-rate = 5", "at most max-rate, which is 5"),
            ("class = 'video'\n[send]\nmax-rate = 5", "at most max-rate, which is 5"),
            ("[send]\nmax-gap = '1 s'\nint_delay = '1 s'", "it is another name of max-gap"),
            ("send = 3", "expected a table of parameters"),
        ] {
            let error = read_toml(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn json_has_the_same_values() {
        let json =
            r#"{"class": "video", "send": {"max-delay": "90 ms", "min-delay": "0 ms", "coerce": ["loss"]}}"#;
        let toml = "class = 'video'\n[send]\nmax-delay = '90 ms'\nmin-delay = '0 ms'\ncoerce = ['loss']\n";
        let document = Document::parse_json(json, "spec.json").unwrap();
        assert_eq!(specification(&document).map_err(|errors| errors.to_string()), read_toml(toml));
    }
}

//! The router's options as the library's types: quantities, the queue, code points.

use crate::arguments::duration;
use crate::exit::Failure;
use crate::queue_args::{aqm_spec, code_point, hint_table, limit, link_rate, pair, tsq_params, usage};
use cutline_aqm::{Discipline as _, Limit, QueueSpec, Sieve};
use cutline_config::quantity;
use cutline_params::ParameterValue;
use cutline_router_service::{AutorateSpec, ProcessSpec};
use cutline_sys::address::ZonedIp;
use cutline_units::{Bytes, Duration, HintTable, Rate, RemarkTable};
use std::ops::RangeInclusive;

/// The queue of both directions, unless the reverse direction has a separate one.
#[derive(clap::Args)]
pub struct QueueArgs {
    /// Algorithm of the queue (`cutline aqm list`) [default: sieve, or pie with --tsq]
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    aqm: Option<String>,
    /// Set a parameter of the algorithm, such as key=source-then-flow; may be repeated (`cutline aqm show NAME`)
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "config")]
    set: Vec<String>,
    /// Use TSQ on top of the algorithm, with optional parameters, such as l=40ms,bits=4
    #[arg(long, value_name = "KEY=VALUE,...", num_args = 0..=1, default_missing_value = "", conflicts_with = "config")]
    tsq: Option<String>,
    /// Round-trip time of most connections through the link, without its queue, for sieve [default: 100 ms]
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "config")]
    rtt: Option<Duration>,
    /// Largest backlog, such as "1000 packets" or "64 KB" [default: 1000 packets, more with sieve on fast links]
    #[arg(long, value_parser = limit, conflicts_with = "config")]
    limit: Option<Limit>,
    /// Drop ECN-capable packets instead of marking them
    #[arg(long, conflicts_with = "config")]
    no_ecn: bool,
}

/// Options of the reverse direction.
#[derive(clap::Args)]
pub struct ReverseArgs {
    /// Rate from --out to --in [default: the same]
    #[arg(id = "reverse_rate", long = "reverse-rate", value_name = "RATE", value_parser = link_rate, conflicts_with = "config")]
    rate: Option<Rate>,
    /// Separate algorithm for the reverse direction, with the parameters of --reverse-set and --reverse-tsq only
    #[arg(id = "reverse_aqm", long = "reverse-aqm", value_name = "NAME", conflicts_with = "config")]
    aqm: Option<String>,
    /// Set a parameter of the reverse direction's algorithm; may be repeated
    #[arg(id = "reverse_set", long = "reverse-set", value_name = "KEY=VALUE", conflicts_with = "config")]
    set: Vec<String>,
    /// Use TSQ in the reverse direction, with optional parameters
    #[arg(id = "reverse_tsq", long = "reverse-tsq", value_name = "KEY=VALUE,...", num_args = 0..=1, default_missing_value = "", conflicts_with = "config")]
    tsq: Option<String>,
    /// Largest backlog in the reverse direction [default: the same]
    #[arg(id = "reverse_limit", long = "reverse-limit", value_name = "LIMIT", value_parser = limit, conflicts_with = "config")]
    limit: Option<Limit>,
}

/// Rates that follow the link.
#[derive(clap::Args)]
pub struct AutorateArgs {
    /// Let the rate follow the link within these rates, such as 5Mbit..60Mbit; it begins with --rate
    #[arg(long, value_name = "LEAST..MOST", value_parser = rate_range, requires = "reflector", conflicts_with = "config")]
    autorate: Option<RangeInclusive<Rate>>,
    /// Let the rate of the reverse direction follow the link, too; it begins with --reverse-rate
    #[arg(long, value_name = "LEAST..MOST", value_parser = rate_range, requires = "reflector", conflicts_with = "config")]
    reverse_autorate: Option<RangeInclusive<Rate>>,
    /// Address of a host behind the link that answers echo requests, a link-local one with its interface (`fe80::1%eth0`); may be repeated:
    /// the majority decides, three are better than one
    #[arg(long, value_name = "ADDRESS", conflicts_with = "config")]
    reflector: Vec<ZonedIp>,
    /// A reply that takes longer than usual by more than this is delayed
    #[arg(long, value_name = "TIME", default_value = "15ms", value_parser = duration, conflicts_with = "config")]
    autorate_delay: Duration,
}

/// The rates between which each direction follows the link, if it does.
type Ranges = [Option<RangeInclusive<Rate>>; 2];

impl AutorateArgs {
    /// Returns the ranges of both directions, which have these rates, and the settings by which they follow the link.
    pub fn spec(&self, rates: [Rate; 2]) -> Result<(Ranges, Option<AutorateSpec>), Failure> {
        let ranges = [self.autorate.clone(), self.reverse_autorate.clone()];
        for (option, (range, rate)) in
            ["--autorate", "--reverse-autorate"].into_iter().zip(ranges.iter().zip(rates))
        {
            if let Some(range) = range {
                AutorateSpec::check_range(rate, range)
                    .map_err(|why| Failure::Usage(format!("{option}: {why}")))?;
            }
        }
        if ranges.iter().all(Option::is_none) {
            let why = "--reflector is for --autorate or --reverse-autorate, and neither is given";
            return if self.reflector.is_empty() {
                Ok((ranges, None))
            } else {
                Err(Failure::Usage(why.to_owned()))
            };
        }
        AutorateSpec::check(&self.reflector).map_err(|why| Failure::Usage(format!("--reflector: {why}")))?;
        Ok((ranges, Some(AutorateSpec { reflectors: self.reflector.clone(), delay: self.autorate_delay })))
    }
}

/// The hints of code points, and their changes.
#[derive(clap::Args)]
pub struct CodePoints {
    /// Assign a hint from 1 to 16 to a code point, such as EF=4; may be repeated
    #[arg(long, value_name = "CODEPOINT=LEVEL", conflicts_with = "config")]
    hint: Vec<String>,
    /// Change a code point at departure, such as CS1=LE or EF=hint-6; `to-hints` changes each code point to that of its
    /// hint, `without-hints` changes the code points of hints to the default; may be repeated
    #[arg(long, value_name = "CODEPOINT=CODEPOINT", conflicts_with = "config")]
    remark: Vec<String>,
}

impl ReverseArgs {
    /// Returns the queue of the reverse direction for a link of this rate. `forward` is the queue of the forward direction.
    pub fn spec(&self, forward: &QueueArgs, rate: Rate) -> Result<QueueSpec, Failure> {
        let own = self.aqm.is_some();
        let inherited = |value: &[String]| if own { Vec::new() } else { value.to_vec() };
        let tsq = forward.tsq.clone().filter(|_| !own);
        let mut reverse = QueueArgs {
            aqm: self.aqm.clone().or_else(|| forward.aqm.clone()),
            set: [inherited(&forward.set), self.set.clone()].concat(),
            tsq: self.tsq.clone().or(tsq),
            limit: self.limit.or(forward.limit),
            rtt: None,
            no_ecn: forward.no_ecn,
        };
        reverse.rtt = forward.rtt.filter(|_| reverse.aqm() == Sieve::<()>::NAME);
        reverse.spec(self.rate.unwrap_or(rate))
    }
}

impl QueueArgs {
    /// Returns the algorithm. Sieve needs no settings: sparse traffic does not wait behind the rest at any rate. TSQ needs a law that
    /// decides by a probability.
    fn aqm(&self) -> &str {
        let default = if self.tsq.is_some() { "pie" } else { Sieve::<()>::NAME };
        self.aqm.as_deref().unwrap_or(default)
    }

    /// Returns the queue for a link of this rate.
    pub fn spec(&self, rate: Rate) -> Result<QueueSpec, Failure> {
        if self.rtt.is_some() && self.aqm() != Sieve::<()>::NAME {
            return Err(Failure::Usage(format!("--rtt is for sieve, and the queue is {}", self.aqm())));
        }
        let rtt = self.rtt.map(|rtt| ("rtt", ParameterValue::Duration(rtt)));
        let aqm = aqm_spec(self.aqm(), &self.set, rtt)?;
        let limit = self.limit.unwrap_or_else(|| Limit::Packets(aqm.usual_limit(rate)));
        let spec = QueueSpec {
            limit,
            ecn: !self.no_ecn,
            aqm,
            tsq: self.tsq.as_deref().map(tsq_params).transpose()?,
            rate,
        };
        // Contradictions are reported before an interface is opened.
        spec.build::<u32>().map_err(usage)?;
        Ok(spec)
    }
}

impl CodePoints {
    /// Returns the tables of hints and of changes.
    pub fn tables(&self) -> Result<(HintTable, RemarkTable), Failure> {
        let hints = hint_table(&self.hint)?;
        let mut remark = RemarkTable::unchanged();
        for text in &self.remark {
            match text.as_str() {
                "to-hints" => remark = RemarkTable::to_hints(&hints),
                "without-hints" => remark = RemarkTable::without_hints(),
                _ => {
                    let (from, to) = pair("--remark", text)?;
                    remark.set(code_point("--remark", text, from)?, code_point("--remark", text, to)?);
                }
            }
        }
        Ok((hints, remark))
    }
}

/// Parses a range of rates, such as 5Mbit..60Mbit.
fn rate_range(text: &str) -> Result<RangeInclusive<Rate>, String> {
    let (least, most) = text
        .split_once("..")
        .ok_or_else(|| "write the lowest and the highest rate, such as 5Mbit..60Mbit".to_owned())?;
    Ok(link_rate(least)?..=link_rate(most)?)
}

/// Parses the memory for the frames of both directions.
pub fn memory(text: &str) -> Result<Bytes, String> {
    let allowed = ProcessSpec::MEMORY;
    let size = quantity::size(text).map_err(|error| format!("{error}; write \"64 MB\""))?;
    let is_allowed = allowed.contains(&size);
    is_allowed.then_some(size).ok_or_else(|| format!("from {} to {}", allowed.start(), allowed.end()))
}

/// Parses the interval of printed statistics.
pub fn interval(text: &str) -> Result<Duration, String> {
    let least = Duration::from_millis(10);
    duration(text).and_then(|time| if time < least { Err(format!("at least {least}")) } else { Ok(time) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_aqm::registry;
    use cutline_config::parameter;
    use cutline_params::Parameter;
    use cutline_units::{Dscp, Duration};

    fn args(aqm: &str, set: &[&str], tsq: Option<&str>) -> QueueArgs {
        let set = set.iter().map(ToString::to_string).collect();
        let aqm = Some(aqm.to_owned());
        QueueArgs {
            aqm,
            set,
            tsq: tsq.map(Into::into),
            rtt: None,
            limit: Some(Limit::Packets(9)),
            no_ecn: false,
        }
    }

    fn reverse(aqm: Option<&str>, set: &[&str], tsq: Option<&str>) -> ReverseArgs {
        ReverseArgs {
            rate: Some(Rate::from_mbps(2)),
            aqm: aqm.map(Into::into),
            set: set.iter().map(ToString::to_string).collect(),
            tsq: tsq.map(Into::into),
            limit: None,
        }
    }

    #[test]
    fn the_reverse_queue_is_like_the_forward_one_or_has_a_separate_aqm() {
        let (forward, rate) = (args("pi", &["q-ref=100"], Some("l=60ms")), Rate::from_mbps(15));
        let spec = |reverse: ReverseArgs| reverse.spec(&forward, rate).unwrap();
        let same = QueueSpec { rate: Rate::from_mbps(2), ..forward.spec(rate).unwrap() };
        assert_eq!(spec(reverse(None, &[], None)), same);
        let changed = spec(reverse(None, &["q-ref=50"], Some("l=40ms")));
        assert_eq!(changed.tsq.unwrap().l, Duration::from_millis(40));
        assert!(changed.aqm.values().contains(&("q-ref", ParameterValue::Number(50.0))));
        let own = spec(reverse(Some("fq-codel"), &[], None));
        assert_eq!((own.aqm.name(), own.tsq, own.limit), ("fq-codel", None, Limit::Packets(9)));
        let no_tsq = reverse(Some("codel"), &[], Some("")).spec(&forward, rate);
        assert!(refusal(no_tsq).contains("a queue of its own"));
    }

    /// Without options no sparse flow waits behind the others, at any rate.
    #[test]
    fn without_a_name_the_queue_is_sieve() {
        let rate = Rate::from_mbps(2);
        let default = |tsq| QueueArgs { aqm: None, limit: None, ..args("", &[], tsq) };
        let spec = default(None).spec(rate).unwrap();
        assert_eq!((spec.aqm.name(), spec.tsq, spec.limit), ("sieve", None, Limit::Packets(1000)));
        assert_eq!(spec.standing_delay(), None);
        // Four times a third of 100 ms of packets of 1500 B.
        assert_eq!(default(None).spec(Rate::from_mbps(900)).unwrap().limit, Limit::Packets(10_000));
        let rtt = Duration::from_millis(20);
        let near = QueueArgs { rtt: Some(rtt), ..default(None) };
        assert!(near.spec(rate).unwrap().aqm.values().contains(&("rtt", ParameterValue::Duration(rtt))));
        assert!(
            refusal(QueueArgs { rtt: Some(rtt), ..args("pie", &[], None) }.spec(rate))
                .contains("--rtt is for sieve")
        );
        assert_eq!(reverse(Some("codel"), &[], None).spec(&near, rate).unwrap().aqm.name(), "codel");
        let spec = default(Some("")).spec(rate).unwrap();
        assert_eq!((spec.aqm.name(), spec.tsq.is_some()), ("pie", true));
        let reverse = reverse(None, &[], Some("")).spec(&default(None), rate).unwrap();
        assert_eq!((reverse.aqm.name(), reverse.tsq.is_some()), ("pie", true));
    }

    fn refusal(result: Result<QueueSpec, Failure>) -> String {
        let Err(Failure::Usage(message)) = result else { panic!("{result:?} is refused as wrong usage") };
        message
    }

    #[test]
    fn limits_are_packets_or_bytes() {
        assert_eq!((limit("5 packets"), limit("64 KB")), (Ok(Limit::Packets(5)), Ok(Limit::Bytes(64_000))));
    }

    #[test]
    fn parameters_are_written_with_or_without_their_unit() {
        let rate = Rate::from_mbps(15);
        let spec = args("pi", &["q-ref=100", "frequency=160 Hz"], Some("l=60ms,bits=3")).spec(rate).unwrap();
        let set = spec.aqm.values();
        assert!(set.contains(&("q-ref", ParameterValue::Number(100.0))), "{set:?}");
        let tsq = spec.tsq.unwrap();
        assert_eq!((tsq.bits, tsq.l), (3, Duration::from_millis(60)));
        assert_eq!(args("pi", &["q-ref=100 packets"], None).spec(rate).unwrap().tsq, None);
    }

    /// Every default can be given as `cutline aqm show` prints it.
    #[test]
    fn every_default_can_be_set() {
        for aqm in registry::describe() {
            for parameter in &aqm.parameters {
                let Parameter { name, default, .. } = *parameter;
                let read = parameter::parse(parameter, &parameter.default_text());
                assert_eq!(read.as_ref(), Ok(default), "{name}");
            }
        }
    }

    #[test]
    fn misspelt_arguments_are_named() {
        let rate = Rate::from_mbps(15);
        assert!(refusal(args("fq-codl", &[], None).spec(rate)).contains("did you mean fq-codel"));
        assert!(
            refusal(args("pi", &["qref=1"], None).spec(rate))
                .contains("pi has no parameter \"qref\"; it has: ")
        );
        // A parameter of another AQM is explained as in a scenario's file.
        let said = refusal(args("pie", &["interval=100ms"], None).spec(rate));
        assert!(said.starts_with("pie has no parameter \"interval\", which is for aqm = "), "{said}");
        assert!(said.contains(", and here aqm = \"pie\"; it has: "), "{said}");
        assert!(refusal(args("pi", &["a=x"], None).spec(rate)).starts_with("a = x: allowed is "));
        assert!(refusal(args("codel", &[], Some("")).spec(rate)).contains("a queue of its own"));
    }

    #[test]
    fn a_range_of_rates_must_contain_the_rate() {
        let range = rate_range("5Mbit..60Mbit").unwrap();
        assert_eq!(range, Rate::from_mbps(5)..=Rate::from_mbps(60));
        assert!(rate_range("5Mbit").is_err() && rate_range("5Mbit..x").is_err());
        let args = |reverse, reflectors: &[&str]| AutorateArgs {
            autorate: None,
            reverse_autorate: reverse,
            reflector: reflectors.iter().map(|address| address.parse().unwrap()).collect(),
            autorate_delay: Duration::from_millis(15),
        };
        let rates = [Rate::from_mbps(20), Rate::from_mbps(2)];
        let why = |args: &AutorateArgs| match args.spec(rates) {
            Err(Failure::Usage(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(
            why(&args(Some(range), &["192.0.2.1"])).starts_with("--reverse-autorate: the rate is 2 Mbit/s")
        );
        assert!(why(&args(None, &["192.0.2.1"])).contains("neither is given"));
        let range = Rate::from_mbps(1)..=Rate::from_mbps(4);
        let (ranges, spec) = args(Some(range.clone()), &["192.0.2.1"]).spec(rates).unwrap();
        assert_eq!((ranges, spec.map(|spec| spec.reflectors.len())), ([None, Some(range)], Some(1)));
    }

    #[test]
    fn code_points_by_name() {
        let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        let code_points = CodePoints { hint: texts(&["EF=4", "12=9"]), remark: texts(&["CS1=LE"]) };
        let (hints, remark) = code_points.tables().unwrap();
        let dscp = |name: &str| name.parse::<Dscp>().unwrap();
        assert_eq!((hints.hint(dscp("EF")).level(), hints.hint(dscp("AF12")).level()), (4, 9));
        assert_eq!(remark.remark(dscp("CS1")), dscp("LE"));
        for wrong in ["EF", "EF=17", "EF=x", "EG=1"] {
            assert!(CodePoints { hint: texts(&[wrong]), remark: Vec::new() }.tables().is_err(), "{wrong}");
        }
    }
}

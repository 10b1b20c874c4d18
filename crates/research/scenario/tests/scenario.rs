//! Tests of valid scenarios: values, defaults, expansion, overrides and sweeps.

use cutline_aqm::{AqmSpec, Limit};
use cutline_quality::Class;
use cutline_quality::Perspective;
use cutline_results::RunResult;
use cutline_scenario::spec::{ClassSpec, DistributionsOf, StartSpec, Topology};
use cutline_scenario::{Scenario, ScenarioFile, saturated_distributions};
use cutline_sim::{Simulation, SimulationOutcome};
use cutline_transport::{app, tcp};
use cutline_units::{Bytes, Distribution, Duration, Ecn, HintBits, Instant, Rate};
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;

const AUDIO: &str = r#"
name = "audio"
title = "One audio conference among 99 file transfers"
duration = "100 s"
warm-up = "20 s"
seeds = 10
interval = "300 ms"

[dumbbell]
rate = "15 Mbit/s"
delay = "50 ms"
access-rate = "50 Mbit/s"
access-delay = "50 ms"
rate-changes = [{ at = "30 s", rate = "10 Mbit/s" }]

[dumbbell.queue]
aqm = "pi"
limit = "800 packets"
a = 1.9e-5
tsq = { l = "40 ms", max-ratio = 100 }

[[flow]]
name = "bulk"
count = 99
class = "file-transfer"
file-size = "1024 kbit"
start = { from = "0 s", to = "1 s" }
transport = { protocol = "tcp", max-window = "20 packets", initial-ssthresh = "none", delayed-ack = true }
app = { kind = "bulk" }

[[flow]]
name = "audio"
class = "audio"
hint = 6
transport = { protocol = "tfrc", packet-size = "160 B" }
app = { kind = "cbr", rate = "128 kbit/s", size = "160 B" }
series = false
"#;

const GRAPH: &str = r#"
name = "two-bottlenecks"
duration = "10 s"
node = [{ name = "a" }, { name = "b" }, { name = "c" }]

[queue.router]
aqm = "drop-tail"
limit = "64 KiB"
ecn = false

[[link]]
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "5 ms"
queue = "router"

[[link]]
name = "last"
from = "b"
to = "c"
rate = "2 Mbit/s"
delay = "20 ms"
both-ways = false

[[flow]]
name = "game"
from = "a"
to = "c"
class = "game"
perspective = "third-person"
transport = { protocol = "udp" }
app = { kind = "talk-spurt", rate = "64 kbit/s", size = "160 B" }

[[flow]]
name = "web"
from = "b"
to = "a"
class = "web"
stop = "5 s"
transport = { protocol = "tcp", congestion-control = "cubic", defaults = "ns-2" }
app = { kind = "request-response", object = { distribution = "lognormal", median = "12 KB", sigma = 1.3 }, think-time = "2 s" }
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml").unwrap_or_else(|errors| panic!("{}", errors.render()))
}

fn file(text: &str) -> ScenarioFile {
    ScenarioFile::parse(text, "test.toml").unwrap()
}

#[test]
fn a_dumbbell_is_read_with_its_values() {
    let scenario = scenario(AUDIO);
    assert_eq!(
        (scenario.duration, scenario.measure_until),
        (Duration::from_secs(100), Duration::from_secs(100))
    );
    assert_eq!((scenario.warm_up, scenario.interval), (Duration::from_secs(20), Duration::from_millis(300)));
    assert_eq!(scenario.all_seeds().collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    assert_eq!(scenario.hint_bits, HintBits::PAPER);
    let Topology::Dumbbell(dumbbell) = &scenario.topology else { panic!("it is a dumbbell") };
    assert_eq!((dumbbell.rate, dumbbell.access_rate), (Rate::from_mbps(15), Rate::from_mbps(50)));
    let queue = &dumbbell.queue;
    assert_eq!((queue.aqm.name(), queue.limit, queue.ecn), ("pi", Limit::Packets(800), true));
    let AqmSpec::Pi(pi) = &queue.aqm else { panic!("it is PI") };
    assert_eq!((pi.a, pi.q_ref), (1.9e-5, 200.0), "a default is filled in");
    let tsq = queue.tsq.unwrap();
    assert_eq!((tsq.bits, tsq.l, tsq.max_ratio), (4, Duration::from_millis(40), Some(100.0)));
    assert_eq!((dumbbell.reverse_queue.aqm.name(), dumbbell.reverse_queue.limit), ("drop-tail", queue.limit));
    assert_eq!(dumbbell.access_queue.limit, Limit::Packets(1000));
    assert_eq!(dumbbell.rate_changes[0].rate, Rate::from_mbps(10));
}

#[test]
fn flows_are_read_with_their_defaults() {
    let scenario = scenario(AUDIO);
    let [bulk, audio] = &scenario.flows[..] else { panic!("there are two groups") };
    assert_eq!(bulk.class, ClassSpec::FileTransfer { file_size: Bytes::new(128_000) });
    assert_eq!((bulk.count, bulk.hint.level(), bulk.ecn, bulk.stop), (99, 16, Ecn::NotEct, None));
    assert_eq!(bulk.start, StartSpec::Uniform { from: Duration::ZERO, to: Duration::from_secs(1) });
    assert_eq!(bulk.transport.given, ["max-window", "initial-ssthresh", "delayed-ack"]);
    let expected = tcp::Params {
        max_window: Some(20),
        initial_ssthresh: None,
        delayed_ack: Some(Duration::from_millis(200)),
        ..tcp::Params::default()
    };
    assert_eq!(bulk.transport.tcp(), Some(&expected));
    assert_eq!((bulk.app.clone(), bulk.series), (app::Params::BULK, true));
    assert_eq!((audio.hint.level(), audio.series, audio.distributions), (6, false, DistributionsOf::Flow));
    let cbr = app::CbrParams::new(Rate::from_kbps(128), Bytes::new(160));
    assert_eq!(audio.app, app::Params::Cbr(cbr));
}

#[test]
fn many_flows_store_no_series_by_default() {
    let mut file = file(AUDIO);
    file.set("flow.bulk.count", "200").unwrap();
    let scenario = file.scenario().unwrap();
    assert!(!scenario.flows[0].series);
    assert_eq!(scenario.flows[0].distributions, DistributionsOf::Group);
}

#[test]
fn a_group_may_be_empty() {
    let mut file = file(AUDIO);
    file.set("flow.bulk.count", "0").unwrap();
    let scenario = file.scenario().unwrap();
    assert_eq!((scenario.flow_count(), scenario.nonempty_groups().count()), (1, 1));
    let flows: Vec<_> = scenario.flow_instances().collect();
    assert_eq!((flows[0].name.as_str(), flows[0].from.as_str(), flows[0].group), ("audio", "s1", 1));
    // What only the laboratory has is refused of groups with flows alone.
    let mut file = self::file(GRAPH);
    file.set("link.last.both-ways", "true").unwrap();
    file.set("flow.web.program", "dirm").unwrap();
    file.set("flow.web.count", "0").unwrap();
    assert_eq!(file.scenario().unwrap().check_simulated(), Ok(()));
    file.set("flow.web.count", "1").unwrap();
    let refused = file.scenario().unwrap().check_simulated().unwrap_err();
    assert!(refused.to_string().starts_with("flow.web: program is available only"), "{refused}");
}

#[test]
fn a_dumbbell_expands_to_a_pair_of_hosts_per_flow() {
    let scenario = scenario(AUDIO);
    let graph = scenario.graph();
    assert_eq!((graph.nodes.len(), graph.links.len()), (2 + 2 * 100, 2 + 4 * 100));
    assert_eq!((graph.links[0].name.as_str(), graph.links[0].rate_changes.len()), ("r1->r2", 1));
    assert_eq!((graph.links[1].name.as_str(), graph.links[1].rate_changes.len()), ("r2->r1", 0));
    let flows: Vec<_> = scenario.flow_instances().collect();
    let ends =
        |i: usize| (flows[i].name.as_str(), flows[i].from.as_str(), flows[i].to.as_str(), flows[i].group);
    assert_eq!(ends(0), ("bulk.1", "s1", "d1", 0));
    assert_eq!(ends(98), ("bulk.99", "s99", "d99", 0));
    assert_eq!(ends(99), ("audio", "s100", "d100", 1));
    assert!(
        flows.iter().all(|flow| graph.reaches(&flow.from, &flow.to) && graph.reaches(&flow.to, &flow.from))
    );
    assert!(graph.reaches("s1", "d2") && !graph.reaches("s1", "nowhere"));
}

#[test]
fn a_graph_is_read_with_its_values() {
    let scenario = scenario(GRAPH);
    let graph = scenario.graph();
    let names: Vec<&str> = graph.links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names, ["a->b", "b->a", "b->c"]);
    assert_eq!((graph.links[0].queue.limit, graph.links[0].queue.ecn), (Limit::Bytes(65_536), false));
    assert_eq!(graph.links[2].queue.limit, Limit::Packets(1000));
    let [game, web] = &scenario.flows[..] else { panic!("there are two flows") };
    assert_eq!(game.ends, Some(("a".to_owned(), "c".to_owned())));
    assert_eq!(game.class, ClassSpec::Game { perspective: Perspective::ThirdPerson });
    let app::Params::TalkSpurt(speaker) = &game.app else { panic!("it talks") };
    assert_eq!((speaker.talk, speaker.silence), (Duration::from_millis(1004), Duration::from_millis(1587)));
    let app::Params::RequestResponse(pages) = &web.app else { panic!("it reads") };
    assert_eq!(pages.object, Distribution::Lognormal { median: 12_000.0, sigma: 1.3 });
    assert_eq!((pages.embedded, pages.request_delay), (Distribution::Fixed(0.0), Duration::ZERO));
    assert_eq!(pages.think_time, Distribution::Fixed(2.0));
    assert_eq!(web.class, ClassSpec::Web { page_size: Bytes::new(100_000) });
    assert_eq!(web.stop, Some(Duration::from_secs(5)));
}

#[test]
fn linux_has_every_congestion_control_by_its_name_but_newreno() {
    for control in tcp::congestion_controls() {
        let mut file = file(GRAPH);
        file.set_pair(&format!("flow.web.transport.congestion-control={}", control.name)).unwrap();
        if control.scalable {
            file.set_pair("flow.web.ecn=true").unwrap();
        }
        let asked = file.scenario().unwrap().flows[1].transport.linux_congestion_control();
        assert_eq!(asked, Some(if control.name == "newreno" { "reno" } else { control.name }));
    }
}

#[test]
fn overrides_take_values_with_and_without_quotes() {
    let mut file = file(GRAPH);
    for pair in [
        "link.last.rate=3 Mbit/s",
        "link.a-b.delay = \"7 ms\"",
        "flow.web.transport.sack=true",
        "queue.router.limit=9 packets",
    ] {
        file.set_pair(pair).unwrap();
    }
    let scenario = file.scenario().unwrap();
    let links = scenario.graph().links;
    assert_eq!((links[2].rate, links[0].delay), (Rate::from_mbps(3), Duration::from_millis(7)));
    assert_eq!(links[0].queue.limit, Limit::Packets(9));
    assert!(scenario.flows[1].transport.tcp().is_some_and(|tcp| tcp.sack));
    assert_eq!(file.overrides()[0], ("link.last.rate".to_owned(), "3 Mbit/s".to_owned()));
    let set = file.overrides().len();
    assert!(file.set("name.of", "x").is_err());
    assert_eq!(file.overrides().len(), set, "a refused override is not recorded");
}

#[test]
fn an_override_is_checked_like_the_file_and_named_in_the_message() {
    let mut file = file(GRAPH);
    file.set("link.last.rate", "3 ms").unwrap();
    file.set("flow.web.hnt", "3").unwrap();
    let errors = file.scenario().unwrap_err();
    let said: Vec<String> = errors.problems().iter().map(ToString::to_string).collect();
    assert!(
        said[0].starts_with("--set link.last.rate=3 ms: key \"link.last.rate\": value 3 ms is not allowed"),
        "{said:?}"
    );
    assert_eq!(
        said[1],
        "--set flow.web.hnt=3: key \"flow.web.hnt\" is not known here: did you mean \"hint\"?"
    );
    let error = file.set("flow.wbe.hint", "3").unwrap_err().to_string();
    assert_eq!(
        error,
        "--set flow.wbe.hint=3: key \"flow.wbe.hint\": there is no flow \"wbe\", did you mean \"web\"?"
    );
    let error = file.set_pair("seeds").unwrap_err().to_string();
    assert_eq!(error, "--set seeds: expected KEY=VALUE such as flow.audio.hint=6");
}

#[test]
fn another_aqm_takes_away_what_it_does_not_have() {
    let queue = |scenario: &Scenario| match &scenario.topology {
        Topology::Dumbbell(dumbbell) => dumbbell.queue.clone(),
        Topology::Graph(_) => unreachable!("AUDIO is a dumbbell"),
    };
    let with = |settings: &[(&str, &str)]| {
        let mut file = file(AUDIO);
        for (path, value) in settings {
            file.set(path, value).unwrap();
        }
        file
    };
    // PI's a goes, TSQ stays where it can be, the limit stays.
    let pie = queue(&with(&[("dumbbell.queue.aqm", "pie")]).scenario().unwrap());
    assert_eq!((pie.aqm.name(), pie.limit), ("pie", Limit::Packets(800)));
    assert_eq!(pie.tsq, queue(&scenario(AUDIO)).tsq);
    let fq_codel = queue(&with(&[("dumbbell.queue.aqm", "fq-codel")]).scenario().unwrap());
    assert_eq!((fq_codel.aqm.name(), fq_codel.tsq), ("fq-codel", None));
    // Settings from outside must fit.
    let wrong = with(&[("dumbbell.queue.b", "1e-5"), ("dumbbell.queue.aqm", "pie")]).scenario().unwrap_err();
    assert!(wrong.to_string().contains("key \"dumbbell.queue.b\" is for aqm = \"pi\""), "{wrong}");
    // The same AQM changes nothing.
    let same = with(&[("dumbbell.queue.aqm", "pi")]).scenario().unwrap();
    assert_eq!(queue(&same), queue(&scenario(AUDIO)));
    // A sweep takes AQMs first, whatever its order, so their parameters stay.
    let text = format!(
        "{AUDIO}[[sweep.together]]\n\"dumbbell.queue.target\" = [\"15 ms\", \"5 ms\"]\n\"dumbbell.queue.aqm\" = [\"pie\", \"codel\"]\n"
    );
    let points = file(&text).expand().unwrap();
    let names: Vec<_> = points.iter().map(|point| queue(&point.scenario).aqm.name()).collect();
    assert_eq!(names, ["pie", "codel"]);
    assert_eq!(points[1].label(), "dumbbell.queue.target=5 ms,dumbbell.queue.aqm=codel");
}

#[test]
fn a_bad_sweep_hides_no_other_problem() {
    let text = AUDIO.replace("rate = \"15 Mbit/s\"", "rate = \"15 Mbit\"").replace("hint = 6", "hnt = 6");
    let text = format!("{text}[sweep]\n\"flow.audio.hint\" = []\n");
    let errors = file(&text).expand().unwrap_err();
    let keys: Vec<_> = errors.problems().iter().filter_map(|problem| problem.key.as_deref()).collect();
    assert_eq!(keys, ["dumbbell.rate", "flow.audio.hnt", "sweep.flow.audio.hint"]);
}

#[test]
fn a_sweep_is_the_product_of_its_keys_in_file_order() {
    let sweep = "\n[sweep]\n\"flow.audio.hint\" = { from = 1, to = 16, step = 5 }\ndumbbell.queue.tsq = [true, false]\n";
    let points = file(&format!("{AUDIO}{sweep}")).expand().unwrap();
    let labels: Vec<String> = points.iter().map(cutline_scenario::SweepPoint::label).collect();
    assert_eq!(labels.len(), 8);
    assert_eq!(labels[0], "flow.audio.hint=1,dumbbell.queue.tsq=true");
    assert_eq!(labels[3], "flow.audio.hint=6,dumbbell.queue.tsq=false");
    let queue = |i: usize| points[i].scenario.graph().links[0].queue.clone();
    assert_eq!(queue(2).tsq.unwrap().max_ratio, Some(100.0), "true does not change the table");
    assert_eq!(queue(3).tsq, None);
    assert_eq!(points[3].scenario.flows[1].hint.level(), 6);
}

#[test]
fn keys_can_vary_together() {
    let sweep = "\n[[sweep.together]]\n\"flow.audio.count\" = [1, 25]\n\"flow.bulk.count\" = [99, 75]\n\
                 [sweep]\n\"dumbbell.rate\" = [\"15 Mbit/s\", \"4 Mbit/s\"]\n";
    let points = file(&format!("{AUDIO}{sweep}")).expand().unwrap();
    let counts: Vec<_> =
        points.iter().map(|p| (p.scenario.flows[1].count, p.scenario.flows[0].count)).collect();
    assert_eq!(counts, [(1, 99), (1, 99), (25, 75), (25, 75)]);
    assert_eq!(points[3].label(), "flow.audio.count=25,flow.bulk.count=75,dumbbell.rate=4 Mbit/s");
}

#[test]
fn an_overridden_path_does_not_vary() {
    let sweep = "\n[[sweep.together]]\n\"dumbbell.queue.tsq\" = [true, true, false]\n\"flow.audio.hint\" = [1, 6, 16]\n\
                 [sweep]\n\"flow.audio.count\" = [1, 2]\n";
    let labels = |set: &[&str]| {
        let mut file = file(&format!("{AUDIO}{sweep}"));
        for pair in set {
            file.set_pair(pair).unwrap();
        }
        file.expand()
            .unwrap()
            .iter()
            .map(|point| (point.label(), point.scenario.flows[1].hint.level()))
            .collect::<Vec<_>>()
    };
    assert_eq!(labels(&[]).len(), 6);
    let point = |label: &str, hint| (label.to_owned(), hint);
    let with = "dumbbell.queue.tsq=true";
    let without = "dumbbell.queue.tsq=false";
    assert_eq!(labels(&["flow.audio.hint=3", "flow.audio.count=1"]), [point(with, 3), point(without, 3)]);
    let all = ["flow.audio.hint=3", "flow.audio.count=1", "dumbbell.queue.tsq=true"];
    assert_eq!(labels(&all), [point("base", 3)]);
    let other_values = [r#"sweep."flow.audio.count"=[3]"#, "flow.audio.hint=3", "dumbbell.queue.tsq=true"];
    assert_eq!(labels(&other_values), [point("flow.audio.count=3", 3)]);
}

#[test]
fn the_memory_of_a_sweep_grows_with_its_points() {
    let held = |points: u32| {
        let sweep = format!(
            "\n[sweep]\n\"flow.audio.start\" = {:?}\n",
            (0..points).map(|at| format!("{at} us")).collect::<Vec<_>>()
        );
        let file = file(&format!("{AUDIO}{sweep}"));
        let mut found = 0;
        let memory = allocation_counter::measure(|| found = file.expand().unwrap().len());
        assert_eq!(found, points as usize);
        memory.bytes_max
    };
    // Each point had the whole sweep while the others were made: 16 times as much.
    let (some, more) = (held(200), held(800));
    assert!(more < 5 * some, "200 points {some} B, 800 points {more} B");
}

#[test]
fn a_scenario_without_a_sweep_is_one_point() {
    let points = file(GRAPH).expand().unwrap();
    assert_eq!((points.len(), points[0].label().as_str()), (1, "base"));
    assert_eq!(points[0].scenario, scenario(GRAPH));
}

#[test]
fn a_run_id_ignores_comments_and_order_but_no_value() {
    let id = |text: &str, seed| scenario(text).run_id(seed, "1");
    let commented = GRAPH
        .replace("[queue.router]\naqm = \"drop-tail\"\n", "# a comment\n[queue.router]\n")
        .replace("limit = \"64 KiB\"\n", "limit = \"64 KiB\"\naqm = \"drop-tail\"\n");
    assert_eq!(id(GRAPH, 1), id(&commented, 1));
    assert_ne!(id(GRAPH, 1), id(GRAPH, 2));
    assert_ne!(id(GRAPH, 1), id(&GRAPH.replace("64 KiB", "65 KiB"), 1));
    assert_eq!(id(GRAPH, 1).len(), 16);
}

/// Every example of the guide is a complete, valid scenario.
#[test]
fn the_examples_of_the_guide_are_valid() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/guide/scenario.md");
    let guide = std::fs::read_to_string(path).expect("the guide exists");
    let examples: Vec<&str> =
        guide.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        file(example).expand().unwrap_or_else(|errors| panic!("{}", errors.render()));
    }
}

proptest! {
    /// A valid scenario with one changed character is read or refused, without a panic.
    #[test]
    fn a_changed_character_causes_no_panic(at in 0..AUDIO.len(), with in "[\\PC\n]{0,3}") {
        let mut text = AUDIO.to_owned();
        text.replace_range(at..=at, &with);
        let _ = ScenarioFile::parse(&text, "slip.toml").and_then(|file| file.expand()).map_err(|errors| errors.render());
    }

    /// An arbitrary override is accepted or refused, without a panic.
    #[test]
    fn an_override_causes_no_panic(path in "(flow|link|queue|dumbbell|node|sweep|[a-z]{1,4})(\\.[a-z.\\[\\]0-9]{0,8}){0,3}", value in "\\PC{0,12}") {
        let mut file = file(GRAPH);
        if file.set(&path, &value).is_ok() {
            let _ = file.expand().map_err(|errors| errors.render());
        }
    }
}

/// TSQ section 4: the delay in Q is propagation and queuing. At 64 kbit/s the time on the wire is 125 ms a packet.
#[test]
fn quality_takes_the_delay_that_the_scenario_names() {
    const SLOW: &str = r#"
name = "slow"
duration = "20 s"
dumbbell = { rate = "64 kbit/s", delay = "50 ms", access-rate = "50 Mbit/s", access-delay = "50 ms", queue = { aqm = "drop-tail", limit = "10 packets" } }

[[flow]]
name = "audio"
class = "audio"
transport = { protocol = "udp", header = "0 B" }
app = { kind = "cbr", rate = "32 kbit/s", size = "1000 B" }
"#;
    let flow = |key: &str| {
        let scenario = scenario(&format!("{key}\n{SLOW}"));
        scenario.simulate(1, &AtomicBool::new(false)).unwrap().flows.remove(0)
    };
    let judged = |ms: f64| Some(Class::Audio.delay_quality(Duration::from_secs_f64(ms * 1e-3)).get());
    let paper = flow(r#"quality-delay = "propagation-and-queuing""#);
    assert_eq!(paper.qd, judged(150.0 + paper.queuing_mean_ms.unwrap()), "three links of 50 ms");
    for own in [flow(""), flow(r#"quality-delay = "one-way""#)] {
        assert_eq!(own.qd, judged(own.one_way_mean_ms.unwrap()));
        assert!(own.qd.unwrap() < paper.qd.unwrap() - 0.2, "{:?} {:?}", own.qd, paper.qd);
        assert_eq!((own.queuing_mean_ms, own.qt), (paper.queuing_mean_ms, paper.qt));
    }
}

/// At 15 Mbit/s 40 ms are 75 packets of 1000 B, and 20 ms are 75 packets of 500 B.
#[test]
fn a_length_as_a_time_is_that_length() {
    let rows = |queue: &str| {
        let queue = format!("aqm = \"pi\"\nq-ref = {queue}");
        let text = AUDIO.replace("aqm = \"pi\"", &queue).replace("100 s", "8 s").replace("20 s", "2 s");
        scenario(&text).simulate(1, &AtomicBool::new(false)).unwrap().queues
    };
    assert_eq!(rows("\"40 ms\""), rows("\"75 packets\""));
    assert_eq!(rows("\"20 ms\"\nmean-packet = \"500 B\""), rows("\"75 packets\"\nmean-packet = \"500 B\""));
    assert_ne!(rows("\"20 ms\""), rows("\"40 ms\""));
}

/// Thresholds that contradict each other only at the link's rate: the error names link, key and range.
#[test]
fn a_time_that_is_no_length_at_the_rate_is_refused() {
    let text =
        AUDIO.replace("aqm = \"pi\"\n", "aqm = \"red\"\nmax-th = \"1 ms\"\n").replace("a = 1.9e-5\n", "");
    let refused = scenario(&text).check_simulated().unwrap_err().to_string();
    assert!(
        refused.contains("r1->r2") && refused.contains("max-th = 1.875: allowed is more than min-th = 5"),
        "{refused}"
    );
}

/// The record is beside the scenario file, and another record is another run.
#[test]
fn a_links_rate_may_follow_a_record() {
    let folder = tempfile::tempdir().unwrap();
    let (file, record) = (folder.path().join("mobile.toml"), folder.path().join("drive.down"));
    let keyed = AUDIO
        .replace("rate-changes = [{ at = \"30 s\", rate = \"10 Mbit/s\" }]", "rate-trace = \"drive.down\"");
    std::fs::write(&file, &keyed).unwrap();
    let load = || ScenarioFile::load(&file).unwrap().scenario();
    assert!(load().unwrap_err().to_string().contains("drive.down: No such file"));
    let write = |every: u64| {
        let lines: String = (1..=1000).map(|number| (number * every).to_string() + "\n").collect();
        std::fs::write(&record, lines).unwrap();
        load().unwrap_or_else(|errors| panic!("{errors}"))
    };
    let (fast, slow) = (write(1), write(2));
    let Topology::Dumbbell(dumbbell) = &slow.topology else { panic!("it is a dumbbell") };
    assert_eq!(dumbbell.rate_changes.len(), 1000, "a change each 100 ms of 100 s");
    assert!(dumbbell.rate_changes.iter().all(|change| change.rate == Rate::from_mbps(6)));
    assert_ne!(fast.run_id(1, "v"), slow.run_id(1, "v"));
    assert_eq!(slow.run_id(1, "v"), write(2).run_id(1, "v"));
    let graph = GRAPH.replacen("rate = ", "rate-trace = \"drive.down\"\nrate = ", 1);
    std::fs::write(&file, graph).unwrap();
    assert!(load().is_ok(), "a link of a graph may, too");
    let both = keyed.replace(
        "[dumbbell.queue]",
        "rate-changes = [{ at = \"30 s\", rate = \"10 Mbit/s\" }]\n[dumbbell.queue]",
    );
    std::fs::write(&file, both).unwrap();
    assert!(load().unwrap_err().to_string().contains("use one of them"));
}

/// A queue that no packet fits into is allowed, and hardly meant.
#[test]
fn a_queue_smaller_than_a_packet_is_a_warning() {
    let warnings = |text: &str| {
        let file = ScenarioFile::parse(text, "small.toml").unwrap_or_else(|errors| panic!("{errors}"));
        file.scenario().unwrap_or_else(|errors| panic!("{errors}")).warnings()
    };
    let text = |limit: &str, app: &str, reverse: &str| {
        format!(
            "name = \"small\"\nduration = \"9 s\"\n[dumbbell]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\naccess-rate = \"9 Mbit/s\"\n\
             access-delay = \"1 ms\"\nqueue = {{ aqm = \"drop-tail\", limit = \"{limit}\" }}\n{reverse}\n[[flow]]\nname = \"data\"\ncount = 3\n{app}"
        )
    };
    let bulk = "transport = { protocol = \"tcp\", mss = \"1460 B\" }\napp = { kind = \"bulk\" }";
    assert_eq!(
        warnings(&text("1400 B", bulk, "")),
        ["the queue of r1->r2 holds 1400 B, and the packets of data have 1500 B: it drops all of them"]
    );
    let small_reverse = "reverse-queue = { aqm = \"drop-tail\", limit = \"30 B\" }";
    let found = warnings(&text("1500 B", bulk, small_reverse));
    assert_eq!(
        found,
        ["the queue of r2->r1 holds 30 B, and the replies of data have 40 B: it drops all of them"]
    );
    let small_access = "access-queue = { aqm = \"drop-tail\", limit = \"1 KB\" }";
    assert_eq!(warnings(&text("1500 B", bulk, small_access)).len(), 1, "once, not for each flow and side");
    let call = "transport = { protocol = \"udp\" }\napp = { kind = \"cbr\", rate = \"64 kbit/s\", size = \"160 B\" }";
    assert!(warnings(&text("200 B", call, "")).is_empty(), "188 B fit");
    assert_eq!(warnings(&text("187 B", call, "")).len(), 1);
    assert!(warnings(&text("1 packets", bulk, "")).is_empty(), "a packet fits");
}

/// A bucket of a distribution has a count of 32 bits.
#[test]
fn a_distribution_with_a_full_bucket_is_a_warning() {
    let text = format!("{AUDIO}\n").replace("duration = \"100 s\"", "duration = \"22 s\"");
    let text = text.replace("rate-changes = [{ at = \"30 s\", rate = \"10 Mbit/s\" }]", "");
    let scenario = Scenario::parse(&text, "audio.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let network = scenario.network().unwrap();
    let mut simulation = Simulation::new(&network, &scenario.settings(1)).unwrap();
    simulation.advance(Instant::FAR_FUTURE);
    let mut outcome = simulation.finish();
    let warnings = |outcome: &SimulationOutcome| {
        saturated_distributions(&scenario.rows(&network, outcome).distributions)
    };
    assert!(warnings(&outcome).is_empty());
    outcome.links[0].unwaited = 1 << 32;
    let found = warnings(&outcome);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("delay_ms of the queue r1->r2 has 4294967295 values in a bucket"), "{found:?}");
}

const CELLS: &str = r#"
name = "cells"
duration = "20 s"
node = [{ name = "a" }, { name = "b" }]

[[link]]
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "1 ms"
aal5 = { encapsulation = "0 B" }
impairment = { loss = 1e-4, unit = "cell" }

[[flow]]
name = "direct"
from = "a"
to = "b"
transport = { protocol = "udp", max-datagram = "9148 B", header = "0 B" }
app = { kind = "cbr", rate = "5 Mbit/s", size = "9148 B" }
"#;

#[test]
fn links_of_atm_carry_both_directions_in_cells() {
    let scenario = scenario(CELLS);
    let network = scenario.network().unwrap();
    assert_eq!(network.links().len(), 2);
    let outcome = cutline_sim::run(&network, &scenario.settings(1)).unwrap();
    let totals = &outcome.flows[0].record.totals;
    // 1.89 % of blocks with 191 cells.
    let share = totals.dropped as f64 / totals.sent as f64;
    assert!((0.005..0.04).contains(&share), "{share}");
    let busy = outcome.links[0].utilisation;
    assert!((busy - 0.5 * 10_123.0 / 9148.0).abs() < 0.01, "{busy}");
}

/// A scenario of four transfers and a call beside another transfer, with these keys of the four and of the call.
fn beside_a_transfer(aqm: &str, keys: &str) -> Scenario {
    let transfer = "transport = { protocol = \"tcp\", defaults = \"linux\" }\napp = { kind = \"bulk\" }";
    let text = format!(
        "name = \"tunnel\"\nduration = \"20 s\"\nwarm-up = \"5 s\"\n[dumbbell]\nrate = \"10 Mbit/s\"\ndelay = \"19 ms\"\n\
         access-rate = \"1 Gbit/s\"\naccess-delay = \"1 ms\"\nqueue = {{ aqm = \"{aqm}\", limit = \"1000 packets\" }}\n\
         [[flow]]\nname = \"inside\"\ncount = 4\n{keys}\n{transfer}\n\
         [[flow]]\nname = \"call\"\n{keys}\ntransport = {{ protocol = \"udp\" }}\n\
         app = {{ kind = \"cbr\", rate = \"64 kbit/s\", size = \"160 B\" }}\n\
         [[flow]]\nname = \"outside\"\n{transfer}\n"
    );
    ScenarioFile::parse(&text, "tunnel.toml").unwrap().scenario().unwrap()
}

/// The flows of a tunnel wait for each other, and have one share together.
#[test]
fn queues_see_a_tunnel_as_one_flow() {
    for aqm in ["fq-codel", "cake", "sieve"] {
        let [alone, together] = ["", "tunnel = \"vpn\""].map(|keys| {
            let scenario = beside_a_transfer(aqm, keys);
            scenario.simulate(1, &AtomicBool::new(false)).unwrap()
        });
        let rate = |result: &RunResult, group: &str| {
            let flows = result.flows.iter().filter(|flow| &*flow.group == group);
            flows.map(|flow| flow.goodput_bps).sum::<f64>()
        };
        let shares = [&alone, &together].map(|result| rate(result, "outside") / rate(result, "inside"));
        assert!(shares[0] < 0.4, "{aqm}: one of five flows has {} of the others' rate", shares[0]);
        assert!((0.75..1.35).contains(&shares[1]), "{aqm}: {}", shares[1]);
        let waits = [&alone, &together].map(|result| {
            result.flows.iter().find(|flow| &*flow.flow == "call").unwrap().queuing_mean_ms.unwrap()
        });
        assert!(waits[1] > 2.0 * waits[0], "{aqm}: {waits:?} ms");
    }
}

//! Links whose rate changes: their traffic, in a dumbbell and in a graph, by changes and by a record.

use cutline_results::RunResult;
use cutline_scenario::ScenarioFile;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

/// A network with one link whose course of rates is `course`, as a dumbbell or as a graph.
fn scenario(graph: bool, course: &str, flow: &str) -> String {
    let head = "name = \"course\"\nduration = \"40 s\"\n";
    let network = if graph {
        format!(
            "[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"12 Mbit/s\"\n\
             delay = \"12 ms\"\nqueue = {{ aqm = \"drop-tail\", limit = \"100 packets\" }}\n{course}\n"
        )
    } else {
        format!(
            "[dumbbell]\nrate = \"12 Mbit/s\"\ndelay = \"10 ms\"\naccess-rate = \"1 Gbit/s\"\naccess-delay = \"1 ms\"\n\
             queue = {{ aqm = \"drop-tail\", limit = \"100 packets\" }}\n{course}\n"
        )
    };
    let ends = if graph { "from = \"a\"\nto = \"b\"\n" } else { "" };
    format!(
        "{head}{network}\n[[flow]]\nname = \"data\"\n{ends}transport = {{ protocol = \"udp\" }}\n{flow}\n"
    )
}

/// A flow that sends more than the link carries, in datagrams of this size on the wire.
fn saturating(wire_bytes: u32) -> String {
    format!(
        "app = {{ kind = \"cbr\", rate = \"20 Mbit/s\", size = \"{} B\", random-phase = false }}",
        wire_bytes - 28
    )
}

/// One datagram of 1500 B on the wire, at 9.5 s.
const SPARSE: &str = "start = \"9.5 s\"\nstop = \"9.6 s\"\n\
    app = { kind = \"cbr\", rate = \"11.776 kbit/s\", size = \"1472 B\", random-phase = false }";

fn run(folder: &Path, text: &str) -> RunResult {
    let file = folder.join("course.toml");
    std::fs::write(&file, text).unwrap();
    let scenario = ScenarioFile::load(&file).unwrap().scenario();
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    scenario.simulate(1, &AtomicBool::new(false)).unwrap_or_else(|error| panic!("{error}"))
}

/// A folder with a record of 12 Mbit/s for 5 s and an outage for 5 s, which is 6 Mbit/s in the mean.
fn outage() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut record = String::new();
    for time in (1..=5000).chain([10_000]) {
        writeln!(record, "{time}").unwrap();
    }
    std::fs::write(folder.path().join("outage.txt"), record).unwrap();
    folder
}

const CHANGES: &str = "rate-changes = [{ at = \"5 s\", rate = \"2400 bit/s\" }, { at = \"10 s\", rate = \"12 Mbit/s\" }, \
    { at = \"15 s\", rate = \"2400 bit/s\" }, { at = \"20 s\", rate = \"12 Mbit/s\" }, { at = \"25 s\", rate = \"2400 bit/s\" }, \
    { at = \"30 s\", rate = \"12 Mbit/s\" }, { at = \"35 s\", rate = \"2400 bit/s\" }]";

const COURSES: [&str; 3] =
    ["rate-trace = \"outage.txt\"", CHANGES, "rate-trace = \"outage.txt\"\nrate-trace-as = \"deliveries\""];

/// The packet is on the wire when the rate rises. Its rest continues at the new rate: 512 ms, not 5012.
#[test]
fn a_packet_at_the_end_of_an_outage_arrives_soon_after_it() {
    let folder = outage();
    for (graph, course) in [false, true].into_iter().flat_map(|graph| COURSES.map(|course| (graph, course))) {
        let result = run(folder.path(), &scenario(graph, course, SPARSE));
        let delay = result.flows[0].one_way_mean_ms.expect("it arrives");
        assert!((511.0..513.1).contains(&delay), "{delay} ms, graph {graph}, {course}");
    }
}

/// Under saturation the link delivers the bytes of its course, whatever the size of its packets, and is used all the time.
#[test]
fn a_busy_link_delivers_the_bytes_of_its_course() {
    let folder = outage();
    for graph in [false, true] {
        for course in COURSES {
            for wire_bytes in [64, 600, 1000, 1472, 1500] {
                let result = run(folder.path(), &scenario(graph, course, &saturating(wire_bytes)));
                let queue = result
                    .queues
                    .iter()
                    .find(|queue| queue.link == "r1->r2".into() || queue.link == "a->b".into());
                let queue = queue.expect("the link has a queue");
                let bytes = result.flows[0].packets_received * u64::from(wire_bytes);
                let recorded = 4 * 5001 * 1500;
                let what = format!("{wire_bytes} B, graph {graph}, {course}");
                // The first packet comes after the link's first delivery, and the last ones are on their way.
                assert!(bytes <= recorded && recorded - bytes < 60_000, "{bytes} of {recorded}: {what}");
                assert!((0.995..=1.0).contains(&queue.utilisation), "{}: {what}", queue.utilisation);
            }
        }
    }
}

#[test]
fn a_way_to_follow_a_record_needs_a_record() {
    let folder = outage();
    let file = folder.path().join("course.toml");
    let refused = |course: &str| {
        std::fs::write(&file, scenario(false, course, SPARSE)).unwrap();
        ScenarioFile::load(&file).unwrap().scenario().unwrap_err().to_string()
    };
    let why = refused("rate-trace-as = \"deliveries\"");
    assert!(why.contains("add rate-trace = \"FILE\""), "{why}");
    let why = refused("rate-trace = \"outage.txt\"\nrate-trace-as = \"packets\"");
    assert!(why.contains("rates") && why.contains("deliveries"), "{why}");
}

/// Both ways are different runs, and so are two records with equal rates.
#[test]
fn the_run_id_depends_on_the_deliveries() {
    let folder = outage();
    let id = |course: &str| {
        let file = folder.path().join("course.toml");
        std::fs::write(&file, scenario(true, course, SPARSE)).unwrap();
        ScenarioFile::load(&file).unwrap().scenario().unwrap().run_id(1, "v")
    };
    let [rates, _, deliveries] = COURSES.map(id);
    assert_ne!(rates, deliveries);
    let record = std::fs::read_to_string(folder.path().join("outage.txt")).unwrap();
    std::fs::write(folder.path().join("outage.txt"), record.replacen("\n51\n", "\n50\n", 1)).unwrap();
    assert_ne!(deliveries, id(COURSES[2]), "one delivery is earlier by a millisecond");
}

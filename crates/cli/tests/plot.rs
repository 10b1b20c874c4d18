//! `cutline plot` and `cutline compare`: their output for stored results, and their messages about wrong options.
#![cfg(feature = "charts")]

use crate::common;

use crate::common::place::Place;
use cutline_testbed::{FolderFiles, read_folder, write_folder};
use serde_json::Value;
use std::fs;
use std::sync::OnceLock;

/// Returns a place with a copy of results. The first test that needs them makes them.
fn with_results(made: &OnceLock<FolderFiles>, make: impl FnOnce(&Place)) -> Place {
    let files = made.get_or_init(|| {
        let place = Place::new();
        make(&place);
        read_folder(&place.path(""))
    });
    let place = Place::new();
    write_folder(&place.path(""), files);
    place
}

/// A folder with results of two hints, and the same without TSQ.
fn measured() -> Place {
    static MADE: OnceLock<FolderFiles> = OnceLock::new();
    with_results(&MADE, |place| {
        let run = ["run", "small.toml", "--seeds", "3"];
        place.says(&run, 0);
        place.says(&[&run[..], &["--set", "name=without", "--set", "dumbbell.queue.tsq=false"]].concat(), 0);
    })
}

fn json(place: &Place, arguments: &[&str]) -> Value {
    let output = place.command(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn printed(place: &Place, arguments: &[&str]) -> String {
    let output = place.command(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The names of the series of a panel.
fn series(picture: &Value, panel: usize) -> Vec<&str> {
    let series = picture["panels"][panel]["series"].as_array().unwrap();
    series.iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn each_kind_draws_the_stored_results() {
    let place = measured();
    for (kind, panels) in [("overview", 4), ("cdf", 1), ("time", 4), ("sweep", 4), ("plane", 1)] {
        let picture = json(&place, &["plot", "results/small", "--kind", kind]);
        assert_eq!(picture["panels"].as_array().unwrap().len(), panels, "{kind}");
        let file = format!("{kind}.svg");
        assert_eq!(
            printed(&place, &["plot", "results/small", "--kind", kind, "-o", &file]),
            format!("{file}\n")
        );
        let svg = fs::read_to_string(place.path(&file)).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("<title"), "{kind}: {svg:.200}");
    }
    printed(&place, &["plot", "results/small", "--kind", "cdf", "-o", "cdf.png"]);
    printed(&place, &["plot", "results/small", "--kind", "cdf", "-o", "cdf.pdf"]);
    assert!(fs::read(place.path("cdf.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(fs::read(place.path("cdf.pdf")).unwrap().starts_with(b"%PDF"));
}

#[test]
fn a_sweep_has_the_means_that_run_prints() {
    let place = measured();
    let picture = json(&place, &["plot", "results/small", "--kind", "sweep", "--measure", "queuing_mean_ms"]);
    let points = picture["panels"][0]["series"][0]["points"].as_array().unwrap();
    let drawn: Vec<(f64, f64)> =
        points.iter().map(|dot| (dot["x"].as_f64().unwrap(), dot["y"].as_f64().unwrap())).collect();
    let compared = json(&place, &["compare", "results/small", "results/without"]);
    let mean = |hint: &str| {
        let is_it = |one: &&Value| {
            one["measure"] == "queuing_mean_ms"
                && one["name"] == "audio"
                && one["point"].as_str().unwrap().ends_with(hint)
        };
        compared["measures"].as_array().unwrap().iter().find(is_it).unwrap()["a"]["mean"].as_f64().unwrap()
    };
    assert_eq!(drawn, [(1.0, mean("=1")), (6.0, mean("=6"))]);
}

#[test]
fn a_distribution_ends_at_one_and_never_falls() {
    let place = measured();
    let picture = json(&place, &["plot", "results/small", "--kind", "cdf", "--point", "hint=6"]);
    assert_eq!(series(&picture, 0), ["audio"]);
    assert_eq!(picture["notes"], serde_json::json!(["All with hint 6."]));
    let points = picture["panels"][0]["series"][0]["points"].as_array().unwrap();
    let shares: Vec<f64> = points.iter().map(|dot| dot["y"].as_f64().unwrap()).collect();
    assert!(shares.is_sorted() && *shares.last().unwrap() == 1.0, "{shares:?}");
}

#[test]
fn the_rates_of_all_intervals_are_the_rate_of_the_run() {
    let place = measured();
    let picture = json(
        &place,
        &["plot", "results/small", "--kind", "time", "--measure", "goodput_bps", "--point", "hint=6"],
    );
    let points = picture["panels"][0]["series"][0]["points"].as_array().unwrap();
    let after_warm_up = points.iter().filter(|dot| dot["x"].as_f64().unwrap() >= 1.0);
    let rates: Vec<f64> = after_warm_up.map(|dot| dot["y"].as_f64().unwrap()).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    // One audio flow, alone on the link, gets its rate: 64 kbit/s, in kbit/s.
    assert!((mean - 64.0).abs() < 1.0, "{rates:?}");
}

#[test]
fn several_results_have_names_of_their_own() {
    let place = measured();
    let both = ["plot", "results/small", "results/without", "--kind", "plane", "--by", "hint"];
    assert_eq!(series(&json(&place, &both), 0), ["small", "without"]);
    // The same name twice: by their folders.
    place.says(&["run", "small.toml", "--seeds", "3", "--results", "again"], 0);
    let both = ["plot", "results/small", "again/small/summary.json", "--kind", "sweep", "--measure", "q"];
    assert_eq!(series(&json(&place, &both), 0), ["results/small, audio", "again/small, audio"]);
}

#[test]
fn errors_of_wrong_options_name_the_existing_ones() {
    let place = measured();
    let plot =
        |options: &[&str], code: i32| place.says(&[&["plot", "results/small"], options].concat(), code);
    for (options, parts) in [
        (
            &["--kind", "sweep", "--measure", "speed"][..],
            &["--measure speed", "goodput_bps", "utilisation"][..],
        ),
        (
            &["--kind", "time", "--measure", "queuing_p95_ms"],
            &["not a measure of intervals", "backlog_packets"],
        ),
        (&["--kind", "cdf", "--measure", "speed"], &["no distribution of speed", "queuing_ms"]),
        (&["--kind", "plane", "--measure", "q"], &["two measures"]),
        (&["--kind", "sweep", "--by", "rate"], &["--by rate", "flow.audio.hint"]),
        (&["--kind", "sweep", "--group", "video"], &["--group video", "audio", "r1->r2"]),
        (&["--point", "hint=7"], &["--point", "flow.audio.hint=1"]),
        (&["--measure", "q"], &["--kind"]),
        (&["-o", "picture.gif"], &["--output", "picture.gif", ".svg"]),
    ] {
        let said = plot(options, 2);
        for part in parts {
            assert!(said.contains(part), "{options:?}: no {part:?} in {said}");
        }
    }
    let said = place.says(&["plot", "results/nothing"], 2);
    assert!(said.contains("results/nothing has no summary.json"), "{said}");
}

#[test]
fn a_picture_that_exists_is_kept() {
    let place = measured();
    fs::write(place.path("small-cdf.svg"), "mine").unwrap();
    let said = place.says(&["plot", "results/small", "--kind", "cdf"], 1);
    assert!(said.contains("small-cdf.svg") && said.contains("--force"), "{said}");
    assert_eq!(fs::read_to_string(place.path("small-cdf.svg")).unwrap(), "mine");
    assert_eq!(printed(&place, &["plot", "results/small", "--kind", "cdf", "--force"]), "small-cdf.svg\n");
    assert!(fs::read_to_string(place.path("small-cdf.svg")).unwrap().starts_with("<svg"));
}

#[test]
fn damaged_tables_are_named() {
    let place = measured();
    fs::write(place.path("results/small/distributions.parquet"), "PAR1").unwrap();
    let said = place.says(&["plot", "results/small", "--kind", "cdf"], 1);
    assert!(said.contains("results/small/distributions.parquet is damaged"), "{said}");
}

#[test]
fn compare_shows_differing_or_selected_measures() {
    let place = measured();
    let compare = |options: &[&str]| {
        printed(&place, &[&["compare", "results/small", "results/without"], options].concat())
    };
    let rows = |text: &str| text.lines().filter(|line| line.starts_with("flow.audio.hint=")).count();
    let (differing, all) = (compare(&[]), compare(&["--all"]));
    assert!(rows(&all) > rows(&differing), "{all}{differing}");
    assert!(
        differing
            .contains(&format!("{} measures do not differ; --all shows them", rows(&all) - rows(&differing))),
        "{differing}"
    );
    let asked =
        compare(&["--group", "audio", "--measure", "q", "--measure", "loss_ratio", "--point", "hint=1"]);
    assert_eq!(rows(&asked), 2, "{asked}");
    let waits = compare(&["--group", "audio", "--measure", "queuing_ms"]);
    assert_eq!(rows(&waits), 2, "a quantity of distributions at two points: {waits}");
    for (options, part) in [
        (["--group", "video"], "expected one of: audio"),
        (["--measure", "speed"], "--measure speed: not a column"),
        (["--measure", "hint_centre"], "--measure hint_centre: a column of series.parquet"),
        (["--point", "hint=9"], "no point of results/small"),
    ] {
        let said = place.says(&[&["compare", "results/small", "results/without"], &options[..]].concat(), 2);
        assert!(said.contains(part), "{said}");
    }
}

/// A real sweep: seven queues with three links each, four groups, and transfers.
const HOUSE: &str = r#"
name = "house"
duration = "2 s"
interval = "100 ms"

[dumbbell]
rate = "10 Mbit/s"
delay = "10 ms"
access-rate = "100 Mbit/s"
access-delay = "1 ms"
queue = { aqm = "pi", limit = "200 packets" }

[[flow]]
name = "bulk"
transport = { protocol = "tcp" }
app = { kind = "files", size = "20 KB", think-time = "50 ms" }

[[flow]]
name = "call"
class = "audio"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "64 kbit/s", size = "160 B" }

[[flow]]
name = "game"
class = "game"
transport = { protocol = "udp" }
app = { kind = "cbr", rate = "80 kbit/s", size = "100 B" }

[[flow]]
name = "video"
class = "video"
transport = { protocol = "tfrc" }
app = { kind = "cbr", rate = "2 Mbit/s", size = "1000 B" }

[sweep]
"dumbbell.queue.aqm" = ["drop-tail", "pi", "pie", "codel", "fq-codel", "cake", "sieve"]

[[sweep.together]]
"dumbbell.rate" = ["4 Mbit/s", "10 Mbit/s", "20 Mbit/s"]
"dumbbell.queue.limit" = ["80 packets", "200 packets", "400 packets"]
"#;

fn house() -> Place {
    static MADE: OnceLock<FolderFiles> = OnceLock::new();
    with_results(&MADE, |place| {
        fs::write(place.path("house.toml"), HOUSE).unwrap();
        place.says(&["run", "house.toml", "-q"], 0);
    })
}

#[test]
fn a_real_sweep_is_drawn_in_panels_and_pages() {
    let place = house();
    // 84 courses and more, for each of four measures.
    let files = printed(&place, &["plot", "results/house", "--kind", "time", "-o", "courses.svg"]);
    let names: Vec<&str> = files.lines().collect();
    assert!(names.len() > 2 && names[0] == "courses-1.svg" && names[1] == "courses-2.svg", "{files}");
    for name in &names {
        assert!(fs::read_to_string(place.path(name)).unwrap().starts_with("<svg"), "{name}");
    }
    // A PDF has all pages.
    assert_eq!(
        printed(&place, &["plot", "results/house", "--kind", "time", "-o", "courses.pdf"]),
        "courses.pdf\n"
    );
    let pdf = fs::read(place.path("courses.pdf")).unwrap();
    assert_eq!(String::from_utf8_lossy(&pdf).matches("/MediaBox").count(), names.len());
    // One page that exists stops all of them.
    fs::remove_file(place.path("courses-1.svg")).unwrap();
    let said = place.says(&["plot", "results/house", "--kind", "time", "-o", "courses.svg"], 1);
    assert!(said.contains("courses-2.svg") && !place.path("courses-1.svg").exists(), "{said}");
    let picture = json(&place, &["plot", "results/house", "--kind", "time", "--measure", "queuing_mean_ms"]);
    let panels = picture["panels"].as_array().unwrap();
    assert_eq!(panels[0]["title"], "Queuing delay, mean: bulk, rate 4 Mbit/s, limit 80 packets");
    assert_eq!(series(&picture, 0).len(), 7);
    assert_eq!(series(&picture, 0)[0], "aqm drop-tail");
    let all: usize = panels.iter().map(|panel| panel["series"].as_array().unwrap().len()).sum();
    assert_eq!(all, 84, "no curve is lost");
}

/// Rate and limit vary together, so they are one axis, whichever of them is requested.
#[test]
fn keys_that_vary_together_are_one_axis() {
    let place = house();
    for (by, label) in [
        ("rate", "dumbbell.rate, with dumbbell.queue.limit"),
        ("limit", "dumbbell.queue.limit, with dumbbell.rate"),
    ] {
        let arguments =
            ["plot", "results/house", "--kind", "sweep", "--measure", "q", "--by", by, "--group", "call"];
        let picture = json(&place, &arguments);
        let panel = &picture["panels"][0];
        assert_eq!(panel["x"], label);
        assert_eq!(series(&picture, 0).len(), 7);
        for one in panel["series"].as_array().unwrap() {
            assert_eq!(one["points"].as_array().unwrap().len(), 3, "{one}");
        }
        // One seed has no intervals.
        assert_eq!(
            picture["notes"],
            serde_json::json!(["Means over the flows of a group and over the seeds."])
        );
    }
}

#[test]
fn intervals_are_captioned_where_there_are_some() {
    let place = measured();
    let picture = json(&place, &["plot", "results/small", "--kind", "sweep", "--measure", "q"]);
    let note = picture["notes"][0].as_str().unwrap();
    assert!(note.contains("95 % intervals"), "{note}");
}

#[test]
fn a_measure_with_its_unit_left_out_is_suggested() {
    let place = measured();
    for command in [
        &["plot", "results/small", "--kind", "sweep", "--measure", "queuing_p99"][..],
        &["plot", "results/small", "--kind", "time", "--measure", "queuing_mean"],
        &["compare", "results/small", "results/without", "--measure", "queuing_p99"],
    ] {
        let said = place.says(command, 2);
        let meant = format!("did you mean {}_ms?", command[command.len() - 1]);
        assert!(said.contains(&meant), "{said}");
    }
}

/// Without a desktop the picture is there, and one line says so.
#[test]
fn a_picture_that_cannot_be_opened_is_stored() {
    let place = measured();
    let mut command = place.command(&["plot", "results/small", "--kind", "cdf", "--open"]);
    let output = command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("no desktop") && said.lines().count() == 1, "{said}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "small-cdf.svg\n");
    assert!(place.path("small-cdf.svg").exists());
}

/// Points are compared by the meaning of their settings, not by the names of keys or the texts of values.
#[test]
fn compare_matches_points_by_their_settings() {
    let place = Place::new();
    let sweep = |name: &str, sweep: &str| {
        let text = common::place::SMALL
            .split("[sweep]")
            .next()
            .unwrap()
            .replace("name = \"small\"", &format!("name = {name:?}"));
        fs::write(place.path(&format!("{name}.toml")), format!("{text}[sweep]\n{sweep}")).unwrap();
        place.says(&["run", &format!("{name}.toml"), "--seeds", "2", "-q"], 0);
    };
    sweep(
        "both",
        "\"dumbbell.queue.tsq\" = [true, false]\n\"dumbbell.rate\" = [\"2 Mbit/s\", \"3 Mbit/s\"]\n",
    );
    // The other order and another spelling, and TSQ from the file.
    sweep("rates", "\"dumbbell.rate\" = [\"3000 kbit/s\", \"2000 kbit/s\"]\n");
    let compared =
        json(&place, &["compare", "results/both", "results/rates", "--group", "audio", "--measure", "q"]);
    let points: Vec<&str> =
        compared["measures"].as_array().unwrap().iter().map(|one| one["point"].as_str().unwrap()).collect();
    assert_eq!(
        points,
        ["dumbbell.queue.tsq=true,dumbbell.rate=2 Mbit/s", "dumbbell.queue.tsq=true,dumbbell.rate=3 Mbit/s"]
    );
    for one in compared["measures"].as_array().unwrap() {
        assert_eq!(one["difference"], 0.0, "the same runs: {one}");
    }
}

#[test]
fn compare_knows_every_column() {
    let place = house();
    place.says(&["run", "house.toml", "-q", "--set", "name=again"], 0);
    let asked = [
        "compare",
        "results/house",
        "results/again",
        "--measure",
        "transfer_mean_ms",
        "--measure",
        "packets_sent",
    ];
    let compared = json(&place, &asked);
    let measures = compared["measures"].as_array().unwrap();
    assert_eq!(
        measures.iter().filter(|one| one["measure"] == "transfer_mean_ms").count(),
        21,
        "one for each point"
    );
    let said =
        place.says(&["compare", "results/house", "results/again", "--measure", "average_mean_packets"], 2);
    assert!(said.contains("these results have no values of it"), "{said}");
}

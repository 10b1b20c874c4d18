//! `cutline plot` and `cutline compare`: what they show of stored results, and what they say of wrong options.
#![cfg(feature = "charts")]

mod common;

use common::place::Place;
use serde_json::Value;
use std::fs;

/// A folder with results of two hints, and the same without TSQ.
fn measured() -> Place {
    let place = Place::new();
    place.says(&["run", "small.toml", "--seeds", "3"], 0);
    place.says(
        &["run", "small.toml", "--seeds", "3", "--set", "name=without", "--set", "dumbbell.queue.tsq=false"],
        0,
    );
    place
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
fn each_kind_draws_what_is_stored() {
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
    assert_eq!(series(&picture, 0), ["hint 6, audio"]);
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
    // One audio flow, alone on the link, gets what it sends: 64 kbit/s, in kbit/s.
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
fn wrong_options_say_what_there_is() {
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
fn compare_shows_what_differs_or_what_is_asked_for() {
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
    for (options, part) in [
        (["--group", "video"], "expected one of: audio"),
        (["--measure", "speed"], "--measure speed: neither side has it"),
        (["--point", "hint=9"], "no point of results/small"),
    ] {
        let said = place.says(&[&["compare", "results/small", "results/without"], &options[..]].concat(), 2);
        assert!(said.contains(part), "{said}");
    }
}

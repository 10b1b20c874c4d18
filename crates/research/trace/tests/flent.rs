//! Tests of the flent file: the structure that flent's reader expects, and the values of the run.

use crate::common::{SEED, captured, scenario};
use cutline_results::RunResult;
use cutline_trace::flent::{MeasuredFlow, RealNetwork};
use cutline_trace::{FlentError, flent};
use flate2::read::GzDecoder;
use serde_json::Value;

fn written(run: &RunResult) -> (Vec<u8>, Value) {
    let mut file = Vec::new();
    flent::write(&mut file, &scenario("pie"), SEED, "0.0.0", run).unwrap();
    let document = serde_json::from_reader(GzDecoder::new(file.as_slice())).unwrap();
    (file, document)
}

#[test]
fn the_structure_is_that_of_flents_reader() {
    let (_, run) = captured(&scenario("pie"));
    let (file, document) = written(&run);
    assert_eq!(file, written(&run).0, "the same bytes again");
    assert_eq!(document["version"], 4);
    let metadata = &document["metadata"];
    assert_eq!(
        (&metadata["NAME"], &metadata["T0"]),
        (&"rtt_fair_var_up".into(), &"1970-01-01T00:00:00.000000Z".into())
    );
    assert_eq!(metadata["TITLE"], "A crowded bottleneck");
    assert_eq!(metadata["HOSTS"].as_array().unwrap().len(), 7);
    assert_eq!(metadata["TEST_PARAMETERS"]["qdisc_stats_hosts"], "r1->r2");
    let x_values = document["x_values"].as_array().unwrap();
    assert_eq!((x_values.len(), &x_values[0], &x_values[23]), (24, &0.5.into(), &12.0.into()));
    let results = document["results"].as_object().unwrap();
    assert_eq!(results.len(), 7 + 7 + 4);
    for (name, values) in results {
        assert_eq!(values.as_array().unwrap().len(), 24, "{name}");
        assert!(metadata["SERIES_META"][name]["UNITS"].is_string(), "{name}");
        let numbers = values.as_array().unwrap().iter().filter(|value| value.is_number()).count();
        assert_eq!(document["raw_values"][name].as_array().unwrap().len(), numbers, "{name}");
    }
}

/// Returns whether two values are equal up to the last digit, which readers of JSON may round.
fn close(read: Option<f64>, written: Option<f64>) -> bool {
    match (read, written) {
        (Some(read), Some(written)) => (read - written).abs() <= 1e-12 * written.abs(),
        (read, written) => read == written,
    }
}

#[test]
fn the_values_are_those_of_the_run() {
    let (_, run) = captured(&scenario("pie"));
    let (_, document) = written(&run);
    for flow in ["bulk.1", "audio"] {
        let rows: Vec<_> = run.series.iter().filter(|row| &*row.flow == flow).collect();
        let goodput = &document["results"][format!("TCP upload BE {flow}")];
        let delay = &document["results"][format!("Ping (ms) ICMP {flow}")];
        for (index, row) in rows.iter().enumerate() {
            assert!(close(goodput[index].as_f64(), Some(row.goodput_bps * 1e-6)), "{flow} {index}");
            assert!(close(delay[index].as_f64(), row.one_way_mean_ms), "{flow} {index}");
        }
    }
    let queue = &document["raw_values"]["qdisc_stats_r1->r2"];
    let sum =
        |key: &str| queue.as_array().unwrap().iter().filter_map(|point| point[key].as_u64()).sum::<u64>();
    assert_eq!((sum("dropped"), sum("ecn_mark")), (run.queues[0].dropped, run.queues[0].marked));
}

#[test]
fn a_run_without_a_series_is_refused() {
    let error = flent::write(Vec::new(), &scenario("pie"), SEED, "0.0.0", &RunResult::default()).unwrap_err();
    assert!(matches!(error, FlentError::NoSeries) && error.to_string().contains("flow.NAME.series=true"));
}

/// Two flows, of which one ends earlier.
fn measured() -> RealNetwork {
    let flow = |name: &str, goodput_bps: &[f64], delay_ms: &[Option<f64>]| MeasuredFlow {
        name: name.to_owned(),
        goodput_bps: goodput_bps.to_vec(),
        delay_ms: delay_ms.to_vec(),
    };
    RealNetwork {
        name: "up".to_owned(),
        title: "Both ways".to_owned(),
        note: "measured".to_owned(),
        length_s: 0.6,
        step_s: 0.2,
        flows: vec![
            flow("bulk", &[1e6, 2e6, 3e6], &[Some(5.0), None, Some(7.0)]),
            flow("bulk.reverse", &[2e6], &[Some(15.0)]),
        ],
    }
}

#[test]
fn a_measurement_has_the_same_structure() {
    let mut file = Vec::new();
    flent::write_measured(&mut file, &measured()).unwrap();
    let document: Value = serde_json::from_reader(GzDecoder::new(file.as_slice())).unwrap();
    let metadata = &document["metadata"];
    assert_eq!((&metadata["NAME"], &metadata["STEP_SIZE"]), (&"rtt_fair_var_up".into(), &0.2.into()));
    assert_eq!(metadata["HOSTS"], serde_json::json!(["bulk", "bulk.reverse"]));
    let results = &document["results"];
    // Packets missing at the end were not received.
    assert_eq!(results["TCP upload BE bulk.reverse"], serde_json::json!([2.0, 0.0, 0.0]));
    assert_eq!(results["Ping (ms) ICMP bulk"], serde_json::json!([5.0, null, 7.0]));
    assert_eq!(results["TCP upload sum"], serde_json::json!([3.0, 2.0, 3.0]));
    assert_eq!(results["Ping (ms) avg"], serde_json::json!([10.0, null, 7.0]));
    assert_eq!(document["raw_values"]["Ping (ms) ICMP bulk"].as_array().unwrap().len(), 2);
    let nothing = RealNetwork { flows: Vec::new(), ..measured() };
    let error = flent::write_measured(&mut Vec::new(), &nothing).unwrap_err();
    assert!(matches!(error, FlentError::NoIntervals), "{error}");
}

use super::*;
use cutline_units::{Bytes, Rate, Streams};

fn rng(purpose: &str) -> RandomStream {
    Streams::new(5).stream("app", purpose)
}

fn start(params: &Params) -> (App, RandomStream) {
    let mut rng = rng("start");
    assert_eq!(params.validate(), Ok(()));
    (params.start(at(1.0), &mut rng), rng)
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// Returns the times and sizes of all writes until `until`.
fn writes(app: &mut App, rng: &mut RandomStream, until: Instant) -> Vec<(Instant, u64)> {
    let mut written = Vec::new();
    while app.deadline() <= until {
        let now = app.deadline();
        while let Some(Write::Bytes(bytes)) = app.poll(now, rng) {
            written.push((now, bytes));
        }
    }
    written
}

fn cbr(random_phase: bool) -> Params {
    Params::Cbr(CbrParams { random_phase, ..CbrParams::new(Rate::from_kbps(128), Bytes::new(1000)) })
}

#[test]
fn bulk_data_is_unlimited_from_the_start() {
    let (mut app, mut rng) = start(&Params::BULK);
    assert_eq!((app.deadline(), app.poll(at(0.9), &mut rng)), (at(1.0), None));
    assert_eq!(app.poll(at(1.0), &mut rng), Some(Write::Unlimited));
    assert_eq!((app.deadline(), app.poll(at(2.0), &mut rng)), (Instant::FAR_FUTURE, None));
    assert_eq!(app.on_delivered(at(2.0), 1_000_000), None);
}

#[test]
fn a_constant_rate_is_exact() {
    let (mut app, mut rng) = start(&cbr(false));
    let written = writes(&mut app, &mut rng, at(101.0));
    // 128 kbit/s are 16 messages of 1000 B a second.
    assert_eq!((written[0].0, written[1600].0), (at(1.0), at(101.0)));
    assert_eq!(written.len(), 1601);
    assert!(written.iter().all(|write| write.1 == 1000));
}

#[test]
fn a_rate_that_does_not_divide_leaves_no_drift() {
    let params = CbrParams { random_phase: false, ..CbrParams::new(Rate::from_bps(7_777), Bytes::new(97)) };
    let (mut app, mut rng) = start(&Params::Cbr(params));
    let written = writes(&mut app, &mut rng, at(10_001.0));
    // 7777 bit/s for 10,000 s are 77,770,000 bits: 100,219.07 messages of 776 bits, and the first at 0.
    assert_eq!(written.len(), 100_220);
}

#[test]
fn a_random_phase_lies_within_the_first_interval() {
    let mut rng = rng("phase");
    let firsts: Vec<Instant> = (0..100).map(|_| cbr(true).start(at(1.0), &mut rng).deadline()).collect();
    assert!(firsts.iter().all(|&first| at(1.0) <= first && first < at(1.0625)));
    assert!(firsts.iter().any(|&first| first < at(1.02)) && firsts.iter().any(|&first| first > at(1.04)));
}

#[test]
fn an_on_off_source_bursts_at_its_rate() {
    let params = OnOffParams {
        rate: Rate::from_kbps(80),
        size: Bytes::new(100),
        on: Distribution::Fixed(0.055),
        off: Distribution::Fixed(1.0),
    };
    let (mut app, mut rng) = start(&Params::OnOff(params));
    let written = writes(&mut app, &mut rng, at(4.0));
    // Silent for 1 s, then a message each 10 ms for 55 ms, and again 1 s after the burst's end.
    let expected = [2.0, 2.01, 2.02, 2.03, 2.04, 2.05, 3.055, 3.065, 3.075, 3.085, 3.095, 3.105].map(at);
    assert_eq!(written.iter().map(|write| write.0).collect::<Vec<_>>(), expected);
}

#[test]
fn speech_has_the_activity_of_p_59() {
    let (mut app, mut rng) = start(&Params::TalkSpurt(TalkSpurtParams::default()));
    let written = writes(&mut app, &mut rng, at(20_001.0));
    let rate = written.iter().map(|write| write.1).sum::<u64>() as f64 * 8.0 / 20_000.0;
    // ITU-T P.59: 38.53 % of 64 kbit/s; each spurt ends with a whole frame, 10 ms more in the mean.
    let active = (1.004 + 0.010) / (1.004 + 1.587);
    assert!((rate / 64_000.0 / active - 1.0).abs() < 0.04, "{rate} bit/s");
    assert!(written.iter().all(|write| write.1 == 160));
}

#[test]
fn a_file_begins_a_think_time_after_the_last_arrived() {
    let params = FilesParams { size: Distribution::Fixed(5000.0), think_time: Distribution::Fixed(2.0) };
    let (mut app, mut rng) = start(&Params::Files(params));
    assert_eq!(app.poll(at(1.0), &mut rng), Some(Write::Bytes(5000)));
    assert_eq!((app.poll(at(1.0), &mut rng), app.deadline()), (None, Instant::FAR_FUTURE));
    assert_eq!(app.on_delivered(at(1.5), 4999), None);
    let done = app.on_delivered(at(1.75), 5000).expect("complete");
    assert_eq!((done.started, done.latency, done.bytes), (at(1.0), Duration::from_millis(750), 5000));
    assert_eq!((app.on_delivered(at(1.8), 5000), app.deadline()), (None, at(3.75)));
    assert_eq!(app.poll(at(3.75), &mut rng), Some(Write::Bytes(5000)));
    assert_eq!(app.on_delivered(at(4.0), 9999), None);
    assert_eq!(app.on_delivered(at(4.75), 10_000).map(|done| done.latency), Some(Duration::from_secs(1)));
}

#[test]
fn file_sizes_follow_their_distribution() {
    let size = Distribution::Exponential { mean: 30_000.0 };
    let (mut app, mut rng) =
        start(&Params::Files(FilesParams { size, think_time: Distribution::Fixed(0.0) }));
    let mut total = 0;
    for i in 0..5000 {
        let Some(Write::Bytes(bytes)) = app.poll(at(1.0 + f64::from(i)), &mut rng) else {
            panic!("a file is due");
        };
        total += bytes;
        assert!(app.on_delivered(at(1.5 + f64::from(i)), total).is_some());
    }
    assert!((total as f64 / 5000.0 / 30_000.0 - 1.0).abs() < 0.06, "{total} B in 5000 files");
}

fn web(embedded: f64) -> RequestResponseParams {
    RequestResponseParams {
        object: Distribution::Fixed(10_000.0),
        embedded: Distribution::Fixed(embedded),
        think_time: Distribution::Fixed(5.0),
        request_delay: Duration::from_millis(50),
    }
}

#[test]
fn a_page_is_its_main_object_and_then_the_embedded_objects() {
    let (mut app, mut rng) = start(&Params::RequestResponse(web(3.0)));
    // The request takes 50 ms to the server.
    assert_eq!((app.poll(at(1.0), &mut rng), app.deadline()), (None, at(1.05)));
    assert_eq!(app.poll(at(1.05), &mut rng), Some(Write::Bytes(10_000)));
    assert_eq!(app.deadline(), Instant::FAR_FUTURE);
    let main = app.on_delivered(at(1.2), 10_000).expect("the main object");
    assert_eq!((main.started, main.latency, main.bytes), (at(1.0), Duration::from_millis(200), 10_000));
    assert_eq!(app.poll(at(1.25), &mut rng), Some(Write::Bytes(30_000)));
    let rest = app.on_delivered(at(1.6), 40_000).expect("the embedded objects");
    assert_eq!((rest.started, rest.bytes), (at(1.2), 30_000));
    assert_eq!(app.deadline(), at(6.6));
}

#[test]
fn a_page_without_embedded_objects_is_done_at_once() {
    let (mut app, mut rng) = start(&Params::RequestResponse(web(0.0)));
    app.poll(at(1.0), &mut rng);
    app.poll(at(1.05), &mut rng);
    assert!(app.on_delivered(at(1.2), 10_000).is_some());
    assert_eq!(app.deadline(), at(6.2));
}

#[test]
fn a_poisson_source_has_its_rate_and_no_memory() {
    let size = Distribution::Exponential { mean: 500.0 };
    let params = PoissonParams { rate: Rate::from_kbps(400), size };
    let (mut app, mut rng) = start(&Params::Poisson(params));
    let written = writes(&mut app, &mut rng, at(1001.0));
    let rate = written.iter().map(|write| write.1).sum::<u64>() as f64 * 8.0 / 1000.0;
    assert!((rate / 400e3 - 1.0).abs() < 0.02, "{rate} bit/s");
    let gaps: Vec<f64> = written.windows(2).map(|pair| (pair[1].0 - pair[0].0).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // An exponential's standard deviation is its mean: 10 ms here.
    assert!((mean / 0.01 - 1.0).abs() < 0.02 && (variance.sqrt() / mean - 1.0).abs() < 0.02, "{mean} s");
}

fn recorded(messages: &[(u64, u64)], repeat: Option<Duration>) -> Params {
    let one = |&(ms, bytes): &(u64, u64)| Recorded { at: Duration::from_millis(ms), bytes };
    Params::Trace(TraceParams { messages: messages.iter().map(one).collect(), repeat })
}

#[test]
fn a_trace_has_its_recorded_times_and_sizes() {
    let (mut app, mut rng) = start(&recorded(&[(0, 100), (250, 7), (250, 8)], None));
    assert_eq!(writes(&mut app, &mut rng, at(9.0)), [(at(1.0), 100), (at(1.25), 7), (at(1.25), 8)]);
    assert_eq!((app.deadline(), app.poll(at(9.0), &mut rng)), (Instant::FAR_FUTURE, None));
}

#[test]
fn a_repeated_trace_begins_again_a_pause_after_its_end() {
    let (mut app, mut rng) = start(&recorded(&[(500, 1), (1500, 2)], Some(Duration::from_millis(250))));
    let times: Vec<Instant> = writes(&mut app, &mut rng, at(5.0)).into_iter().map(|(when, _)| when).collect();
    assert_eq!(times, [1.5, 2.5, 3.25, 4.25, 5.0].map(at));
}

#[test]
fn each_bad_value_is_named() {
    let size = Bytes::new(100);
    let (fixed, bad) = (Distribution::Fixed(1.0), Distribution::Exponential { mean: -1.0 });
    let rate = Rate::from_kbps(1);
    let cases = [
        ("rate", Params::Cbr(CbrParams::new(Rate::ZERO, size))),
        ("size", Params::Cbr(CbrParams::new(rate, Bytes::ZERO))),
        ("rate", Params::OnOff(OnOffParams { rate: Rate::ZERO, size, on: fixed, off: fixed })),
        ("size", Params::OnOff(OnOffParams { rate, size: Bytes::new(2_000_000), on: fixed, off: fixed })),
        ("on", Params::OnOff(OnOffParams { rate, size, on: bad, off: fixed })),
        ("off", Params::OnOff(OnOffParams { rate, size, on: fixed, off: bad })),
        ("size", Params::Files(FilesParams { size: bad, think_time: fixed })),
        ("think-time", Params::Files(FilesParams { size: fixed, think_time: bad })),
        ("object", Params::RequestResponse(RequestResponseParams { object: bad, ..web(0.0) })),
        ("embedded", Params::RequestResponse(RequestResponseParams { embedded: bad, ..web(0.0) })),
        ("rate", Params::Poisson(PoissonParams { rate: Rate::ZERO, size: fixed })),
        ("size", Params::Poisson(PoissonParams { rate, size: Distribution::Fixed(0.0) })),
        (
            "size",
            Params::Poisson(PoissonParams {
                rate,
                size: Distribution::Pareto { minimum: 9.0, shape: 0.9, maximum: None },
            }),
        ),
        ("messages", recorded(&[], None)),
        ("messages", recorded(&[(0, 0)], None)),
        ("messages", recorded(&[(5, 1), (4, 1)], None)),
        ("repeat", recorded(&[(0, 1)], Some(Duration::ZERO))),
        (
            "silence",
            Params::TalkSpurt(TalkSpurtParams { silence: Duration::ZERO, ..TalkSpurtParams::default() }),
        ),
    ];
    for (field, params) in cases {
        assert_eq!(params.validate().expect_err(field).parameter, field);
    }
}

#[test]
fn applications_that_wait_for_delivery_need_reliability() {
    assert!(Params::RequestResponse(web(1.0)).needs_reliability());
    assert!(!Params::BULK.needs_reliability() && !cbr(true).needs_reliability());
}

#[test]
fn page_sizes_have_the_means_of_their_source() {
    let object = Distribution::Lognormal { median: 11_580.0, sigma: 1.318 };
    // exp(9.357 + 1.318^2 / 2) and 2.43 / 1.43.
    assert!((object.mean() - 27_600.0).abs() < 100.0, "{}", object.mean());
    let embedded = Distribution::Pareto { minimum: 1.0, shape: 2.43, maximum: None };
    assert!((embedded.mean() - 1.70).abs() < 0.01);
}

#[test]
fn required_parameters_have_no_defaults() {
    let refused = |name, values: &[(&'static str, ParameterValue)]| {
        Params::from_values(name, values.to_vec()).unwrap_err().to_string()
    };
    let expected = "rate is missing: it must be a whole number from 1 to 1000000000000 bit/s";
    assert_eq!(refused("cbr", &[("size", ParameterValue::Count(100))]), expected);
    let sizes =
        ParameterValue::Distribution(Distribution::Pareto { minimum: 1e3, shape: 0.9, maximum: None });
    let expected = "size = Pareto with minimum 1000, shape 0.9: allowed is of a mean from 1 to 1000000 B; here it is inf";
    assert_eq!(refused("poisson", &[("rate", ParameterValue::Count(1000)), ("size", sizes)]), expected);
    let rate = ParameterValue::Count(9_000_000_000);
    let why = refused("cbr", &[("rate", rate), ("size", ParameterValue::Count(1))]);
    assert!(why.contains("at most 8 Gbit/s"), "{why}");
    assert!(refused("cdr", &[]).ends_with("did you mean cbr?"));
}

//! The page in a browser: headless Chromium draws it, and its drawing is examined.

use crate::common::browser::{AXE, Browser};
use crate::common::{Monitor, TOKEN};
use cutline_flow::TrafficSpec;
use cutline_monitor::{KernelQueueEntry, KernelQueueReading, ReservationState, RouterView};
use cutline_provision::status::{LocalStatus, ReservationStatus, SessionStatus, Status};
use cutline_provision::{Flow, TransportProtocol};
use cutline_publish::{
    DirectionRow, LimitRow, ProgramRow, Publisher, RowKind, SocketRow, SpreadRow, ViolationRow,
};
use cutline_router_service::{
    FlowStatistics, HostStatistics, PacketCount, QdiscDocument, SieveStatistics, Statistics,
};
use cutline_testbed::skip;
use cutline_units::{Bytes, Rate};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const COMMAND: &str = "make validate-page";

/// Starts the browser; without one the test is skipped.
fn browser() -> Option<Browser> {
    if !std::path::Path::new(AXE).exists() {
        skip("axe-core is not there", COMMAND);
        return None;
    }
    let browser = Browser::start();
    if browser.is_none() {
        skip("chromium is not there", COMMAND);
    }
    browser
}

#[test]
fn an_empty_page_names_the_missing_parts_and_the_remedy() {
    let Some(mut browser) = browser() else { return };
    let monitor = Monitor::start();
    browser.open(&format!("http://{}/", monitor.serve()), [1200, 900]);
    for text in [
        "live: 0 processes publish",
        "No router publishes on this host.",
        "sudo cutline router up --lan eth0 --wan eth1",
        "No queue in its kernel is known",
        "sudo cutline qdisc add dev eth0",
        "No program with QoS sockets publishes",
        "cutline exec --class video",
    ] {
        browser.wait_for_text(text);
    }
    assert_eq!(browser.accessibility_faults(), [] as [&str; 0]);
    drop(monitor);
}

/// Any user may publish more than a page can show.
#[test]
fn a_page_shows_the_number_of_omitted_rows() {
    let Some(mut browser) = browser() else { return };
    let monitor = Monitor::start();
    let mut publishers: Vec<Publisher> = (0..35).map(|_| monitor.publisher("many")).collect();
    for publisher in &mut publishers {
        let mut snapshot = publisher.begin_snapshot().unwrap().unwrap();
        snapshot.put(RowKind::Router, 0, &router(1));
        for process in 0..4 {
            let program = ProgramRow { process, program: "ls".to_owned(), ..ProgramRow::default() };
            snapshot.put(RowKind::Program, process, &program);
        }
        snapshot.end().unwrap();
        while !publisher.flush().unwrap() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    monitor.wait_for(|document| (document.routers.len(), document.programs.len()) == (35, 140));
    browser.open(&format!("http://{}/", monitor.serve()), [1200, 900]);
    for text in [
        "3 more routers are not listed; cutline top lists them.",
        "40 more programs have sent less and are not listed; cutline top lists them.",
    ] {
        browser.wait_for_text(text);
    }
    let rows = "document.querySelectorAll('#programs tbody tr').length";
    assert_eq!(browser.evaluate(rows), json!(100));
}

/// A queue in the kernel, which grows with each reading, and the reason why others are missing.
fn kernel_queues() -> impl Fn() -> KernelQueueReading + Send + Sync + 'static {
    let readings = AtomicU64::new(0);
    move || {
        let second = readings.fetch_add(1, Ordering::Relaxed) + 1;
        let mut queue = QdiscDocument { elapsed_s: second as f64, ..QdiscDocument::default() };
        queue.interface.push_str("eth0");
        queue.statistics.name.push_str("eth0");
        queue.statistics.queue.push_str("sieve");
        queue.statistics.sieve = Some(SieveStatistics::default());
        queue.statistics.rate_bps = 20_000_000;
        queue.statistics.sent.bytes = second * 1_000_000;
        queue.statistics.dropped.entry("early".to_owned()).or_default().packets = 41;
        let queues = vec![KernelQueueEntry { index: 2, queue: queue.into() }];
        KernelQueueReading { queues, problem: Some("a made-up reason".to_owned()) }
    }
}

#[test]
fn a_queue_in_the_kernel_has_a_card_without_flows() {
    let Some(mut browser) = browser() else { return };
    let monitor = Monitor::with_kernel_queues(false, kernel_queues());
    browser.open(&format!("http://{}/", monitor.serve()), [1200, 900]);
    for text in [
        "eth0: sieve in the kernel at 20.0 Mbit/s",
        "The link has room: 8.00 Mbit/s of 20.0 Mbit/s.",
        "41 packets since the start were dropped early",
        "Queues in the kernel are not shown: a made-up reason",
    ] {
        browser.wait_for_text(text);
    }
    assert_eq!(browser.accessibility_faults(), [] as [&str; 0]);
    browser.picture("kernel-queue.png");
    let text = browser.text();
    assert!(!text.contains("Flows that send most") && !text.contains("No router publishes"), "{text}");
    drop(monitor);
}

/// Statistics of a router whose first direction is full.
fn router(second: u64) -> Statistics {
    let mut router = Statistics { elapsed_s: second as f64, ..Statistics::default() };
    router.forward.name.push_str("lan0 -> wan0");
    router.forward.queue.push_str("sieve");
    router.reverse.name.push_str("wan0 -> lan0");
    router.reverse.queue.push_str("sieve");
    for direction in [&mut router.forward, &mut router.reverse] {
        direction.sieve = Some(SieveStatistics { fair_share_bps: 5_000_000, ..SieveStatistics::default() });
    }
    router.reverse.rate_bps = 40_000_000;
    router.forward.rate_bps = 10_000_000;
    router.forward.sent.bytes = second * 1_200_000;
    router.forward.waits_us.bounds = vec![1000.0, 2000.0, 4000.0];
    router.forward.waits_us.counts = vec![second * 10, second * 100, second, 0];
    router.forward.dropped.entry("early".to_owned()).or_default().packets = second * 7;
    router.forward.flows.push(FlowStatistics {
        source: "10.0.0.2".to_owned(),
        source_port: Some(5000),
        destination: "2001:db8::1".to_owned(),
        destination_port: Some(443),
        protocol: 6,
        recent_bps: 4_000_000,
        received: PacketCount { packets: 100, bytes: 150_000 },
        dropped: PacketCount { packets: 5, bytes: 7500 },
        mean_wait_ms: 12.5,
        wait_p50_ms: Some(11.1),
        wait_p99_ms: Some(22.2),
        ..FlowStatistics::default()
    });
    router.forward.hosts.push(HostStatistics {
        host: "10.0.0.2".to_owned(),
        side: "source".to_owned(),
        flows: 3,
        recent_bps: 5_000_000,
        ..HostStatistics::default()
    });
    router
}

/// Publishes a router, and a socket whose delay is violated.
fn publish_host(publisher: &mut Publisher, second: u64) {
    let limit = |measure: &str, best, worst, measured| LimitRow {
        measure: measure.to_owned(),
        best,
        worst,
        best_measured: Some(best),
        worst_measured: Some(measured),
        begun: 0,
    };
    let violation = ViolationRow {
        measure: "delay".to_owned(),
        limit: 100.0,
        measured: 250.0,
        origin: "network".to_owned(),
        for_s: 3.0,
    };
    let receive = DirectionRow {
        effective: "min-rate = 60 messages/s, max-delay = 100 ms".to_owned(),
        sent_messages: second * 80,
        received_messages: second * 80,
        received_bytes: second * 100_000,
        unread_ms: 2500.0,
        overflowed_datagrams: 31,
        throughput_bps: Some(800_000),
        last_delay: Some(SpreadRow { p99_ms: 250.0, ..SpreadRow::default() }),
        limits: vec![
            limit("rate", 80.0, 60.0, 78.0),
            limit("delay", 0.0, 100.0, 250.0),
            limit("loss", 0.0, 5.0, 1.0),
        ],
        violations: vec![violation],
        ..DirectionRow::default()
    };
    let socket = SocketRow {
        socket: 7,
        transport: "udp".to_owned(),
        // A name that would be markup if it were not text.
        peer: "<b id=evil>192.0.2.1:5004</b>".to_owned(),
        state: "agreed".to_owned(),
        receive,
        ..SocketRow::default()
    };
    let mut snapshot = publisher.begin_snapshot().unwrap().unwrap();
    snapshot.put(RowKind::Router, 0, &router(second));
    snapshot.put(RowKind::Socket, 7, &socket);
    snapshot.end().unwrap();
}

/// Number of an element's points on a path of the first chart, in JavaScript.
const POINTS: &str =
    "(document.querySelector('.chart path.c0')?.getAttribute('d') ?? '').split(/[ML]/).length - 1";

/// Texts whose contrast with their background is less than WCAG AA requests (success criterion 1.4.3): 4.5, and 3 of large ones. A
/// text of a drawing has its colour as `fill`.
const PALE_TEXTS: &str = r"(() => {
    const parts = (text) => (text.match(/[\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => [r, g, b]
        .map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, number) => sum + part * [0.2126, 0.7152, 0.0722][number], 0);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = parts(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const pale = [];
    for (const element of document.querySelectorAll('body *')) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '');
        if (!own || element.getClientRects().length === 0) continue;
        const style = getComputedStyle(element);
        const colour = parts(element instanceof SVGElement ? style.fill : style.color);
        const [one, other] = [light(colour), light(behind(element))];
        const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        const size = parseFloat(style.fontSize);
        const needed = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
        if (contrast < needed) pale.push(`${element.textContent.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
    }
    return pale;
})()";

/// Lines of charts and edges of pressed buttons whose contrast with their background is less than 3 (WCAG 2.2 success criterion
/// 1.4.11), and lines of one chart that only their colour tells apart (1.4.1).
const PALE_LINES: &str = r"(() => {
    const light = (colour) => colour.match(/[\d.]+/g).slice(0, 3)
        .map((part) => part / 255)
        .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
        .reduce((sum, part, number) => sum + part * [0.2126, 0.7152, 0.0722][number], 0);
    const card = light(getComputedStyle(document.querySelector('.card')).backgroundColor);
    const contrast = (colour) => (Math.max(light(colour), card) + 0.05) / (Math.min(light(colour), card) + 0.05);
    const lines = [...document.querySelectorAll('.chart path, .radar polygon, .chart .cursor')]
        .map((line) => [line.className.baseVal, getComputedStyle(line).stroke]);
    const edges = [...document.querySelectorAll('[aria-pressed=true]')]
        .map((button) => [button.textContent, getComputedStyle(button).borderTopColor]);
    const pale = [...lines, ...edges].filter(([, colour]) => contrast(colour) < 3).map(([what]) => what);
    const alike = [...document.querySelectorAll('.chart svg')].filter((chart) => {
        const dashes = [...chart.querySelectorAll('path')].map((line) => getComputedStyle(line).strokeDasharray);
        return new Set(dashes).size < dashes.length;
    });
    return [...pale, ...alike.map((chart) => chart.getAttribute('aria-label'))];
})()";

#[test]
fn a_router_without_a_monitor_has_a_page() {
    let Some(mut browser) = browser() else { return };
    let view = RouterView::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = view.address();
    let second = AtomicU64::new(0);
    view.serve(move || Some(router(second.fetch_add(1, Ordering::Relaxed) + 1))).unwrap();
    browser.open(&format!("http://{at}/"), [1200, 900]);
    for text in [
        "lan0 -> wan0: sieve at 10.0 Mbit/s",
        "The link is full: 9.60 Mbit/s of 10.0 Mbit/s.",
        "10.0.0.2:5000",
    ] {
        browser.wait_for_text(text);
    }
    assert_eq!(browser.accessibility_faults(), [] as [&str; 0]);
    browser.picture("router.png");
}

/// Statistics of a router with queues that know no fair share: drop-tail, and PIE, which drops early.
fn router_without_sieve(second: u64) -> Statistics {
    let mut router = router(second);
    router.forward.dropped.clear();
    router.forward.dropped.entry("overflow".to_owned()).or_default().packets = second * 7;
    router.reverse.sent.bytes = second * 5_000_000;
    router.reverse.waits_us = router.forward.waits_us.clone();
    router.reverse.dropped.entry("early".to_owned()).or_default().packets = second * 9;
    for (direction, queue) in [(&mut router.forward, "drop-tail"), (&mut router.reverse, "pie")] {
        (direction.queue, direction.sieve) = (queue.to_owned(), None);
    }
    router
}

#[test]
fn the_fair_share_is_shown_for_a_queue_with_one_alone() {
    let Some(mut browser) = browser() else { return };
    for (statistics, words, charts) in [
        (
            router as fn(u64) -> Statistics,
            [
                "Packets of flows above the fair share wait, 99 of 100",
                "more than the fair share loses packets",
            ],
            8,
        ),
        (
            router_without_sieve,
            [
                "9.60 Mbit/s of 10.0 Mbit/s. Packets wait, 99 of 100",
                "dropped early by the queue, before it was full:",
            ],
            6,
        ),
    ] {
        let view = RouterView::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let at = view.address();
        let second = AtomicU64::new(0);
        view.serve(move || Some(statistics(second.fetch_add(1, Ordering::Relaxed) + 1))).unwrap();
        browser.open(&format!("http://{at}/"), [1200, 900]);
        for text in words {
            browser.wait_for_text(text);
        }
        assert_eq!(browser.evaluate("document.querySelectorAll('.chart').length"), json!(charts));
        // Two seconds of each chart are drawn: none is empty.
        browser.wait_for(
            "[...document.querySelectorAll('.charts')].every((all) => all.querySelector('path') !== null)",
        );
        let text = browser.text().to_lowercase();
        assert_eq!(text.contains("fair share"), charts == 8, "{text}");
        assert_eq!(browser.accessibility_faults(), [] as [&str; 0]);
        browser.picture(&format!("queues-{charts}.png"));
    }
}

/// Reservations of `cutlined` for a session, and at the host alone: one in effect, and one without a route.
fn reservations() -> ReservationState {
    let bucket = TrafficSpec {
        rate: Rate::from_kbps(64),
        bucket: Bytes::new(1500),
        peak: TrafficSpec::UNKNOWN_PEAK,
        min_policed: Bytes::new(40),
        max_packet: Bytes::new(200),
    };
    let local = |port: u16, interface: Option<&str>| LocalStatus {
        flow: Flow {
            transport: TransportProtocol::Udp,
            source: "10.0.1.2:5000".parse().unwrap(),
            destination: SocketAddr::from(([10, 0, 2, 2], port)),
        },
        bucket,
        interface: interface.map(str::to_owned),
    };
    let local = vec![local(5001, Some("eth1")), local(5002, None)];
    ReservationState {
        unlisted_sessions: 0,
        unlisted_local: 0,
        status: Status { local, ..Status::default() },
    }
}

#[test]
fn reservations_of_sessions_and_of_the_host_alone_are_listed() {
    let Some(mut browser) = browser() else { return };
    let monitor = Monitor::start();
    let at = monitor.serve();
    let rows = "[...document.querySelectorAll('#reservations tbody tr')].map((row) => row.innerText.split(/\\s*\\t\\s*/))";
    let mut state = reservations();
    monitor.host.set_reservations(state.clone());
    browser.open(&format!("http://{at}/?token={TOKEN}"), [1200, 900]);
    browser.wait_for(&format!("{rows}.length === 2"));
    let local = [
        ["10.0.2.2:5001", "10.0.1.2:5000", "eth1", "-", "local", "64.0 kbit/s", "1500 B"],
        ["10.0.2.2:5002", "10.0.1.2:5000", "none: not in effect", "-", "local", "64.0 kbit/s", "1500 B"],
    ];
    assert_eq!(browser.evaluate(rows), json!(local));
    assert!(!browser.text().contains("Nothing is reserved."));
    let bucket = state.status.local[0].bucket;
    state.status.sessions = vec![SessionStatus {
        number: 1,
        protocol: 17,
        destination: "192.0.2.1:5004".parse().unwrap(),
        senders: Vec::new(),
        reservations: vec![ReservationStatus {
            interface: None,
            next: None,
            style: "WF".to_owned(),
            senders: Vec::new(),
            bucket,
        }],
    }];
    (state.unlisted_sessions, state.unlisted_local) = (41, 7);
    monitor.host.set_reservations(state);
    browser.wait_for(&format!("{rows}.length === 3"));
    let session = ["192.0.2.1:5004", "all", "this host", "-", "WF", "64.0 kbit/s", "1500 B"];
    assert_eq!(browser.evaluate(rows), json!([session, local[0], local[1]]));
    browser.wait_for_text("41 more sessions and 7 more local reservations are not listed");
    assert_eq!(browser.accessibility_faults(), [] as [&str; 0]);
    browser.picture("reservations.png");
}

#[test]
fn links_sockets_and_reasons_are_drawn_and_move_with_keys() {
    let Some(mut browser) = browser() else { return };
    let monitor = Monitor::start();
    let at = monitor.serve();
    let mut publisher = monitor.publisher("video");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut second = 0;
            while !stop.load(Ordering::Relaxed) {
                second += 1;
                publish_host(&mut publisher, second);
                // Programs publish once a second.
                std::thread::sleep(Duration::from_secs(1));
            }
        });
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| examine(&mut browser, at)));
        stop.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Moves the focus with the Tab key over everything that reacts to keys: in the order of the page, and visibly (WCAG 2.2 success
/// criteria 2.1.1, 2.4.3 and 2.4.7).
fn reach_all_by_tab(browser: &mut Browser) {
    const REACTING: &str =
        "[...document.querySelectorAll('button, a[href], input, select, [tabindex=\"0\"]')]";
    browser.evaluate("document.getElementById('pause').click()");
    browser.evaluate("document.activeElement.blur()");
    let all = browser.evaluate(&format!("{REACTING}.length")).as_u64().unwrap();
    assert!(all > 5, "{all}");
    for number in 0..all {
        browser.press("Tab");
        let place = browser.evaluate(&format!("{REACTING}.indexOf(document.activeElement)"));
        assert_eq!(place, json!(number));
        let outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle");
        assert_ne!(outline, json!("none"), "number {number}");
    }
    browser.evaluate("document.getElementById('pause').click()");
}

/// Waits until the page has drawn this many further documents.
fn wait_for_documents(browser: &mut Browser, count: u32) {
    browser.evaluate("window.last = view.document; window.documents = 0");
    browser.wait_for(&format!(
        "window.documents += view.document === window.last ? 0 : 1, window.last = view.document, window.documents > {count}"
    ));
}

/// Checks that new data take nothing from a reader: the focus and the tables remain the same elements, where a screen reader reads or a
/// text is selected. Without a cause nothing is announced, and nothing moves (WCAG 2.2 success criteria 2.2.2, 3.2.1 and 4.1.3).
fn stays_while_it_is_drawn_again(browser: &mut Browser) {
    browser.wait_for_text("live: 1 process publishes");
    browser.evaluate(
        "{
            const button = document.querySelector('[data-socket]');
            button.focus();
            window.kept = [button, button.closest('tr'), button.closest('.scroll'), document.querySelector('.flows td')];
            window.noise = [];
            const state = document.getElementById('state');
            new MutationObserver(() => window.noise.push(state.textContent))
                .observe(state, { subtree: true, childList: true, characterData: true, attributes: true });
            document.addEventListener('focusin', () => window.noise.push('focus'));
        }",
    );
    wait_for_documents(browser, 3);
    assert_eq!(browser.evaluate("window.noise"), json!([]));
    assert_eq!(
        browser.evaluate("window.kept.map((element) => element.isConnected)"),
        json!([true, true, true, true])
    );
    assert_eq!(browser.evaluate("document.activeElement === window.kept[0]"), json!(true));
    assert_eq!(browser.evaluate("document.getAnimations().length"), json!(0));
    // An error is announced once, and remains until it is over.
    browser.evaluate("window.ours = fetch; window.fetch = () => Promise.reject(new Error('made up'))");
    let error = "the history cannot be read: made up";
    browser.wait_for_text(error);
    wait_for_documents(browser, 2);
    assert_eq!(browser.evaluate("window.noise"), json!([error]));
    assert_eq!(browser.evaluate(PALE_TEXTS), json!([]));
    browser.evaluate("window.fetch = window.ours");
    browser.wait_for_text("live: 1 process publishes");
}

/// Gives texts the spaces that a reader may want (WCAG 2.2 success criterion 1.4.12).
const WIDE_SPACES: &str = "{
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important; }'
        + 'p { margin-bottom: 2em !important; }');
    document.adoptedStyleSheets = [sheet];
}";

/// Moves a pointer over one chart: all charts show the values of its second, until it leaves.
fn point_at_a_chart(browser: &mut Browser) {
    browser.evaluate("document.activeElement.blur()");
    let cursors = "document.querySelectorAll('.cursor').length";
    browser.wait_for(&format!("{cursors} === 0"));
    let charts = "[...document.querySelectorAll('.chart svg')]";
    // One and a half seconds before the last point; nothing is scrolled then.
    let place = browser.evaluate(&format!(
        "{{
            const svg = {charts}[1];
            svg.scrollIntoView({{ block: 'center' }});
            const box = svg.getBoundingClientRect();
            const share = 1 - 1.5 / (view.minutes * 60);
            const x = LEFT + share * (WIDTH - LEFT - RIGHT);
            [box.left + x / WIDTH * box.width, box.top + box.height / 2]
        }}"
    ));
    let [x, y] = [0, 1].map(|at| place[at].as_f64().unwrap());
    browser.point([x, y]);
    browser.wait_for(&format!("{cursors} === {charts}.length"));
    let times = format!("{charts}.map((svg) => /, at (.*)$/.exec(svg.ariaValueText)?.[1])");
    let seen = browser.evaluate(&format!("[...new Set({times})]"));
    assert!(matches!(seen.as_array().unwrap().as_slice(), [Value::String(_)]), "one time: {seen}");
    // The legend has the values of that second, and so has the line in the drawing.
    let shown = browser.evaluate(
        "(() => {
            const [data] = series.values();
            const svg = document.querySelectorAll('.chart svg')[1];
            const at = Number(svg.ariaValueNow);
            const place = data.at.findLastIndex((time) => time <= view.cursor + 0.5);
            const sent = rate(data.values[data.columns.indexOf('sent_bps')][place]);
            return [svg.parentElement.querySelector('.legend b').textContent === sent, Math.abs(at - data.at[place]) <= 1.5];
        })()",
    );
    assert_eq!(shown, json!([true, true]));
    browser.point([1.0, 1.0]);
    browser.wait_for(&format!("{cursors} === 0"));
}

fn examine(browser: &mut Browser, at: SocketAddr) {
    // A link to a socket of this process.
    browser.open(&format!("http://{at}/#socket={}/7", std::process::id()), [1200, 1600]);
    for text in [
        "lan0 -> wan0: sieve at 10.0 Mbit/s",
        "The link is full: 9.60 Mbit/s of 10.0 Mbit/s.",
        "packets a second now",
        "dropped early by the queue",
        "Agreed: min-rate = 60 messages/s, max-delay = 100 ms.",
        "The receiving application left data unread for 2500 ms in all.",
        "31 datagrams did not fit into the receive buffer.",
        "delay is 250 ms, the limit is 100 ms. Origin: network.",
        "violates its delay (limit 100 ms, worst 250 ms, for 3.0 s)",
        "99th percentile: 2.00 ms",
        "10.0.0.2:5000",
        "[2001:db8::1]:443",
        "11.1 ms",
        "22.2 ms",
        // The share of the link, and the dropped packets.
        "40.0 %",
        "5.00 %",
        "No reservations are shown",
        "delivery is bad, and no row of this host explains it",
    ] {
        browser.wait_for_text(text);
    }
    assert_eq!(browser.evaluate("document.getElementById('evil')"), json!(null), "a text became markup");
    browser.wait_for("document.querySelector('.radar .seen.bad') !== null");
    browser.wait_for(&format!("{POINTS} >= 4"));
    // Each point has its own values.
    let aligned =
        "[...series.values()].every((one) => one.values.every((list) => list.length === one.at.length))";
    assert_eq!(browser.evaluate(aligned), json!(true));
    let mut grounds = Vec::new();
    for (scheme, picture) in [("dark", "dark.png"), ("light", "host.png")] {
        browser.prefer(scheme);
        grounds.push(browser.evaluate("getComputedStyle(document.body).backgroundColor"));
        assert_eq!(browser.evaluate(PALE_TEXTS), json!([]), "{scheme}");
        assert_eq!(browser.accessibility_faults(), [] as [&str; 0], "{scheme}");
        browser.picture(picture);
    }
    assert_ne!(grounds[0], grounds[1], "a page for dark rooms and one for light ones");
    assert_eq!(browser.evaluate(PALE_LINES), json!([]));
    // Charts of two links, or of a link and a socket, have the same titles: each names its own.
    let names =
        "[...document.querySelectorAll('.chart svg')].map((it) => it.getAttribute('aria-describedby'))";
    browser.wait_for(&format!(
        "new Set({names}.map((it) => document.getElementById(it).textContent)).size === 3"
    ));
    reach_all_by_tab(browser);
    stays_while_it_is_drawn_again(browser);
    // The pointer is one for all charts; the keyboard moves it.
    browser.evaluate("document.querySelector('.chart svg').focus()");
    assert_eq!(browser.evaluate("document.querySelectorAll('.cursor').length"), json!(0));
    browser.press("ArrowLeft");
    let cursors = "document.querySelectorAll('.cursor').length";
    browser.wait_for(&format!("{cursors} >= 4"));
    // Those who do not see the charts hear them, with the time that the keys have moved to.
    let value = "document.querySelector('.chart svg').getAttribute('aria-valuetext')";
    browser.wait_for(&format!("/^99th percentile .*, median .*, at .*\\d:\\d\\d/.test({value})"));
    browser.press("Home");
    let earliest = "Number(document.querySelector('.chart svg').ariaValueNow) === Math.round([...series.values()][0].at[0])";
    browser.wait_for(earliest);
    point_at_a_chart(browser);
    // A pause keeps the picture, also if it comes while new data are loaded, and charts are drawn again.
    browser.evaluate(&format!(
        "{{
            const plain = window.fetch;
            window.fetch = async (...all) => {{
                const answer = await plain(...all);
                if (!view.paused) {{
                    window.before = {POINTS};
                    document.getElementById('pause').click();
                }}
                return answer;
            }};
        }}"
    ));
    browser.wait_for_text("paused");
    // Two seconds would bring two points.
    std::thread::sleep(Duration::from_secs(2));
    browser.evaluate("renderCharts()");
    browser.wait_for(&format!("{POINTS} === window.before"));
    // On a phone nothing is wider than the screen, nor with texts of twice or four times their size in a window of 1280 pixels, nor with
    // wide spaces (WCAG 2.2 success criteria 1.4.4, 1.4.10 and 1.4.12). Tables of a small window are scrolled. The window is resized, not
    // loaded again.
    browser.open(&format!("http://{at}/?narrow#socket={}/7", std::process::id()), [700, 800]);
    browser.wait_for_text("lan0 -> wan0: sieve at 10.0 Mbit/s");
    browser.wait_for_text("Agreed: min-rate = 60 messages/s");
    for width in [700, 640, 320, 390] {
        browser.resize([width, 800]);
        let fits = format!("document.documentElement.scrollWidth <= {width}");
        browser.wait_for(&fits);
        // Texts of charts have their 11 px.
        let scale = "document.querySelector('#socket .chart svg').getBoundingClientRect().width / WIDTH";
        browser.wait_for(&format!("{scale} >= 0.99"));
        assert_eq!(browser.accessibility_faults(), [] as [&str; 0], "{width}");
        browser.picture(&format!("width-{width}.png"));
        browser.evaluate(WIDE_SPACES);
        browser.wait_for(&fits);
        browser.evaluate("document.adoptedStyleSheets = []");
    }
    assert_eq!(browser.evaluate(PALE_TEXTS), json!([]));
    browser.picture("phone.png");
}

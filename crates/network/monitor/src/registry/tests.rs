//! Tests of the registry: access, limits, and lines of publishers.

use super::*;
use proptest::prelude::*;
use serde_json::json;

const ROOT: Process = Process { pid: 1, uid: 0 };
const ANN: Process = Process { pid: 20, uid: 1000 };
const BOB: Process = Process { pid: 30, uid: 1001 };

fn hello() -> Vec<u8> {
    json!({ "hello": { "version": VERSION, "program": "video" } }).to_string().into_bytes()
}

fn socket(number: u64) -> Vec<u8> {
    json!({ "socket": { "socket": number, "transport": "udp" } }).to_string().into_bytes()
}

fn send(registry: &mut RowRegistry, id: PublisherId, line: &[u8]) -> Result<(), PublishedLineError> {
    registry.take(id, PublishedLine::parse(line)?)
}

fn opened(registry: &mut RowRegistry, process: Process) -> PublisherId {
    let id = registry.open(process).unwrap();
    send(registry, id, &hello()).unwrap();
    id
}

fn seen(registry: &RowRegistry, viewer: Viewer) -> (Vec<u64>, u64) {
    let document = registry.document(viewer);
    (document.sockets.iter().map(|entry| entry.socket.socket).collect(), document.hidden_rows)
}

#[test]
fn a_user_sees_own_rows_and_root_sees_all() {
    let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
    for (process, number) in [(ROOT, 1), (ANN, 2), (BOB, 3)] {
        let id = opened(&mut registry, process);
        send(&mut registry, id, &socket(number)).unwrap();
    }
    assert_eq!(seen(&registry, Viewer::of_user(0)), (vec![1, 2, 3], 0));
    assert_eq!(seen(&registry, Viewer::of_user(ANN.uid)), (vec![2], 2));
    assert_eq!(seen(&registry, Viewer::Nobody), (vec![], 3));
}

/// The flows of a router are the traffic of others.
#[test]
fn flows_of_a_router_are_seen_by_root_and_its_own_user_alone() {
    let flow = cutline_router_service::FlowStatistics { source: "10.0.0.7".into(), ..Default::default() };
    let host = cutline_router_service::HostStatistics { host: "10.0.0.7".into(), ..Default::default() };
    let way = cutline_router_service::DirectionStatistics {
        flows: vec![flow],
        hosts: vec![host],
        ..Default::default()
    };
    let router = Statistics { forward: way.clone(), reverse: way, ..Statistics::default() };
    for process in [ROOT, ANN] {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let id = opened(&mut registry, process);
        send(&mut registry, id, json!({ "router": router }).to_string().as_bytes()).unwrap();
        let shown = |viewer| {
            let document = registry.document(viewer);
            let text = serde_json::to_string(&document).unwrap();
            (document.routers.len(), text.contains("10.0.0.7"))
        };
        assert_eq!(shown(Viewer::All), (1, true));
        assert_eq!(shown(Viewer::of_user(process.uid)), (1, true));
        let others = usize::from(process == ROOT);
        assert_eq!(shown(Viewer::User(BOB.uid)), (others, false));
        assert_eq!(shown(Viewer::Nobody), (others, false));
    }
}

#[test]
fn every_viewer_sees_the_queues_in_the_kernel_or_why_they_are_missing() {
    let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
    let viewers = [Viewer::All, Viewer::User(BOB.uid), Viewer::Nobody];
    registry.set_kernel_queues(KernelQueueReading {
        queues: vec![KernelQueueEntry { index: 2, ..KernelQueueEntry::default() }],
        problem: None,
    });
    for viewer in viewers {
        let document = registry.document(viewer);
        assert_eq!((document.kernel_queues[0].index, document.totals.kernel_queues), (2, 1));
        assert_eq!((document.hidden_rows, document.kernel_queues_problem), (0, None));
    }
    let problem = Some("not permitted".to_owned());
    registry.set_kernel_queues(KernelQueueReading { queues: Vec::new(), problem: problem.clone() });
    for viewer in viewers {
        let document = registry.document(viewer);
        assert_eq!((document.kernel_queues.len(), &document.kernel_queues_problem), (0, &problem));
    }
}

#[test]
fn rows_end_with_their_socket_and_with_their_process() {
    let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
    let id = opened(&mut registry, ANN);
    for number in 1..=3 {
        send(&mut registry, id, &socket(number)).unwrap();
    }
    send(&mut registry, id, &socket(2)).unwrap();
    let gone = json!({ "gone": { "kind": "socket", "number": 1 } }).to_string();
    send(&mut registry, id, gone.as_bytes()).unwrap();
    assert_eq!(seen(&registry, Viewer::All).0, [2, 3]);
    registry.close(id);
    assert_eq!(seen(&registry, Viewer::All).0, Vec::<u64>::new());
    assert!(registry.bytes.is_empty(), "{:?}", registry.bytes);
}

#[test]
fn the_rows_of_a_user_are_bounded_and_leave_room_for_others() {
    let limits =
        PublicationLimits { publishers: 4, publishers_of_user: 2, bytes: 100_000, bytes_of_user: 10_000 };
    let mut registry = RowRegistry::new(limits);
    let ids = [opened(&mut registry, ANN), opened(&mut registry, ANN)];
    assert_eq!(registry.open(ANN), Err(PublishedLineError::Full));
    for number in 0..100 {
        send(&mut registry, ids[number as usize % 2], &socket(number)).unwrap();
    }
    let of_ann = seen(&registry, Viewer::of_user(ANN.uid)).0.len();
    assert!((1..10).contains(&of_ann), "{of_ann} rows");
    let bob = opened(&mut registry, BOB);
    send(&mut registry, bob, &socket(7)).unwrap();
    assert_eq!(seen(&registry, Viewer::of_user(BOB.uid)).0, [7]);
    assert_eq!((registry.refused_publishers, registry.refused_rows), (1, 100 - of_ann as u64));
    // A row that is too large by itself is refused, too.
    let large = json!({ "socket": { "socket": 8, "peer": "x".repeat(LARGEST_ROW) } }).to_string();
    let root = opened(&mut registry, ROOT);
    send(&mut registry, root, large.as_bytes()).unwrap();
    assert_eq!(seen(&registry, Viewer::All).0.len(), of_ann + 1);
}

/// Four users work together.
#[test]
fn users_take_no_place_of_the_system() {
    let limits =
        PublicationLimits { publishers: 8, publishers_of_user: 2, bytes: 100_000, bytes_of_user: 40_000 };
    let mut registry = RowRegistry::new(limits);
    let mut ids = Vec::new();
    for pid in 0..8 {
        ids.extend(registry.open(Process { pid, uid: 1000 + pid / 2 }));
    }
    assert_eq!((ids.len(), registry.refused_publishers), (6, 2));
    for id in &ids {
        send(&mut registry, *id, &hello()).unwrap();
        for number in 0..100 {
            send(&mut registry, *id, &socket(number)).unwrap();
        }
    }
    let taken: usize = registry.bytes.values().sum();
    assert!((60_000..=75_000).contains(&taken), "{taken} bytes");
    let before = registry.refused_rows;
    for process in [ROOT, Process { pid: 2, uid: 61_200 }] {
        let id = opened(&mut registry, process);
        send(&mut registry, id, &socket(7)).unwrap();
    }
    assert_eq!(registry.refused_rows, before);
    assert_eq!(registry.open(ROOT), Err(PublishedLineError::Full));
}

#[test]
fn other_lines_are_errors() {
    let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
    let id = registry.open(ANN).unwrap();
    assert!(
        matches!(send(&mut registry, id, &socket(1)), Err(PublishedLineError::Malformed(_))),
        "before hello"
    );
    let version = json!({ "hello": { "version": 2, "program": "video" } }).to_string();
    assert_eq!(send(&mut registry, id, version.as_bytes()), Err(PublishedLineError::Version(2)));
    send(&mut registry, id, &hello()).unwrap();
    for line in ["", "{}", "[]", "{\"socket\":{\"socket\":\"a\"}}", "{\"unknown\":1}"] {
        assert!(send(&mut registry, id, line.as_bytes()).is_err(), "{line}");
    }
}

/// Each of these lines is within the limit of a row, and would take a hundred times its length.
#[test]
fn short_lines_take_no_more_memory_than_they_are_counted_for() {
    let many = |item: &str, number: usize| vec![item; number].join(",");
    for line in [
        format!("{{\"socket\":{{\"send\":{{\"limits\":[{}]}}}}}}", many("{}", 5000)),
        format!("{{\"socket\":{{\"receive\":{{\"violations\":[{}]}}}}}}", many("{}", 5000)),
        format!(
            "{{\"socket\":{{\"send\":{{\"delay_buckets_ms\":{{\"bounds\":[],\"sum\":0,\"counts\":[{}]}}}}}}}}",
            many("1", 5000)
        ),
    ] {
        assert!(line.len() <= LARGEST_ROW, "{}", line.len());
        assert!(PublishedLine::parse(line.as_bytes()).is_err(), "{line}");
    }
    // The shortest row counts with its own size.
    let limits = PublicationLimits { bytes_of_user: 1 << 20, ..PublicationLimits::DEFAULT };
    let mut registry = RowRegistry::new(limits);
    let id = opened(&mut registry, ANN);
    for number in 0..10_000 {
        let line = format!("{{\"socket\":{{\"socket\":{number}}}}}");
        send(&mut registry, id, line.as_bytes()).unwrap();
    }
    let rows = seen(&registry, Viewer::All).0.len();
    assert!((100..1000).contains(&rows) && rows * size_of::<SocketRow>() <= 1 << 20, "{rows} rows");
}

#[test]
fn long_texts_are_cut() {
    let (long, longer) = ("ü".repeat(500), "x".repeat(3000));
    let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
    let id = opened(&mut registry, ANN);
    let mut statistics = Statistics::default();
    statistics.forward.name.clone_from(&long);
    statistics.forward.queue = "sieve".to_owned();
    for line in [
        json!({ "socket": {
            "local": long, "refusal": long, "send": { "violations": [{ "origin": long }], "offered": longer }
        } }),
        json!({ "program": { "program": long } }),
        json!({ "router": statistics }),
    ] {
        send(&mut registry, id, line.to_string().as_bytes()).unwrap();
    }
    let document = registry.document(Viewer::All);
    let cut = format!("{}…", "ü".repeat(126));
    let socket = &document.sockets[0].socket;
    let direction = &document.routers[0].router.forward;
    let names = [&socket.local, &socket.send.violations[0].origin, &document.programs[0].row.program];
    assert!(names.into_iter().chain([&direction.name]).all(|name| *name == cut), "{cut}");
    assert_eq!((socket.refusal.as_ref(), direction.queue.as_str()), (Some(&long), "sieve"));
    assert_eq!(socket.send.offered, format!("{}…", "x".repeat(1021)));
}

#[test]
fn numbers_of_publishers_begin_again() {
    let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
    registry.next = NUMBERS - 1;
    assert_eq!([registry.open(ANN), registry.open(ANN)], [Ok(NUMBERS - 1), Ok(0)]);
}

proptest! {
    #[test]
    fn no_line_does_harm(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let id = opened(&mut registry, ANN);
        for line in lines {
            let _refused = send(&mut registry, id, &line);
        }
        registry.close(id);
        prop_assert!(registry.bytes.is_empty());
    }
}

//! History of a host: a point each second for every direction of a router, every queue in the kernel and every socket, in fixed memory.

use crate::links::{HostLink, LinkKey};
use crate::listing::{PlaceClaim, share_places};
use crate::registry::{Process, RowRegistry, Viewer};
use cutline_publish::SocketRow;
use cutline_router::Loss;
use cutline_router_service::{DirectionInterval, DirectionStatistics, PacketCount, SieveStatistics};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Length of the history, s.
pub const SECONDS: usize = 900;
/// The most links with a history.
const MOST_LINKS: usize = 64;
/// The most sockets with a history.
const MOST_SOCKETS: usize = 1000;

/// Columns of the history of a link.
pub const DIRECTION_COLUMNS: [&str; 13] = [
    "received_bps",
    "sent_bps",
    "rate_bps",
    "wait_p50_ms",
    "wait_p99_ms",
    "backlog_bytes",
    "dropped_early_per_s",
    "dropped_overflow_per_s",
    "dropped_other_per_s",
    "marked_per_s",
    "below_fair_share_bps",
    "above_fair_share_bps",
    "probability",
];
/// Columns of the history of a socket.
pub const SOCKET_COLUMNS: [&str; 6] =
    ["sent_bps", "received_bps", "delay_p99_ms", "jitter_p99_ms", "loss_percent", "violations"];

/// Process of a socket, and its number there.
type SocketKey = (u32, u64);

/// The values of a series, one point a second. A value that is not known is NaN.
#[derive(Debug)]
struct Series<const N: usize> {
    owner: u32,
    title: String,
    points: VecDeque<(f64, [f32; N])>,
    /// The second in which it was last seen. Of sockets, those that are not seen have none.
    seen: u64,
}

/// The history.
#[derive(Debug, Default)]
pub struct History {
    second: u64,
    links: BTreeMap<LinkKey, Series<{ DIRECTION_COLUMNS.len() }>>,
    sockets: BTreeMap<SocketKey, Series<{ SOCKET_COLUMNS.len() }>>,
    /// The last statistics of each link with their time, s. A second is their difference.
    last: BTreeMap<LinkKey, (f64, DirectionStatistics)>,
}

/// A series for readers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesDocument {
    /// The title: a direction of a router, the interface of a queue in the kernel, or the two addresses of a socket.
    pub title: String,
    /// Number of the process; null of a queue in the kernel.
    pub pid: Option<u32>,
    /// Number of the socket in its process; null of a link.
    pub socket: Option<u64>,
    /// Interface of a queue in the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// True for the reverse direction of a router.
    pub is_reverse: bool,
    /// Names of the values, with their units.
    pub columns: &'static [&'static str],
    /// Times of the points, since 1970, s.
    pub at_unix_s: Vec<f64>,
    /// The values of each column; null where a value is not known.
    pub values: Vec<Vec<Option<f32>>>,
}

impl<const N: usize> Series<N> {
    const fn new(owner: u32, title: String) -> Self {
        Self { owner, title, points: VecDeque::new(), seen: 0 }
    }

    fn push(&mut self, at: f64, point: [f32; N]) {
        if self.points.len() == SECONDS {
            self.points.pop_front();
        }
        self.points.push_back((at, point));
    }

    /// Returns the series without its identity.
    fn document(&self, columns: &'static [&'static str], since: f64) -> SeriesDocument {
        let from = self.points.partition_point(|(at, _)| *at <= since);
        let column = |column: usize| {
            self.points
                .range(from..)
                .map(|(_, values)| Some(values[column]).filter(|value| value.is_finite()))
                .collect()
        };
        SeriesDocument {
            title: self.title.clone(),
            columns,
            at_unix_s: self.points.range(from..).map(|(at, _)| *at).collect(),
            values: (0..N).map(column).collect(),
            ..SeriesDocument::default()
        }
    }
}

impl History {
    /// Adds a second.
    pub fn note(&mut self, at: f64, registry: &RowRegistry) {
        self.second += 1;
        self.note_links(at, registry);
        self.note_sockets(at, registry);
    }

    fn note_links(&mut self, at: f64, registry: &RowRegistry) {
        let links: BTreeMap<LinkKey, HostLink<'_>> =
            registry.links().map(|link| (link.key.clone(), link)).collect();
        // A process whose number was used again is another one.
        self.links.retain(|key, series| links.get(key).is_none_or(|link| link.owner == series.owner));
        // The history of a removed link is dropped once its points are no longer shown.
        let oldest = self.second.saturating_sub(SECONDS as u64);
        self.links.retain(|key, series| series.seen > oldest || links.contains_key(key));
        let listed = self.listed_links(&links);
        self.links.retain(|key, _| listed.contains(key));
        let mut before_all = std::mem::take(&mut self.last);
        for (key, link) in links.into_iter().filter(|(key, _)| listed.contains(key)) {
            let before = before_all.remove(&key).filter(|_| self.links.contains_key(&key));
            let new = || Series::new(link.owner, link.direction.name.clone());
            let series = self.links.entry(key.clone()).or_insert_with(new);
            series.seen = self.second;
            if let Some((elapsed_s, before)) = before {
                // A router that does not answer publishes the same document; it has no new second.
                let interval = DirectionInterval::new(&before, link.direction, link.elapsed_s - elapsed_s);
                if let Some(interval) = interval {
                    series.push(at, direction_point(&interval));
                }
            }
            self.last.insert(key, (link.elapsed_s, link.direction.clone()));
        }
    }

    /// Returns the links that have a history. Present ones of the system come first. Of a user, those that have one come before new ones, and
    /// those that are gone come last.
    fn listed_links(&self, links: &BTreeMap<LinkKey, HostLink<'_>>) -> BTreeSet<LinkKey> {
        let present = links.values().map(|link| (&link.key, PlaceClaim::of_router(link.owner)));
        let gone = self.links.iter().filter(|(key, _)| !links.contains_key(key));
        let gone = gone.map(|(key, series)| (key, PlaceClaim::Turn(series.owner)));
        let mut all: Vec<(&LinkKey, PlaceClaim)> = present.chain(gone).collect();
        if all.len() > MOST_LINKS {
            all.sort_by_key(|(key, _)| {
                let seen = self.links.get(key).map(|series| series.seen);
                (!links.contains_key(key), Reverse(seen))
            });
            share_places(&mut all, MOST_LINKS, |(_, claim)| *claim);
        }
        all.into_iter().map(|(key, _)| key.clone()).collect()
    }

    fn note_sockets(&mut self, at: f64, registry: &RowRegistry) {
        let mut sockets: Vec<(SocketKey, u32, &SocketRow)> =
            registry.sockets().map(|(Process { pid, uid }, row)| ((pid, row.socket), uid, row)).collect();
        if sockets.len() > MOST_SOCKETS {
            // Those that have a history come before new ones.
            sockets.sort_by_key(|(key, _, _)| !self.sockets.contains_key(key));
            share_places(&mut sockets, MOST_SOCKETS, |(_, owner, _)| PlaceClaim::Turn(*owner));
        }
        // The histories of sockets that are gone, or no longer have a place, are dropped.
        let mut before = std::mem::take(&mut self.sockets);
        for (key, owner, row) in sockets {
            // Two publishers of a process may state the same number.
            if self.sockets.contains_key(&key) {
                continue;
            }
            let title = || format!("{} {} - {}", row.transport, row.local, row.peer);
            // A process whose number was used again is another one.
            let kept = before.remove(&key).filter(|series| series.owner == owner);
            let mut series = kept.unwrap_or_else(|| Series::new(owner, title()));
            series.push(at, socket_point(row));
            self.sockets.insert(key, series);
        }
    }

    /// Returns the series of links that a viewer may see, with their points after a time since 1970, s.
    pub fn links(&self, viewer: Viewer, since: f64) -> Vec<SeriesDocument> {
        let seen = self.links.iter().filter(|(_, series)| viewer.sees_router(series.owner));
        seen.map(|(key, series)| {
            let series = series.document(&DIRECTION_COLUMNS, since);
            match key {
                LinkKey::Router { pid, is_reverse } => {
                    SeriesDocument { pid: Some(*pid), is_reverse: *is_reverse, ..series }
                }
                LinkKey::Kernel { interface } => {
                    SeriesDocument { interface: Some(interface.clone()), ..series }
                }
            }
        })
        .collect()
    }

    /// Returns the series of a socket with its points after a time since 1970, s; `None` if there is none, or the viewer may not see it.
    pub fn socket(&self, viewer: Viewer, (pid, number): (u32, u64), since: f64) -> Option<SeriesDocument> {
        let series = self.sockets.get(&(pid, number)).filter(|series| viewer.sees(series.owner))?;
        let document = series.document(&SOCKET_COLUMNS, since);
        Some(SeriesDocument { pid: Some(pid), socket: Some(number), ..document })
    }
}

fn direction_point(interval: &DirectionInterval<'_>) -> [f32; DIRECTION_COLUMNS.len()] {
    let after = interval.after();
    let dropped = |loss: Loss| interval.per_second(|direction| direction.lost(loss).packets);
    let (early, overflow) = (dropped(Loss::Early), dropped(Loss::Overflow));
    let other = interval.per_second(DirectionStatistics::dropped_packets) - early - overflow;
    let waits = interval.waits();
    let wait = |q| waits.quantile_ms(q).unwrap_or(f64::NAN);
    let has_shares = interval.before().sieve.is_some() && after.sieve.is_some();
    let share = |of: fn(&SieveStatistics) -> PacketCount| {
        if !has_shares {
            return f64::NAN;
        }
        8.0 * interval.per_second(|direction| direction.sieve.as_ref().map_or(0, |sieve| of(sieve).bytes))
    };
    [
        interval.received_bps(),
        interval.sent_bps(),
        after.rate_bps as f64,
        wait(0.5),
        wait(0.99),
        after.backlog.bytes as f64,
        early,
        overflow,
        other.max(0.0),
        interval.per_second(|direction| direction.marked.packets),
        share(|sieve| sieve.below_fair_share),
        share(|sieve| sieve.above_fair_share),
        after.probability.unwrap_or(f64::NAN),
    ]
    .map(|value| value as f32)
}

fn socket_point(row: &SocketRow) -> [f32; SOCKET_COLUMNS.len()] {
    let bps = |throughput: Option<u64>| throughput.map_or(f64::NAN, |bps| bps as f64);
    // Its delays and losses are those of the direction that the application uses more.
    let used = if row.receive.received_bytes >= row.send.sent_bytes { &row.receive } else { &row.send };
    [
        bps(row.send.throughput_bps),
        bps(row.receive.throughput_bps),
        used.last_delay.as_ref().map_or(f64::NAN, |delay| delay.p99_ms),
        used.last_jitter.as_ref().map_or(f64::NAN, |jitter| jitter.p99_ms),
        used.loss_percent.unwrap_or(f64::NAN),
        (row.send.violations.len() + row.receive.violations.len()) as f64,
    ]
    .map(|value| value as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::KernelQueueEntry;
    use crate::kernel_queues::KernelQueueReading;
    use crate::registry::{PublicationLimits, PublishedLine};
    use cutline_publish::VERSION;
    use cutline_router_service::{QdiscDocument, Statistics};
    use serde_json::json;

    /// Opens a publisher.
    fn opened(registry: &mut RowRegistry, process: Process) -> u32 {
        let id = registry.open(process).unwrap();
        let hello = json!({ "hello": { "version": VERSION, "program": "router" } }).to_string();
        send(registry, id, &hello);
        id
    }

    fn send(registry: &mut RowRegistry, id: u32, line: &str) {
        registry.take(id, PublishedLine::parse(line.as_bytes()).unwrap()).unwrap();
    }

    fn registry() -> (RowRegistry, u32) {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let id = opened(&mut registry, Process { pid: 5, uid: 0 });
        (registry, id)
    }

    fn publish(registry: &mut RowRegistry, id: u32, seconds: u64) {
        let mut statistics = Statistics { elapsed_s: seconds as f64, ..Statistics::default() };
        statistics.forward.name = "a -> b".to_owned();
        statistics.forward.sent.bytes = seconds * seconds * 1_000_000;
        statistics.forward.waits_us.bounds = vec![1000.0, 2000.0];
        statistics.forward.waits_us.counts = vec![100 * seconds, 0, 0];
        send(registry, id, &json!({ "router": statistics }).to_string());
    }

    #[test]
    fn a_second_is_the_difference_of_two_documents() {
        let (mut registry, id) = registry();
        let mut history = History::default();
        for second in 1..=3 {
            publish(&mut registry, id, second);
            history.note(second as f64, &registry);
        }
        let series = history.links(Viewer::All, 0.0);
        assert_eq!((series.len(), series[0].title.as_str()), (2, "a -> b"));
        let column = |name: &str| {
            let at = series[0].columns.iter().position(|column| *column == name).unwrap();
            series[0].values[at].clone()
        };
        assert_eq!(series[0].at_unix_s, [2.0, 3.0]);
        assert_eq!(column("sent_bps"), [Some(24e6), Some(40e6)]);
        assert_eq!(column("wait_p50_ms"), [Some(0.5), Some(0.5)]);
        assert_eq!(column("probability"), [None, None]);
        // A reader who has the points up to a time gets those behind it.
        let later = &history.links(Viewer::All, 2.0)[0];
        assert_eq!(later.at_unix_s, [3.0]);
        let sent = DIRECTION_COLUMNS.iter().position(|column| *column == "sent_bps").unwrap();
        assert_eq!(later.values[sent], [Some(40e6)]);
        assert!(later.values.iter().all(|column| column.len() == 1));
    }

    #[test]
    fn a_queue_in_the_kernel_has_a_history_by_its_interface() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let mut history = History::default();
        for second in [1, 2, 3, 1] {
            let mut queue = QdiscDocument { elapsed_s: second as f64, ..QdiscDocument::default() };
            queue.interface.push_str("eth0");
            queue.statistics.name.push_str("eth0");
            queue.statistics.sent.bytes = second * 1_000_000;
            let queues = vec![KernelQueueEntry { index: 2, queue: queue.into() }];
            registry.set_kernel_queues(KernelQueueReading { queues, problem: None });
            history.note(history.second as f64, &registry);
        }
        // The fourth reading is of a queue that was added again, so it has no second.
        let series = history.links(Viewer::Nobody, 0.0);
        assert_eq!((series.len(), series[0].title.as_str(), series[0].pid), (1, "eth0", None));
        assert_eq!((series[0].interface.as_deref(), series[0].at_unix_s.len()), (Some("eth0"), 2));
        assert_eq!(series[0].values[1], [Some(8e6), Some(8e6)]);
    }

    #[test]
    fn memory_is_fixed_however_long_it_lasts_and_however_many_there_are() {
        let (mut registry, id) = registry();
        let mut history = History::default();
        for number in 0..MOST_SOCKETS as u64 + 10 {
            send(&mut registry, id, &json!({ "socket": { "socket": number } }).to_string());
        }
        for second in 1..=SECONDS as u64 + 20 {
            publish(&mut registry, id, second);
            history.note(second as f64, &registry);
        }
        let series = history.links(Viewer::All, 0.0);
        assert_eq!(series[0].at_unix_s.len(), SECONDS);
        assert_eq!(history.sockets.len(), MOST_SOCKETS);
        assert!(history.sockets.values().all(|series| series.points.len() == SECONDS));
        registry.close(id);
        history.note(1e6, &registry);
        assert_eq!((history.sockets.len(), history.last.len()), (0, 0));
    }

    /// A user with made-up routers and sockets takes as many places as there are, and others come later.
    #[test]
    fn a_user_takes_no_history_of_others() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let mut history = History::default();
        let ann: Vec<u32> = (0..100).map(|pid| opened(&mut registry, Process { pid, uid: 1000 })).collect();
        for number in 0..2 * MOST_SOCKETS as u64 {
            send(&mut registry, ann[0], &json!({ "socket": { "socket": number } }).to_string());
        }
        let mut second = 0;
        let mut pass = |registry: &mut RowRegistry, history: &mut History, ids: &[u32]| {
            second += 1;
            for id in ids {
                publish(registry, *id, second);
            }
            history.note(second as f64, registry);
        };
        for _ in 0..3 {
            pass(&mut registry, &mut history, &ann);
        }
        assert_eq!((history.links.len(), history.last.len()), (MOST_LINKS, MOST_LINKS));
        let late: Vec<u32> = [(2000, 0), (2001, 61_200), (2002, 1001)]
            .map(|(pid, uid)| opened(&mut registry, Process { pid, uid }))
            .to_vec();
        for id in &late {
            send(&mut registry, *id, &json!({ "socket": { "socket": 1 } }).to_string());
        }
        let all = [ann, late.clone()].concat();
        for _ in 0..3 {
            pass(&mut registry, &mut history, &all);
        }
        let points = |history: &History, pid: u32| -> Vec<usize> {
            [false, true]
                .map(|is_reverse| history.links.get(&LinkKey::Router { pid, is_reverse }))
                .into_iter()
                .flatten()
                .map(|series| series.points.len())
                .collect()
        };
        for pid in [2000, 2001, 2002] {
            assert_eq!(points(&history, pid), [2, 2], "{pid}");
            assert_eq!(history.sockets[&(pid, 1)].points.len(), 3);
        }
        assert_eq!((history.links.len(), history.sockets.len()), (MOST_LINKS, MOST_SOCKETS));
        // Those of the user that remain are the same as before.
        let kept = history.links.values().filter(|series| series.owner == 1000);
        assert!(
            kept.clone().count() == MOST_LINKS - 6 && kept.clone().all(|series| series.points.len() == 5)
        );
        assert!(history.sockets.iter().all(|((pid, _), series)| *pid >= 2000 || series.points.len() == 6));
        // A router that is gone has its place further on, and a new one of its user takes it.
        registry.close(late[2]);
        pass(&mut registry, &mut history, &all);
        assert_eq!(points(&history, 2002), [2, 2]);
        assert_eq!(points(&history, 2000), [3, 3]);
    }

    /// Numbers of processes are used again.
    #[test]
    fn another_user_takes_over_no_history() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let mut history = History::default();
        for uid in [1000, 1001] {
            let id = opened(&mut registry, Process { pid: 7, uid });
            send(&mut registry, id, &json!({ "socket": { "socket": 3 } }).to_string());
            for second in 1..=3 {
                publish(&mut registry, id, second);
                history.note(second as f64, &registry);
            }
            registry.close(id);
        }
        assert!(history.links(Viewer::User(1000), 0.0).is_empty());
        assert!(history.socket(Viewer::User(1000), (7, 3), 0.0).is_none());
        assert_eq!(history.links(Viewer::User(1001), 0.0)[0].at_unix_s.len(), 2);
        assert_eq!(history.socket(Viewer::User(1001), (7, 3), 0.0).unwrap().at_unix_s.len(), 3);
    }

    #[test]
    fn a_viewer_sees_its_own_sockets() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let id = registry.open(Process { pid: 7, uid: 1000 }).unwrap();
        let hello = json!({ "hello": { "version": VERSION, "program": "video" } }).to_string();
        send(&mut registry, id, &hello);
        send(&mut registry, id, &json!({ "socket": { "socket": 3 } }).to_string());
        let mut history = History::default();
        history.note(1.0, &registry);
        assert!(history.socket(Viewer::User(1000), (7, 3), 0.0).is_some());
        assert!(history.socket(Viewer::User(1001), (7, 3), 0.0).is_none());
        assert!(history.socket(Viewer::All, (7, 4), 0.0).is_none());
    }

    #[test]
    fn a_socket_that_is_stated_twice_has_one_history() {
        let mut registry = RowRegistry::new(PublicationLimits::DEFAULT);
        let mut history = History::default();
        for _ in 0..2 {
            let id = opened(&mut registry, Process { pid: 7, uid: 1000 });
            send(&mut registry, id, &json!({ "socket": { "socket": 3 } }).to_string());
        }
        for second in 1..=3 {
            history.note(f64::from(second), &registry);
        }
        assert_eq!(history.socket(Viewer::All, (7, 3), 0.0).unwrap().at_unix_s, [1.0, 2.0, 3.0]);
    }
}

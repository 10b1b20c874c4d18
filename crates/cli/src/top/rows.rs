//! Rows of the tables: values of a document and, for rates of links, of the one before it.

use cutline_monitor::{HostDocument, RouterEntry, SocketEntry};
use cutline_publish::DirectionRow;
use cutline_router_service::Direction;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    Links,
    Sockets,
    Programs,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    pub is_number: bool,
}

/// A cell: its text, and its value where it is a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    pub text: String,
    pub value: Option<f64>,
    /// True if the cell needs attention.
    pub is_bad: bool,
}

/// A row: its identity, its cells, and what its history shows.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub key: String,
    pub cells: Vec<Cell>,
    /// Throughput (bit/s), delay (ms) and loss (%) of this second.
    pub point: [Option<f64>; 3],
    /// Facts that the history shows, a sentence each.
    pub facts: Vec<String>,
}

const fn word(title: &'static str) -> Column {
    Column { title, is_number: false }
}

const fn number(title: &'static str) -> Column {
    Column { title, is_number: true }
}

const LINKS: [Column; 11] = [
    word("link"),
    word("queue"),
    number("rate"),
    number("sent"),
    number("% of rate"),
    number("p50 ms"),
    number("p99 ms"),
    number("waiting"),
    number("early/s"),
    number("full/s"),
    number("marked/s"),
];
const SOCKETS: [Column; 11] = [
    word("program"),
    word("transport"),
    word("peer"),
    word("state"),
    word("violated"),
    number("hint"),
    number("sent"),
    number("received"),
    number("p50 ms"),
    number("p99 ms"),
    number("loss %"),
];
const PROGRAMS: [Column; 6] =
    [word("program"), word("method"), number("hint"), number("sockets"), number("messages"), number("bytes")];

impl Tab {
    pub const ALL: [Self; 3] = [Self::Links, Self::Sockets, Self::Programs];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Links => "Links",
            Self::Sockets => "QoS sockets",
            Self::Programs => "Programs",
        }
    }

    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Links => &LINKS,
            Self::Sockets => &SOCKETS,
            Self::Programs => &PROGRAMS,
        }
    }

    /// Returns what is missing and what brings it, where a table has no rows.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Links => {
                "no router publishes; `sudo cutline router up --lan eth0 --wan eth1 --rate 19Mbit` starts one"
            }
            Self::Sockets => {
                "no program with QoS sockets publishes for this user; programs with libcutline and gateways (`cutline gateway`) do"
            }
            Self::Programs => {
                "no program runs under `cutline exec`; `cutline exec --class video -- PROGRAM` starts one"
            }
        }
    }
}

/// Returns the rows of a table.
pub fn rows(tab: Tab, now: &HostDocument, before: Option<&HostDocument>) -> Vec<Row> {
    match tab {
        Tab::Links => links(now, before),
        Tab::Sockets => now.sockets.iter().map(socket).collect(),
        Tab::Programs => now.programs.iter().map(program).collect(),
    }
}

impl Cell {
    /// A text without a value.
    fn word(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None, is_bad: false }
    }

    /// A value, shown as `text` writes it; `-` for none.
    fn value(value: Option<f64>, text: impl Fn(f64) -> String) -> Self {
        Self { text: value.map_or_else(|| "-".to_owned(), text), value, is_bad: false }
    }

    /// A number with about three digits.
    fn number(value: Option<f64>) -> Self {
        Self::value(value, digits)
    }

    /// A whole number.
    fn count(value: Option<f64>) -> Self {
        Self::value(value, |count| format!("{count:.0}"))
    }

    /// A rate, bit/s.
    fn rate(value: Option<f64>) -> Self {
        Self::value(value, rate)
    }

    fn bad_if(self, is_bad: bool) -> Self {
        Self { is_bad, ..self }
    }
}

/// A number with about three digits.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// A rate with its unit.
pub fn rate(bps: f64) -> String {
    match bps {
        bps if bps >= 1e9 => format!("{} Gbit/s", digits(bps / 1e9)),
        bps if bps >= 1e6 => format!("{} Mbit/s", digits(bps / 1e6)),
        bps if bps >= 1e3 => format!("{} kbit/s", digits(bps / 1e3)),
        bps => format!("{} bit/s", digits(bps)),
    }
}

fn links(now: &HostDocument, before: Option<&HostDocument>) -> Vec<Row> {
    let rows = now.routers.iter().flat_map(|router| {
        let earlier = before.and_then(|before| before.routers.iter().find(|it| it.pid == router.pid));
        [false, true].map(|is_reverse| link(router, earlier, is_reverse))
    });
    rows.collect()
}

fn link(router: &RouterEntry, earlier: Option<&RouterEntry>, is_reverse: bool) -> Row {
    let now = router.router.direction(is_reverse);
    let seconds = earlier.map(|earlier| router.router.elapsed_s - earlier.router.elapsed_s);
    let before = earlier.map(|earlier| earlier.router.direction(is_reverse));
    let pair = before.zip(seconds.filter(|seconds| *seconds > 0.0));
    let per_second = |of: &dyn Fn(&Direction) -> u64| {
        pair.map(|(before, seconds)| of(now).saturating_sub(of(before)) as f64 / seconds)
    };
    let lost = |reason: &'static str| {
        per_second(&move |direction| direction.dropped.get(reason).map_or(0, |count| count.packets))
    };
    let waits = pair.map(|(before, _)| now.waits_us.since(&before.waits_us));
    let wait = |q| waits.as_ref().and_then(|waits| waits.quantile(q)).map(|us| us / 1e3);
    let sent = per_second(&|direction| direction.sent.bytes).map(|bytes| 8.0 * bytes);
    let share = sent.map(|sent| 100.0 * sent / now.rate_bps.max(1) as f64);
    let (early, full) = (lost("early"), lost("overflow"));
    let cells = vec![
        Cell::word(&now.name),
        Cell::word(&now.queue),
        Cell::rate(Some(now.rate_bps as f64)),
        Cell::rate(sent),
        Cell::number(share),
        Cell::number(wait(0.5)),
        Cell::number(wait(0.99)),
        Cell::count(Some(now.backlog.packets as f64)),
        Cell::number(early),
        Cell::number(full).bad_if(full.is_some_and(|full| full > 0.0)),
        Cell::number(per_second(&|direction| direction.marked.packets)),
    ];
    let mut facts = vec![format!("queue {} at {}", now.queue, rate(now.rate_bps as f64))];
    if let Some(sieve) = &now.sieve {
        facts.push(format!(
            "fair share of a flow {}; {} packets below it did not wait behind others, {} above it waited in lanes",
            rate(sieve.fair_share_bps as f64),
            sieve.below_fair_share.packets,
            sieve.above_fair_share.packets
        ));
    }
    let dropped = now.dropped.iter().filter(|(_, count)| count.packets > 0);
    facts.extend(dropped.map(|(reason, count)| format!("{} packets dropped: {reason}", count.packets)));
    let key = format!("{}/{is_reverse}", router.pid);
    Row { key, cells, point: [sent, wait(0.99), None], facts }
}

/// The direction that an application uses more: what its delays and losses are about.
fn used(entry: &SocketEntry) -> &DirectionRow {
    let (send, receive) = (&entry.socket.send, &entry.socket.receive);
    if receive.received_bytes >= send.sent_bytes { receive } else { send }
}

fn socket(entry: &SocketEntry) -> Row {
    let (it, used) = (&entry.socket, used(entry));
    let directions = [("sends", &it.send), ("receives", &it.receive)];
    let violated: Vec<&str> = directions
        .iter()
        .flat_map(|(_, direction)| &direction.violations)
        .map(|violation| violation.measure.as_str())
        .collect();
    let bps = |throughput: Option<u64>| throughput.map(|bps| bps as f64);
    let delay = used.last_delay.as_ref();
    let median = used.delay.as_ref().and_then(|delay| delay.p50_ms);
    let loss = used.loss_percent;
    let cells = vec![
        Cell::word(format!("{} ({})", entry.program, entry.pid)),
        Cell::word(&it.transport),
        Cell::word(&it.peer),
        Cell::word(&it.state).bad_if(it.state == "reconnecting"),
        Cell::word(if violated.is_empty() { "-".to_owned() } else { violated.join(", ") })
            .bad_if(!violated.is_empty()),
        Cell::count(it.hint.map(f64::from)),
        Cell::rate(bps(it.send.throughput_bps)),
        Cell::rate(bps(it.receive.throughput_bps)),
        Cell::number(median),
        Cell::number(delay.map(|delay| delay.p99_ms)),
        Cell::number(loss),
    ];
    let facts = directions.iter().flat_map(|(title, direction)| direction_facts(title, direction));
    let mut facts: Vec<String> = facts.collect();
    if it.reservation != "none" {
        let why = it.refusal.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        facts.push(format!("reservation: {}{why}", it.reservation));
    }
    let key = format!("{}/{}", entry.pid, it.socket);
    Row { key, cells, point: [bps(used.throughput_bps), delay.map(|delay| delay.p99_ms), loss], facts }
}

fn direction_facts(title: &str, direction: &DirectionRow) -> Vec<String> {
    if direction.effective.is_empty() && direction.sent_messages == 0 {
        return Vec::new();
    }
    let agreed = if direction.effective.is_empty() { "nothing is demanded" } else { &direction.effective };
    let counted = format!(
        "{title}: {agreed}; {} messages sent, {} received, {} lost",
        direction.sent_messages, direction.received_messages, direction.lost_messages
    );
    let violated = direction.violations.iter().map(|violation| {
        format!(
            "  violated for {} s: {} is {}, the limit is {}; origin: {}",
            digits(violation.for_s),
            violation.measure,
            digits(violation.measured),
            digits(violation.limit),
            violation.origin
        )
    });
    std::iter::once(counted).chain(violated).collect()
}

fn program(entry: &cutline_monitor::ProgramEntry) -> Row {
    let row = &entry.row;
    let cells = vec![
        Cell::word(format!("{} ({})", row.program, entry.pid)),
        Cell::word(&row.method),
        Cell::count(row.hint.map(f64::from)),
        Cell::count(Some(row.sockets as f64)),
        Cell::count(Some(row.messages as f64)),
        Cell::count(Some(row.bytes as f64)),
    ];
    Row { key: entry.pid.to_string(), cells, point: [None; 3], facts: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_router_service::Statistics;

    #[test]
    fn a_link_has_the_rates_of_the_last_second() {
        let document = |seconds: u64| {
            let mut router = Statistics { elapsed_s: seconds as f64, ..Statistics::default() };
            router.forward.name = "a -> b".to_owned();
            router.forward.rate_bps = 16_000_000;
            router.forward.sent.bytes = seconds * 1_000_000;
            router.forward.waits_us.bounds = vec![1000.0, 2000.0];
            router.forward.waits_us.counts = vec![0, 10 * seconds, 0];
            let routers = vec![RouterEntry { pid: 5, uid: 0, router: router.into() }];
            HostDocument { routers, ..HostDocument::default() }
        };
        let rows = rows(Tab::Links, &document(3), Some(&document(2)));
        assert_eq!(rows.len(), 2);
        let texts: Vec<&str> = rows[0].cells.iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(texts[..7], ["a -> b", "", "16.0 Mbit/s", "8.00 Mbit/s", "50.0", "1.50", "1.99"]);
        assert_eq!(super::rows(Tab::Links, &document(3), None)[0].cells[3].text, "-");
    }

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let mut document = HostDocument::default();
        document.sockets.push(SocketEntry::default());
        document.programs.push(cutline_monitor::ProgramEntry::default());
        document.routers.push(RouterEntry::default());
        for tab in Tab::ALL {
            let found = rows(tab, &document, Some(&document));
            assert!(!found.is_empty());
            assert!(found.iter().all(|row| row.cells.len() == tab.columns().len()), "{tab:?}");
            let numbers = tab.columns().iter().skip_while(|column| !column.is_number);
            assert!(numbers.into_iter().all(|column| column.is_number), "{tab:?}: words come first");
        }
    }
}

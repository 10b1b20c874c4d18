//! The tables: their titles, columns and charts, advice where they have no rows, and notes on missing rows.

use cutline_monitor::HostDocument;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    Links,
    Sockets,
    Programs,
    Reservations,
    Flows,
    Hosts,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub title: &'static str,
    pub is_number: bool,
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
const RESERVATIONS: [Column; 7] = [
    word("destination"),
    word("senders"),
    word("interface"),
    word("next hop"),
    word("style"),
    number("rate"),
    number("bucket B"),
];
const FLOWS: [Column; 11] = [
    word("link"),
    word("source"),
    word("destination"),
    word("protocol"),
    number("hint"),
    number("rate"),
    number("% of rate"),
    number("p50 ms"),
    number("p99 ms"),
    number("dropped %"),
    number("marked %"),
];
const HOSTS: [Column; 8] = [
    word("link"),
    word("host"),
    word("side"),
    number("flows"),
    number("rate"),
    number("% of rate"),
    number("mean wait ms"),
    number("dropped %"),
];

impl Tab {
    pub const ALL: [Self; 6] =
        [Self::Links, Self::Sockets, Self::Programs, Self::Reservations, Self::Flows, Self::Hosts];

    pub const fn title(self) -> &'static str {
        match self {
            Self::Links => "Links",
            Self::Sockets => "QoS sockets",
            Self::Programs => "Programs",
            Self::Reservations => "Reservations",
            Self::Flows => "Flows",
            Self::Hosts => "Hosts",
        }
    }

    pub const fn columns(self) -> &'static [Column] {
        match self {
            Self::Links => &LINKS,
            Self::Sockets => &SOCKETS,
            Self::Programs => &PROGRAMS,
            Self::Reservations => &RESERVATIONS,
            Self::Flows => &FLOWS,
            Self::Hosts => &HOSTS,
        }
    }

    /// Returns advice for a table without rows: the missing part, and the command for it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Links => {
                "no router publishes, and no queue in the kernel is known; `sudo cutline router up --lan eth0 --wan eth1 --rate 19Mbit` starts a router, `sudo cutline qdisc add dev eth0 --rate 19Mbit` adds a queue"
            }
            Self::Sockets => {
                "no program with QoS sockets publishes for this user; programs with libcutline and gateways (`cutline gateway`) do"
            }
            Self::Programs => {
                "no program runs under `cutline exec`; `cutline exec --class video -- PROGRAM` starts one"
            }
            Self::Reservations => {
                "no reservation is shown: cutlined publishes them with a table [monitor] in its file, and root sees them"
            }
            Self::Flows | Self::Hosts => {
                "no flow passes a router of this host, or this user may not see them: root sees those of the system's routers"
            }
        }
    }

    /// Returns the titles of the charts of a row's history: of a rate, of a time and of a share of losses; `None` where the rows have none.
    pub const fn charts(self) -> [Option<&'static str>; 3] {
        match self {
            Self::Links => [Some("sent"), Some("wait, 99th percentile"), None],
            Self::Sockets => [Some("throughput"), Some("delay, 99th percentile"), Some("loss")],
            Self::Programs => [Some("payload sent"), None, None],
            Self::Reservations => [Some("reserved rate"), None, None],
            Self::Flows => [Some("arriving"), Some("wait, 99th percentile"), Some("dropped")],
            // A host has no counters of its own: its flows come and go.
            Self::Hosts => [
                Some("arriving"),
                Some("mean wait since its flows were listed"),
                Some("dropped since its flows were listed"),
            ],
        }
    }

    /// Returns the omitted part of a table, and the reason; `None` if the table is complete.
    pub fn note(self, document: &HostDocument) -> Option<String> {
        match self {
            Self::Links => {
                let problem = document.kernel_queues_problem.as_ref()?;
                Some(format!("queues in the kernel are not shown: {problem}"))
            }
            Self::Reservations => {
                let state = document.reservations.as_ref()?;
                let (sessions, local) = (state.unlisted_sessions, state.unlisted_local);
                let all = "`cutline reservations` lists them";
                (sessions + local > 0).then(|| {
                    format!(
                        "{sessions} more sessions and {local} more local reservations are not shown: {all}"
                    )
                })
            }
            _ => None,
        }
    }
}

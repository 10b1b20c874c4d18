//! The table `[manager]` of the file of `cutlined`.
//!
//! ```toml
//! [manager]
//! combined = "900 Mbit/s"
//! datagrams = "600 Mbit/s"
//! cpu = 150
//! datagrams-cpu = 20
//! [manager.resources]
//! user-share = 0.25
//! [[manager.interface]]
//! name = "eth0"
//! rate = "1 Gbit/s"
//! [[manager.group]]
//! name = "video"
//! weight = 4
//! ```
//!
//! Rates that are absent come from the table of `cutline baseline` that `baseline` names.

use crate::access::{AccessRule, AccessRules};
use crate::prefix::AddressPrefix;
use cutline_allocation::DEFAULT_SOCKET;
use cutline_baseline::{BaselineDocument, Ceiling, HostFingerprint};
use cutline_config::{TableReader, ValueKind, kind, parameter};
use cutline_manager::feedback::{FeedbackParams, HostId, PathId};
use cutline_manager::resources::{
    Capacities, CpuShare, HIGHEST_PRIORITY, MOST_INTERFACES, MOST_WEIGHT, ResourceParams, UserPolicy,
};
use cutline_netlink::{HtbShaper, ShaperOptions};
use cutline_params::Parameters;
use cutline_sys::address::parse_listen_address;
use cutline_sys::clock::unix_time;
use cutline_units::Rate;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Settings of the resource manager.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagerSpec {
    /// Socket of its clients.
    pub socket: PathBuf,
    /// File of its state. The journal is beside it.
    pub state: PathBuf,
    /// Capacities without interfaces, whose numbers are known later.
    pub capacities: Capacities,
    /// Interfaces with their capacities.
    pub interfaces: Vec<ManagedInterface>,
    /// CPU time for 1 Gbit/s of TCP, and of datagrams.
    pub cpu_per_gbit: [CpuShare; 2],
    /// Users who may use it.
    pub access: AccessRules,
    /// Parameters of the resource manager.
    pub resources: ResourceParams,
    /// Parameters of the feedback of paths.
    pub feedback: FeedbackParams,
    /// This host's number on its paths.
    pub host: HostId,
    /// Address at which summaries of other hosts are received; `None` without other hosts.
    pub listen: Option<SocketAddr>,
    /// File with the keys of summaries; `None` without other hosts.
    pub keys: Option<PathBuf>,
    /// Paths.
    pub paths: Vec<ManagedPath>,
    /// Mark of packets when they are routed; 0 for none. The file has it beside the table.
    pub route_mark: u32,
    /// Settings that are allowed and probably not meant, a sentence each.
    pub warnings: Vec<String>,
}

/// An interface with a capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedInterface {
    /// Its name.
    pub name: String,
    /// Its capacity.
    pub rate: Rate,
    /// True if the kernel schedules its flows by class.
    pub has_classes: bool,
}

/// A path: flows that share a bottleneck.
#[derive(Clone, Debug, PartialEq)]
pub struct ManagedPath {
    /// Its number, the same at all its hosts.
    pub path: PathId,
    /// Destinations of its flows. Of several paths, the longest prefix counts.
    pub destinations: Vec<AddressPrefix>,
    /// Its other hosts.
    pub peers: Vec<ManagerPeer>,
}

/// Manager of another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagerPeer {
    /// Its number.
    pub host: HostId,
    /// Its address.
    pub address: SocketAddr,
}

/// Key of summaries.
#[derive(Clone, PartialEq, Eq)]
pub struct PathKey {
    /// Its number.
    pub id: u64,
    /// Its content, at least 32 bytes.
    pub secret: Vec<u8>,
}

impl std::fmt::Debug for PathKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PathKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// File of the state, unless the operator sets another one.
const DEFAULT_STATE: &str = "/run/cutline/manager.state";
/// Folders whose files a reboot removes.
const VOLATILE: [&str; 3] = ["/run", "/var/run", "/dev/shm"];
/// The most CPUs in a file.
const MOST_CPUS: i64 = 100_000;
/// The most hosts of a path.
const MOST_PEERS: usize = 4096;

impl Default for ManagerSpec {
    /// Returns the settings of an empty table.
    fn default() -> Self {
        Self {
            socket: DEFAULT_SOCKET.into(),
            state: DEFAULT_STATE.into(),
            capacities: Capacities::default(),
            interfaces: Vec::new(),
            cpu_per_gbit: [CpuShare::ZERO; 2],
            access: AccessRules::default(),
            resources: ResourceParams::default(),
            feedback: FeedbackParams::default(),
            host: HostId(0),
            listen: None,
            keys: None,
            paths: Vec::new(),
            route_mark: 0,
            warnings: Vec::new(),
        }
    }
}

impl ManagerSpec {
    /// Reads the table. Problems are reported to the reader of the file.
    pub fn read(table: &TableReader<'_>) -> Option<Self> {
        let socket = table.or("socket", &kind::absolute_path(), DEFAULT_SOCKET.to_owned()).into();
        let state = PathBuf::from(table.or("state", &kind::absolute_path(), DEFAULT_STATE.to_owned()));
        let mut warnings = Vec::new();
        let measured = measured(table, &mut warnings);
        let (is_measured, measured) = (measured.is_some(), measured.unwrap_or_default());
        let percent = |most| kind::whole_percentage(most).map(CpuShare::from_percent);
        let rate = |key, measured| table.optional(key, &kind::rate()).or(measured);
        let capacities = Capacities {
            tcp: rate("tcp", measured.tcp),
            datagrams: rate("datagrams", measured.datagrams),
            combined: rate("combined", measured.combined),
            cpu: table.optional("cpu", &percent(MOST_CPUS * 100)),
            ..Capacities::default()
        };
        let cost = percent(10_000);
        let costs = [("tcp-cpu", measured.tcp_cpu), ("datagrams-cpu", measured.datagrams_cpu)];
        let cpu_per_gbit = costs.map(|(key, measured)| table.or(key, &cost, measured));
        if is_measured && capacities.cpu.is_some() && cpu_per_gbit == [CpuShare::ZERO; 2] {
            table.lacks("tcp-cpu", "the CPU time for 1 Gbit/s, per cent of a CPU, here or in datagrams-cpu");
        }
        let interfaces = interfaces(table);
        let access = access(table);
        let resources = params::<ResourceParams>(table, "resources");
        let feedback = params::<FeedbackParams>(table, "feedback");
        let host = HostId(table.or("host", &kind::integer(0, i64::MAX), 0));
        let listen = table.optional("listen", &address());
        let keys = table.optional("keys", &kind::absolute_path()).map(PathBuf::from);
        let paths = paths(table, host);
        let has_peers = paths.iter().flatten().any(|path| !path.peers.is_empty());
        for (key, expected) in [
            ("host", "this host's number on its paths"),
            (
                "listen",
                "this host's address as the other hosts name it, for summaries, such as \"10.0.0.1:9467\"",
            ),
            ("keys", "the file with the keys of summaries"),
        ] {
            if has_peers && !table.has(key) {
                table.lacks(key, expected);
            }
        }
        if has_peers && VOLATILE.iter().any(|folder| state.starts_with(folder)) {
            warnings.push(format!(
                "manager.state: `{}` is lost at a reboot, and with it the numbers of summaries, so that an old summary of a peer can be replayed \
                 then: name a file on a disk, such as /var/lib/cutline/manager.state",
                state.display()
            ));
        }
        table.finish();
        let this = Self {
            socket,
            state,
            capacities,
            interfaces: interfaces?,
            cpu_per_gbit,
            access: access?,
            resources: resources?,
            feedback: feedback?,
            host,
            listen,
            keys,
            paths: paths?,
            route_mark: 0,
            warnings,
        };
        if let Err(error) = this.capacities.validate() {
            table.refuse(&error.parameter, &error.to_string());
            return None;
        }
        Some(this)
    }

    /// Returns the names of the interfaces that have classes of the kernel.
    pub fn classed_interfaces(&self) -> impl Iterator<Item = &String> {
        self.interfaces.iter().filter(|its| its.has_classes).map(|its| &its.name)
    }

    /// Returns the settings that cannot change while the manager runs and differ in `other`.
    pub fn fixed_differences(&self, other: &Self) -> Vec<&'static str> {
        let differ = [
            ("manager.socket", self.socket != other.socket),
            ("manager.state", self.state != other.state),
            ("manager.resources", self.resources != other.resources),
            ("manager.feedback", self.feedback != other.feedback),
            ("manager.host", self.host != other.host),
            ("manager.listen", self.listen != other.listen),
            ("manager.keys", self.keys != other.keys),
            ("manager.path", self.paths != other.paths),
        ];
        differ.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
    }
}

/// The ceilings of a table of `cutline baseline`.
#[derive(Clone, Copy, Default)]
struct Measured {
    tcp: Option<Rate>,
    datagrams: Option<Rate>,
    /// The largest ceiling: all protocols share the processor and the interface, and were measured one after the other.
    combined: Option<Rate>,
    tcp_cpu: CpuShare,
    datagrams_cpu: CpuShare,
}

impl Measured {
    fn of(table: &BaselineDocument) -> Self {
        let ceilings = |protocols: &[&str]| -> Vec<Ceiling> {
            protocols.iter().filter_map(|protocol| table.ceiling(protocol)).collect()
        };
        // A flow of frames below IP counts as one of datagrams, so the host carries the smaller rate of either.
        let (tcp, datagrams) = (ceilings(&["tcp"]), ceilings(&["udp", "direct"]));
        let lowest = |of: &[Ceiling]| of.iter().map(|its| its.rate).min();
        let cpu = |of: &[Ceiling]| {
            let share = of.iter().filter_map(|its| its.cpu_per_gbit).fold(0.0, f64::max);
            CpuShare::from_millionths((share * 1e6).ceil() as u64)
        };
        Self {
            tcp: lowest(&tcp),
            datagrams: lowest(&datagrams),
            combined: tcp.iter().chain(&datagrams).map(|its| its.rate).max(),
            tcp_cpu: cpu(&tcp),
            datagrams_cpu: cpu(&datagrams),
        }
    }
}

/// Reads the table of `cutline baseline` that `baseline` names, if it names one; `None` if it cannot be read.
fn measured(table: &TableReader<'_>, warnings: &mut Vec<String>) -> Option<Measured> {
    if !table.has("baseline") {
        return Some(Measured::default());
    }
    let file = table.optional("baseline", &kind::absolute_path())?;
    match cutline_baseline::load(Path::new(&file)) {
        Ok(Some(document)) => {
            // A host whose kernel was updated keeps its manager.
            if let Err(why) =
                document.check(&HostFingerprint::of_this_host(), unix_time().as_nanos() / 1_000_000_000)
            {
                warnings.push(format!(
                    "manager.baseline: `{file}` is used, although {why}: measure again with cutline baseline"
                ));
            }
            let are_set = ["tcp", "datagrams", "combined"].iter().all(|key| table.has(key));
            if document.is_of_one_host() && !are_set {
                warnings.push(format!(
                    "manager.baseline: `{file}` was measured within one host ({}), so its rates are not those of a network: measure to another \
                     host with cutline baseline HOST, or set tcp, datagrams and combined",
                    document.path.receiver
                ));
            }
            if !table.has("datagrams") && ["udp", "direct"].iter().any(|name| document.may_carry_more(name)) {
                warnings.push(format!(
                    "manager.baseline: `{file}` has datagrams only up to the largest load of its plan, and none was lost there, so this host may \
                     carry more: measure with a larger --max-rate, or set datagrams"
                ));
            }
            return Some(Measured::of(&document));
        }
        Ok(None) => {
            table.refuse("baseline", &format!("`{file}` is not there, or empty: cutline baseline writes it"));
        }
        Err(why) => table.refuse("baseline", &why.to_string()),
    }
    None
}

fn params<P: Parameters + Default>(table: &TableReader<'_>, key: &str) -> Option<P> {
    let Some(own) = table.table(key, "a table of parameters") else { return Some(P::default()) };
    let params = P::from_values(parameter::values(&own, &P::describe()));
    let params = parameter::checked(&own, params);
    own.finish();
    params
}

fn address() -> ValueKind<SocketAddr> {
    ValueKind::new("an address with a port such as \"10.0.0.1:9467\"", |node| {
        let text = node.as_text().ok_or_else(String::new)?;
        parse_listen_address(text).map_err(|error| error.to_string())
    })
}

fn interfaces(table: &TableReader<'_>) -> Option<Vec<ManagedInterface>> {
    let mut names = BTreeSet::new();
    let tables = table.tables("interface");
    if tables.len() > MOST_INTERFACES {
        table.refuse("interface", &format!("there are {}: allowed are {MOST_INTERFACES}", tables.len()));
    }
    let each = tables.iter().map(|own| {
        let name = own.required("name", &kind::interface());
        let rate = own.required("rate", &kind::rate());
        let has_classes = own.or("classes", &kind::flag(), false);
        if name.as_ref().is_some_and(|name| !names.insert(name.clone())) {
            own.refuse("name", "there is another [[manager.interface]] with this name");
        }
        if let Some(error) = rate.filter(|_| has_classes).and_then(|rate| check_rate(rate).err()) {
            own.refuse("rate", &error);
        }
        own.finish();
        Some(ManagedInterface { name: name?, rate: rate?, has_classes })
    });
    each.collect()
}

/// Checks the rate of an interface with classes.
fn check_rate(rate: Rate) -> Result<(), String> {
    HtbShaper::check(rate, &ShaperOptions::default()).map_err(|error| error.to_string())
}

/// Reads the users who may use the manager.
fn access(table: &TableReader<'_>) -> Option<AccessRules> {
    let words = [("all", true), ("listed", false)];
    let is_open = table.or("users", &kind::one_of("one of", &words), true);
    let users = rules(table, "user", &account("user", "/etc/passwd"));
    let groups = rules(table, "group", &account("group", "/etc/group"));
    Some(AccessRules { is_open, users: users?, groups: groups? })
}

fn rules(table: &TableReader<'_>, key: &str, account: &ValueKind<u32>) -> Option<Vec<AccessRule>> {
    let each = table.tables(key).into_iter().map(|own| {
        let default = UserPolicy::default();
        let id = own.required("name", account);
        let weight = own.or("weight", &kind::integer(1, MOST_WEIGHT.into()), default.weight.into()) as u32;
        let share = own.optional("share", &kind::share());
        let limit = kind::integer(0, HIGHEST_PRIORITY.into());
        let priority_limit = own.or("priority-limit", &limit, default.priority_limit.into()) as u8;
        own.finish();
        Some(AccessRule { id: id?, policy: UserPolicy { weight, share, priority_limit } })
    });
    each.collect()
}

/// The number of a user or a group by its name, or as it is.
fn account(what: &'static str, file: &'static str) -> ValueKind<u32> {
    ValueKind::new(format!("the name of a {what} in {file}, or its number as text"), move |node| {
        let name = node.as_text().ok_or_else(String::new)?;
        let table = std::fs::read_to_string(file).unwrap_or_default();
        let found = table.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (account, _password, number) = (fields.next()?, fields.next()?, fields.next()?);
            (account == name).then(|| number.parse().ok())?
        });
        found.or_else(|| name.parse().ok()).ok_or_else(|| format!("there is no such {what}"))
    })
}

fn paths(table: &TableReader<'_>, host: HostId) -> Option<Vec<ManagedPath>> {
    let mut numbers = BTreeSet::new();
    let prefix = ValueKind::new("a prefix such as \"10.2.0.0/16\"", |node| {
        node.as_text().and_then(|text| text.parse::<AddressPrefix>().ok()).ok_or_else(String::new)
    });
    let each = table.tables("path").into_iter().map(|own| {
        let number = own.required("number", &kind::integer(0, i64::MAX));
        if number.is_some_and(|number| !numbers.insert(number)) {
            own.refuse("number", "there is another [[manager.path]] with this number");
        }
        if !own.has("destinations") {
            own.lacks("destinations", "a list of prefixes");
        }
        let destinations = own.list("destinations", &prefix);
        let peers = peers(&own, host);
        own.finish();
        Some(ManagedPath { path: PathId(number?), destinations: destinations?, peers: peers? })
    });
    each.collect()
}

fn peers(table: &TableReader<'_>, host: HostId) -> Option<Vec<ManagerPeer>> {
    let (mut hosts, mut addresses) = (BTreeSet::from([host]), BTreeSet::new());
    let tables = table.tables("peer");
    if tables.len() > MOST_PEERS {
        table.refuse("peer", &format!("there are {}: allowed are {MOST_PEERS}", tables.len()));
    }
    let each = tables.iter().map(|own| {
        let host = own.required("host", &kind::integer(0, i64::MAX)).map(HostId);
        let address = own.required("address", &address());
        if host.is_some_and(|host| !hosts.insert(host)) {
            own.refuse("host", "this host, or another peer, has this number");
        }
        if address.is_some_and(|address| !addresses.insert(address)) {
            own.refuse("address", "another peer has this address");
        }
        own.finish();
        Some(ManagerPeer { host: host?, address: address? })
    });
    each.collect()
}

//! The file of `cutlined`: its interfaces, the protocol, the socket.
//!
//! ```toml
//! socket = "/run/cutline/cutlined.sock"
//! group = "cutline"
//! [rsvp]
//! refresh = "30 s"
//! [[interface]]
//! name = "eth0"
//! rate = "100 Mbit/s"
//! share = 0.75
//! control = "tc"
//! keys = "/etc/cutline/eth0.keys"
//! [[interface]]
//! name = "wan0"
//! rate = "9.5 Mbit/s"
//! control = "router"
//! router-socket = "/run/cutline/lan/stats.sock"
//! router-direction = "forward"
//! ```

use crate::error::DaemonError;
use crate::interfaces::present;
use crate::keys;
use crate::manager::check_manager_machine;
use crate::monitor::MonitorSpec;
use cutline_config::{Document, Errors, TableReader, ValueKind, kind, parameter};
use cutline_manager_service::ManagerSpec;
use cutline_netlink::{HtbShaper, ShaperOptions};
use cutline_params::Parameters as _;
use cutline_provision::DEFAULT_SOCKET;
use cutline_router_service::RouterDirection;
use cutline_rsvp::admission::ShareParams;
use cutline_rsvp::encapsulation::Encapsulation;
use cutline_rsvp::engine::EngineParams;
use cutline_rsvp::integrity::IntegrityConfig;
use cutline_service::{SocketFile, regular_file};
use cutline_units::{Duration, IpVersion, Rate};
use std::path::{Path, PathBuf};

/// Content of a configuration file.
#[derive(Clone, Debug, PartialEq)]
pub struct DaemonConfig {
    /// Path of the socket for applications.
    pub socket: PathBuf,
    /// The group whose members may make requests, beside the owner; `None`: that of the process.
    pub group: Option<u32>,
    /// The mark of packets when they are routed; 0 for none.
    pub route_mark: u32,
    /// The protocol.
    pub params: EngineParams,
    /// The interfaces.
    pub interfaces: Vec<InterfaceSpec>,
    /// The monitor; `None` without one.
    pub monitor: Option<MonitorSpec>,
    /// The resource manager; `None` without one.
    pub manager: Option<ManagerSpec>,
}

/// An interface, with one version of IP.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceSpec {
    /// Its name.
    pub name: String,
    /// The version of IP.
    pub version: IpVersion,
    /// Rate of the interface's link.
    pub rate: Rate,
    /// Share of the link that can be reserved.
    pub share: ShareParams,
    /// Installer of reservations.
    pub control: InstallerKind,
    /// Encapsulation of messages.
    pub encapsulation: Encapsulation,
    /// The file with the keys; `None` if messages are not authenticated.
    pub keys: Option<PathBuf>,
}

/// Installer of reservations on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstallerKind {
    /// The kernel's traffic control.
    Tc {
        /// True if a foreign queueing discipline is replaced.
        replace: bool,
        /// Largest waiting time of best-effort packets where nothing is reserved.
        best_effort_delay: Duration,
    },
    /// A userspace router on this host, which has the link's rate and queue.
    Router {
        /// Its local socket.
        socket: PathBuf,
        /// The direction of the router in which packets leave by this interface.
        direction: RouterDirection,
    },
    /// None: this node does not control the traffic there, and admits everything.
    None,
}

impl InstallerKind {
    /// Traffic control with the defaults of the file.
    pub const TC: Self = Self::Tc { replace: false, best_effort_delay: ShaperOptions::BEST_EFFORT_DELAY };

    /// Returns its name in files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tc { .. } => "tc",
            Self::Router { .. } => "router",
            Self::None => "none",
        }
    }

    /// Returns the options of traffic control; `None` with another installer.
    pub fn options(&self) -> Option<ShaperOptions> {
        match self {
            Self::Tc { replace, best_effort_delay } => {
                let (replace, best_effort_delay) = (*replace, *best_effort_delay);
                Some(ShaperOptions { replace, best_effort_delay, ..ShaperOptions::default() })
            }
            Self::Router { .. } | Self::None => None,
        }
    }

    /// Returns whether this node controls the traffic.
    pub const fn controls(&self) -> bool {
        !matches!(self, Self::None)
    }
}

/// The default of `burst` with a router. All of its reserved packets share one queue, so the buckets of others delay each of them.
const ROUTER_BURST: Duration = Duration::from_millis(500);

impl DaemonConfig {
    /// Reads the file at `path`, a regular file of at most 1 MiB.
    ///
    /// # Errors
    /// All problems of the file.
    pub fn load(path: &Path) -> Result<Self, Errors> {
        cutline_config::read(&Document::load_with(path, regular_file::read)?, read)
    }

    /// Reads the text of a file; `name` is its name in messages.
    ///
    /// # Errors
    /// All problems of the text.
    pub fn parse(text: &str, name: &str) -> Result<Self, Errors> {
        cutline_config::read(&Document::parse(text, name)?, read)
    }

    /// Returns the [`warnings`](Self::warnings) as messages for the log: of a start, of a check, and of a reload.
    pub fn warning_messages(&self) -> Vec<String> {
        self.warnings().into_iter().map(|warning| format!("warning: {warning}")).collect()
    }

    /// Returns the settings that are allowed and probably not meant, a sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let named = |has_keys: bool| {
            let of = self.interfaces.iter().filter(|spec| spec.keys.is_some() == has_keys);
            of.map(InterfaceSpec::label).collect::<Vec<_>>().join(", ")
        };
        let (with, without) = (named(true), named(false));
        let mut warnings = self.manager.as_ref().map_or_else(Vec::new, |manager| manager.warnings.clone());
        if !with.is_empty() && !without.is_empty() {
            warnings.push(format!(
                "interface.keys: {with} authenticate messages and {without} do not: a host on a link without keys can \
                 announce flows, which this node signs and passes on by the others; give each interface `keys`, or none"
            ));
        }
        warnings
    }

    /// Returns the names of the interfaces at which an agent with this file sets traffic control: for reservations, or for the classes of the
    /// resource manager. One with both versions of IP is there twice.
    pub fn shaped_interfaces(&self) -> impl Iterator<Item = &String> {
        let controlled =
            self.interfaces.iter().filter(|spec| matches!(spec.control, InstallerKind::Tc { .. }));
        let classed = self.manager.iter().flat_map(ManagerSpec::classed_interfaces);
        controlled.map(|spec| &spec.name).chain(classed)
    }

    /// Checks the files of keys, and rates against the packets of interfaces that exist, as the start does.
    ///
    /// # Errors
    /// When a file of keys cannot be used, the interfaces cannot be listed, or a rate is too low.
    pub fn check_interfaces(&self) -> Result<(), DaemonError> {
        self.interfaces.iter().try_for_each(|spec| spec.integrity().and_then(|_| spec.check_rate()))
    }

    /// Checks that the agent can start on this machine now: its sockets can be bound, its addresses are those of this machine, and the traffic of
    /// its interfaces is not controlled by another program. An agent that runs already is no obstacle, and neither is an interface that is missing
    /// or has no address yet: the agent waits for it.
    ///
    /// # Errors
    /// When it cannot start.
    pub fn check_machine(&self) -> Result<(), DaemonError> {
        SocketFile::check(&self.socket)?;
        self.monitor.iter().try_for_each(MonitorSpec::check_machine)?;
        self.manager.iter().try_for_each(check_manager_machine)?;
        let all = cutline_netlink::interfaces()?;
        for spec in &self.interfaces {
            if let Some((interface, options)) = present(spec, &all).zip(spec.control.options()) {
                HtbShaper::check_vacant(interface, &options)?;
            }
        }
        Ok(())
    }

    /// Returns the settings that cannot change while it runs and differ in `other`.
    pub fn fixed_differences(&self, other: &Self) -> Vec<&'static str> {
        let pairs = || self.interfaces.iter().zip(&other.interfaces);
        let any = |differs: fn(&InterfaceSpec, &InterfaceSpec) -> bool| pairs().any(|(a, b)| differs(a, b));
        let differ = [
            ("socket", self.socket != other.socket),
            ("group", self.group != other.group),
            ("route-mark", self.route_mark != other.route_mark),
            ("rsvp", self.params != other.params),
            ("monitor", self.monitor != other.monitor),
            ("interface", self.interfaces.len() != other.interfaces.len()),
            ("interface.name", any(|a, b| a.name != b.name)),
            ("interface.version", any(|a, b| a.version != b.version)),
            ("interface.rate", any(|a, b| a.rate != b.rate)),
            ("interface.control", any(|a, b| a.control != b.control)),
            ("interface.encapsulation", any(|a, b| a.encapsulation != b.encapsulation)),
            ("interface.keys", any(|a, b| a.keys.is_some() != b.keys.is_some())),
        ];
        let of_manager = match (&self.manager, &other.manager) {
            (Some(own), Some(other)) => own.fixed_differences(other),
            (None, None) => Vec::new(),
            _ => vec!["manager"],
        };
        differ.into_iter().filter_map(|(key, differs)| differs.then_some(key)).chain(of_manager).collect()
    }
}

impl InterfaceSpec {
    /// Returns its name in messages. That of IPv6 has the version, because IPv4 may have an entry of the same name.
    fn label(&self) -> String {
        match self.version {
            IpVersion::V4 => self.name.clone(),
            IpVersion::V6 => format!("{} (IPv6)", self.name),
        }
    }

    /// Checks the rate against the packets of the interface, if it exists and its traffic is controlled here.
    ///
    /// # Errors
    /// When the interfaces cannot be listed, or the rate is too low.
    pub fn check_rate(&self) -> Result<(), DaemonError> {
        let Some(options) = self.control.options() else { return Ok(()) };
        let all = cutline_netlink::interfaces()?;
        let interface = all.iter().find(|interface| interface.name == self.name);
        Ok(interface.map_or(Ok(()), |interface| HtbShaper::check_at(interface, self.rate, &options))?)
    }

    /// Reads the keys of its neighbours.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn integrity(&self) -> Result<Option<IntegrityConfig>, DaemonError> {
        self.keys.as_deref().map(|path| keys::load(path).map(IntegrityConfig::new)).transpose()
    }
}

fn read(root: &TableReader<'_>) -> Option<DaemonConfig> {
    let socket = root.or("socket", &kind::absolute_path(), DEFAULT_SOCKET.to_owned()).into();
    let group = root.optional("group", &group());
    let route_mark = root.or("route-mark", &kind::integer(0, u32::MAX.into()), 0) as u32;
    let params = match root.table("rsvp", "a table: write [rsvp]") {
        Some(table) => {
            let params = EngineParams::from_values(parameter::values(&table, &EngineParams::describe()));
            let params = parameter::checked(&table, params);
            table.finish();
            params
        }
        None => Some(EngineParams::default()),
    };
    let monitor = root.table("monitor", "a table: write [monitor]");
    let manager = root.table("manager", "a table: write [manager]");
    let tables = root.tables("interface");
    // A host without reservations may have a monitor, or a resource manager.
    if tables.is_empty() && monitor.is_none() && manager.is_none() {
        root.lacks("interface", "at least one interface: write [[interface]]");
    }
    let monitor = monitor.as_ref().map(MonitorSpec::read);
    let has_manager = manager.is_some();
    let manager = manager.as_ref().and_then(ManagerSpec::read);
    let manager = manager.map(|manager| ManagerSpec { route_mark, ..manager });
    let is_read = manager.is_some() == has_manager;
    let mut interfaces: Vec<InterfaceSpec> = Vec::new();
    let mut is_whole = true;
    for table in &tables {
        let Some(interface) = interface(table) else {
            is_whole = false;
            continue;
        };
        let others = interfaces.iter().filter(|other| other.name == interface.name);
        let share: f64 = others.clone().map(|other| other.share.share).sum();
        if others.clone().any(|other| other.version == interface.version) {
            table.refuse("name", "there is another [[interface]] with this name and version of IP");
        } else if others.clone().any(|other| other.rate != interface.rate) {
            table.refuse("rate", "it is another one for the same link above");
        } else if share + interface.share.share > 1.0 {
            table.refuse("share", "together with the one above for the same link it is more than 1");
        }
        let is_managed = |manager: &ManagerSpec| {
            manager.interfaces.iter().any(|its| its.has_classes && its.name == interface.name)
        };
        if matches!(interface.control, InstallerKind::Tc { .. }) && manager.as_ref().is_some_and(is_managed) {
            table.refuse(
                "name",
                "its reservations are in traffic control (control = \"tc\"), and so are the classes of its \
                 [[manager.interface]] (classes = true): only one of both can be",
            );
        }
        interfaces.push(interface);
    }
    root.finish();
    let (params, is_whole) = (params?, is_whole && is_read);
    is_whole.then_some(DaemonConfig { socket, group, route_mark, params, interfaces, monitor, manager })
}

fn interface(table: &TableReader<'_>) -> Option<InterfaceSpec> {
    let name = table.required("name", &kind::interface());
    let rate = table.required("rate", &kind::rate());
    let version = kind::integer(4, 6).only("4 or 6", |version| *version != 5);
    let version = if table.or("version", &version, 4) == 4 { IpVersion::V4 } else { IpVersion::V6 };
    let share = ShareParams::from_values(parameter::values(table, &ShareParams::describe()));
    let share = parameter::checked(table, share);
    let control = control(table);
    let share = match &control {
        Some(InstallerKind::Router { .. }) if !table.has("burst") => {
            share.map(|share| ShareParams { burst: ROUTER_BURST, ..share })
        }
        _ => share,
    };
    let router = table.optional("router", &keys::address());
    let words = [
        ("raw", Encapsulation::Raw),
        ("raw-and-udp", Encapsulation::RawAndUdp),
        ("udp", Encapsulation::Udp { router }),
    ];
    let encapsulation = table.or("encapsulation", &kind::one_of("one of", &words), Encapsulation::Raw);
    if router.is_some() && !matches!(encapsulation, Encapsulation::Udp { .. }) {
        table.refuse("router", "it is for encapsulation = \"udp\"");
    }
    let keys = table.optional("keys", &kind::absolute_path()).map(PathBuf::from);
    table.finish();
    let (name, rate, share, control) = (name?, rate?, share?, control?);
    // The same check as at the start.
    if let Some(options) = control.options()
        && let Err(error) = HtbShaper::check(rate, &options)
    {
        table.refuse("rate", &format!("with control = \"tc\": {error}"));
    }
    Some(InterfaceSpec { name, version, rate, share, control, encapsulation, keys })
}

/// Reads the kind of installer of reservations. A key of another kind is an error.
fn control(table: &TableReader<'_>) -> Option<InstallerKind> {
    #[derive(Clone, Copy, PartialEq)]
    enum Name {
        Tc,
        Router,
        None,
    }
    let names = [("tc", Name::Tc), ("router", Name::Router), ("none", Name::None)];
    let name = if table.has("control") {
        table.required("control", &kind::one_of("one of", &names))?
    } else {
        Name::Tc
    };
    let delay = kind::duration().only("from 1 ms to 10 s", |delay| {
        (Duration::from_millis(1)..=Duration::from_secs(10)).contains(delay)
    });
    let directions = [("forward", RouterDirection::Forward), ("reverse", RouterDirection::Reverse)];
    let replace = table.optional("replace", &kind::flag());
    let delay = table.optional("best-effort-delay", &delay);
    let socket = table.optional("router-socket", &kind::absolute_path());
    let direction = table.optional("router-direction", &kind::one_of("one of", &directions));
    for (key, its, control) in [
        ("replace", Name::Tc, "tc"),
        ("best-effort-delay", Name::Tc, "tc"),
        ("router-socket", Name::Router, "router"),
        ("router-direction", Name::Router, "router"),
    ] {
        if table.has(key) && name != its {
            table.refuse(key, &format!("it is for control = \"{control}\""));
        }
    }
    match name {
        Name::Tc => Some(InstallerKind::Tc {
            replace: replace.unwrap_or(false),
            best_effort_delay: delay.unwrap_or(ShaperOptions::BEST_EFFORT_DELAY),
        }),
        Name::Router => {
            for (key, expected) in [
                ("router-socket", "the `socket` of the router's file"),
                (
                    "router-direction",
                    "\"forward\" if packets for this interface leave the router by its `out`, \"reverse\" if by its `in`",
                ),
            ] {
                if !table.has(key) {
                    table.lacks(key, expected);
                }
            }
            Some(InstallerKind::Router { socket: socket?.into(), direction: direction? })
        }
        Name::None => Some(InstallerKind::None),
    }
}

/// The number of a group by its name (group(5)), or as it is.
fn group() -> ValueKind<u32> {
    ValueKind::new("the name of a group in /etc/group, or its number", |node| {
        let name = node.as_text().ok_or_else(String::new)?;
        let table = std::fs::read_to_string("/etc/group").unwrap_or_default();
        let found = table.lines().find_map(|line| {
            let mut fields = line.split(':');
            let (group, _password, number) = (fields.next()?, fields.next()?, fields.next()?);
            (group == name).then(|| number.parse().ok())?
        });
        found.or_else(|| name.parse().ok()).ok_or_else(|| "there is no such group".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_baseline::{BaselineDocument, BaselineRow, HostFingerprint};
    use cutline_manager::resources::{Capacities, CpuShare, LoweringOrder};
    use cutline_manager_service::ManagedInterface;
    use cutline_sys::clock::unix_time;

    const FILE: &str = "socket = '/run/x.sock'\n[rsvp]\nrefresh = '5 s'\nrefresh-reduction = false\n\
                        [[interface]]\nname = 'eth0'\nrate = '100 Mbit/s'\nshare = 0.5\ncontrol = 'none'\n\
                        [[interface]]\nname = 'eth0'\nversion = 6\nrate = '100 Mbit/s'\nshare = 0.25\n\
                        encapsulation = 'udp'\nrouter = 'fd00::1'\n";

    #[test]
    fn a_file_is_read() {
        let config = DaemonConfig::parse(FILE, "c.toml").unwrap();
        assert_eq!(config.socket, Path::new("/run/x.sock"));
        assert_eq!((config.params.refresh, config.params.refresh_reduction), (Duration::from_secs(5), false));
        let [v4, v6] = &config.interfaces[..] else { panic!("two interfaces") };
        assert_eq!((v4.version, &v4.control, v4.share.share), (IpVersion::V4, &InstallerKind::None, 0.5));
        let router = Some("fd00::1".parse().unwrap());
        assert_eq!((v6.encapsulation, &v6.control), (Encapsulation::Udp { router }, &InstallerKind::TC));
    }

    /// A rate that traffic control refuses at the start is refused when the file is checked; without traffic control it is allowed.
    #[test]
    fn a_rate_that_the_start_refuses_is_refused_by_the_check() {
        let read = |keys: &str| {
            let text = format!("[[interface]]\nname = 'eth0'\nrate = '8 kbit/s'\n{keys}");
            DaemonConfig::parse(&text, "c.toml").map(drop).map_err(|errors| errors.render())
        };
        let said = read("").unwrap_err();
        assert!(said.contains("8 kbit/s") && said.contains("at least 64 kbit/s"), "{said}");
        read("control = 'none'").unwrap();
    }

    /// Keys on some interfaces alone are allowed, and named.
    #[test]
    fn keys_on_some_interfaces_alone_are_warned_of() {
        let warnings = |text: &str| DaemonConfig::parse(text, "c.toml").unwrap().warnings();
        assert!(warnings(FILE).is_empty(), "none has keys");
        let all = FILE.replace("rate =", "keys = '/k'\nrate =");
        assert!(warnings(&all).is_empty(), "all have keys");
        let some = FILE.replacen("rate =", "keys = '/k'\nrate =", 1);
        let said = warnings(&some);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("eth0 authenticate") && said[0].contains("eth0 (IPv6) do not"), "{said:?}");
    }

    #[test]
    fn each_installer_is_read_with_its_own_keys() {
        const ROUTER: &str =
            "control = 'router'\nrouter-socket = '/run/r.sock'\nrouter-direction = 'reverse'\n";
        let read = |keys: &str| {
            let text = format!("[[interface]]\nname = 'eth0'\nrate = '1.5 Mbit/s'\n{keys}");
            DaemonConfig::parse(&text, "c.toml").map(|mut config| config.interfaces.remove(0))
        };
        let tc = read("replace = true\nbest-effort-delay = '20 ms'").unwrap();
        let best_effort_delay = Duration::from_millis(20);
        assert_eq!(tc.control, InstallerKind::Tc { replace: true, best_effort_delay });
        let router = read(ROUTER).unwrap();
        let socket = PathBuf::from("/run/r.sock");
        assert_eq!(router.control, InstallerKind::Router { socket, direction: RouterDirection::Reverse });
        assert_eq!(router.share.burst, ROUTER_BURST);
        assert_eq!(read(&format!("{ROUTER}burst = '2 s'")).unwrap().share.burst, Duration::from_secs(2));
        for (keys, says) in [
            ("control = 'router'\nrouter-direction = 'forward'", "router-socket"),
            ("control = 'router'\nrouter-socket = '/r'", "\"reverse\" if by its `in`"),
            ("control = 'router'\nrouter-socket = 'r'\nrouter-direction = 'forward'", "absolute path"),
            ("control = 'router'\nrouter-socket = '/r'\nrouter-direction = 'up'", "\"forward\""),
            ("router-socket = '/r'", "it is for control = \"router\""),
            ("control = 'none'\nreplace = true", "it is for control = \"tc\""),
            ("control = 'none'\nbest-effort-delay = '1 s'", "it is for control = \"tc\""),
            ("best-effort-delay = '11 s'", "from 1 ms to 10 s"),
            ("share = 1.5", "share"),
        ] {
            let said = read(keys).unwrap_err().render();
            assert!(said.contains(says), "{keys}: {said}");
        }
    }

    /// DIRM's bucket, an image of 180 kB, fits a link of 1.5 Mbit/s unless the operator wants shorter bursts.
    #[test]
    fn the_default_burst_has_room_for_an_image_on_a_slow_link() {
        let config = DaemonConfig::parse("[[interface]]\nname = 'e'\nrate = '1.5 Mbit/s'", "c.toml").unwrap();
        let spec = &config.interfaces[0];
        let mut share = cutline_rsvp::admission::Share::new(&spec.share, spec.rate, 1500);
        let image = cutline_rsvp::intserv::Tspec {
            max_packet: 1500,
            ..cutline_rsvp::intserv::Tspec::new(80e3, 180e3)
        };
        share.admit(cutline_rsvp::admission::ReservationHandle(1), &image).unwrap();
    }

    #[test]
    fn errors_of_options_name_the_allowed_values() {
        let refused = |from: &str, to: &str| {
            DaemonConfig::parse(&FILE.replace(from, to), "c.toml").unwrap_err().render()
        };
        for (from, to, says) in [
            ("share = 0.5", "share = 1.5", "0 to 1"),
            ("share = 0.25", "share = 0.75", "more than 1"),
            ("version = 6", "version = 4", "another [[interface]]"),
            ("version = 6", "version = 5", "4 or 6"),
            ("'none'", "'htb'", "\"tc\""),
            ("'udp'", "'raw'", "encapsulation = \"udp\""),
            ("refresh = '5 s'", "refresh = '5 ms'", "100 ms"),
            ("'/run/x.sock'", "'x.sock'", "absolute path"),
            ("[rsvp]", "group = 'no such group'\n[rsvp]", "no such group"),
            ("name = 'eth0'\nversion", "version", "name"),
        ] {
            let said = refused(from, to);
            assert!(said.contains(says), "{to}: {said}");
        }
        assert!(DaemonConfig::parse("", "c.toml").unwrap_err().render().contains("[[interface]]"));
    }

    #[test]
    fn settings_that_cannot_change_are_named() {
        let config = DaemonConfig::parse(FILE, "c.toml").unwrap();
        let other = |from: &str, to: &str| DaemonConfig::parse(&FILE.replace(from, to), "c.toml").unwrap();
        assert!(config.fixed_differences(&other("0.5", "0.4")).is_empty());
        assert_eq!(config.fixed_differences(&other("x.sock", "y.sock")), ["socket"]);
        assert_eq!(config.fixed_differences(&other("'none'", "'tc'")), ["interface.control"]);
    }

    #[test]
    fn a_manager_is_read_with_its_users_and_paths() {
        let read = |text: &str| DaemonConfig::parse(text, "c.toml").map(|config| config.manager.unwrap());
        let default = read("[manager]").unwrap();
        assert_eq!(default, ManagerSpec::default());
        assert_eq!(default.socket, Path::new("/run/cutline/manager.sock"));
        assert!(default.access.is_open && default.capacities == Capacities::default());
        let all = "[manager]\ncombined = '900 Mbit/s'\ndatagrams = '600 Mbit/s'\ncpu = 150\ndatagrams-cpu = 20\n\
                   users = 'listed'\nhost = 3\nlisten = '10.0.0.3:9467'\nkeys = '/etc/cutline/path.keys'\n\
                   [manager.resources]\nuser-share = 0.25\norder = 'largest-slack'\n\
                   [manager.feedback]\ninterval = '200 ms'\norder = 'newest'\n\
                   [[manager.interface]]\nname = 'eth0'\nrate = '1 Gbit/s'\nclasses = true\n\
                   [[manager.user]]\nname = 'root'\nweight = 4\n[[manager.group]]\nname = '44'\nshare = 0.5\n\
                   priority-limit = 7\n[[manager.path]]\nnumber = 1\ndestinations = ['10.2.0.0/16']\n\
                   [[manager.path.peer]]\nhost = 4\naddress = '10.0.0.4:9467'\n";
        let spec = read(all).unwrap();
        let with_percentages = all.replace("cpu = 150", "cpu = '150 %'").replace("cpu = 20", "cpu = '20 %'");
        assert_eq!(read(&with_percentages).unwrap(), spec);
        assert_eq!(spec.capacities.combined, Some(Rate::from_mbps(900)));
        assert_eq!((spec.resources.user_share, spec.feedback.interval), (0.25, Duration::from_millis(200)));
        let orders = [spec.resources.order, spec.feedback.order];
        assert_eq!(orders, [LoweringOrder::LargestSlack, LoweringOrder::Newest]);
        let eth0 =
            ManagedInterface { name: "eth0".to_owned(), rate: Rate::from_mbps(1000), has_classes: true };
        assert_eq!(spec.interfaces, [eth0]);
        let policy = |user, groups: &[u32]| spec.access.policy(user, groups);
        assert_eq!(policy(0, &[]).map(|policy| policy.weight), Some(4));
        assert_eq!(policy(1000, &[44]).map(|policy| policy.priority_limit), Some(7));
        assert_eq!(policy(1000, &[]), None);
        assert_eq!(spec.paths[0].peers.len(), 1);
        assert_eq!((spec.route_mark, read(&format!("route-mark = 7\n{all}")).unwrap().route_mark), (0, 7));
        for (from, to, says) in [
            ("'900 Mbit/s'", "'0 bit/s'", "above 0"),
            ("'1 Gbit/s'", "'10 kbit/s'", "at least 64 kbit/s"),
            (
                "[manager]",
                "[[interface]]\nname = 'eth0'\nrate = '1 Gbit/s'\nshare = 0.5\n[manager]",
                "control = \"tc\"",
            ),
            ("datagrams-cpu = 20\n", "", "tcp-cpu"),
            ("cpu = 150", "cpu = '1.5 %'", "whole"),
            ("'listed'", "'some'", "\"all\", \"listed\""),
            ("user-share = 0.25", "user-share = 1.25", "0 to 1"),
            ("'newest'", "'oldest'", "priority"),
            ("'root'", "'no such user'", "no such user"),
            ("weight = 4", "weight = 0", "1 to 1000"),
            ("10.2.0.0/16", "10.2.0.0/33", "a prefix"),
            ("host = 4", "host = 3", "has this number"),
            ("listen = '10.0.0.3:9467'\n", "", "listen"),
            ("keys = '/etc/cutline/path.keys'\n", "", "keys"),
            ("number = 1\n", "", "number"),
        ] {
            let why = read(&all.replace(from, to)).unwrap_err().render();
            assert!(all.contains(from) && why.contains(says), "{from} -> {to}: {why}");
        }
        let config = |text: &str| DaemonConfig::parse(text, "c.toml").unwrap();
        let changed = |from: &str, to: &str| config(all).fixed_differences(&config(&all.replace(from, to)));
        assert!(changed("'900 Mbit/s'", "'800 Mbit/s'").is_empty());
        assert_eq!(changed("number = 1", "number = 2"), ["manager.path"]);
        assert_eq!(config(all).fixed_differences(&config("[monitor]")), ["monitor", "manager"]);
    }

    #[test]
    fn a_manager_takes_its_capacities_from_a_table_of_baselines() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("baseline.json");
        let read = |more: &str| {
            let text = format!("[manager]\nbaseline = {:?}\n{more}", file.display().to_string());
            DaemonConfig::parse(&text, "c.toml")
        };
        let why = read("").unwrap_err().render();
        assert!(why.contains("is not there, or empty: cutline baseline writes it"), "{why}");
        std::fs::write(&file, "no table").unwrap();
        let why = read("cpu = 150").unwrap_err().render();
        assert!(why.contains("is no table of cutline baseline") && !why.contains("tcp-cpu"), "{why}");
        let row = |protocol: &str, mbps: f64, cpu| BaselineRow {
            protocol: protocol.to_owned(),
            block: 8192,
            throughput_bps: mbps * 1e6,
            loss_ratio: (protocol == "udp").then_some(0.0),
            sender_cpu: Some(cpu),
            ..BaselineRow::default()
        };
        let table = BaselineDocument {
            format: cutline_baseline::FORMAT,
            host: HostFingerprint::of_this_host(),
            ended_s: unix_time().as_nanos() / 1_000_000_000,
            complete: true,
            rows: vec![row("tcp", 800.0, 0.4), row("udp", 500.0, 1.0)],
            ..BaselineDocument::default()
        };
        cutline_baseline::save(&file, &table).unwrap();
        let config = read("cpu = 150").unwrap();
        assert_eq!(config.warnings(), [] as [&str; 0]);
        let spec = config.manager.unwrap();
        let capacities = Capacities {
            tcp: Some(Rate::from_mbps(800)),
            datagrams: Some(Rate::from_mbps(500)),
            combined: Some(Rate::from_mbps(800)),
            cpu: Some(CpuShare::from_percent(150)),
            ..Capacities::default()
        };
        assert_eq!(spec.capacities, capacities);
        assert_eq!(spec.cpu_per_gbit, [50, 200].map(CpuShare::from_percent));
        // What the file says itself counts.
        let own = read("combined = '700 Mbit/s'\ndatagrams-cpu = 20").unwrap().manager.unwrap();
        assert_eq!(
            own.capacities,
            Capacities { combined: Some(Rate::from_mbps(700)), cpu: None, ..capacities }
        );
        assert_eq!(own.cpu_per_gbit, [50, 20].map(CpuShare::from_percent));
        // Frames below IP are datagrams for the manager.
        let direct = |mbps, cpu| BaselineRow { loss_ratio: Some(0.0), ..row("direct", mbps, cpu) };
        let with = |rows: Vec<BaselineRow>| {
            cutline_baseline::save(&file, &BaselineDocument { rows, ..table.clone() }).unwrap();
            let spec = read("").unwrap().manager.unwrap();
            let Capacities { tcp, datagrams, combined, .. } = spec.capacities;
            ([tcp, datagrams, combined].map(|rate| rate.map(Rate::as_bps)), spec.cpu_per_gbit[1])
        };
        let mbps = |rate: u64| Some(rate * 1_000_000);
        let cpu = CpuShare::from_percent;
        assert_eq!(with(vec![direct(900.0, 0.9)]), ([None, mbps(900), mbps(900)], cpu(100)));
        assert_eq!(
            with(vec![row("tcp", 800.0, 0.4), row("udp", 500.0, 1.0), direct(900.0, 0.9)]),
            ([mbps(800), mbps(500), mbps(900)], cpu(200))
        );
        assert_eq!(
            with(vec![row("udp", 500.0, 0.5), direct(400.0, 0.8)]),
            ([None, mbps(400), mbps(500)], cpu(200))
        );
        // Rates within one host are not those of a network.
        let mut within = table.clone();
        within.path.receiver = "loopback".to_owned();
        cutline_baseline::save(&file, &within).unwrap();
        let warnings = read("").unwrap().warnings();
        assert!(warnings.len() == 1 && warnings[0].contains("within one host (loopback)"), "{warnings:?}");
        let own = "tcp = '1 Gbit/s'\ndatagrams = '1 Gbit/s'\ncombined = '1 Gbit/s'";
        assert_eq!(read(own).unwrap().warnings(), [] as [&str; 0]);
        // Datagrams were measured up to the default of --max-rate, and none was lost.
        let at_most = BaselineRow { load_bps: Some(100_000_000), ..row("udp", 100.0, 0.1) };
        let mut limited = BaselineDocument { rows: vec![row("tcp", 900.0, 0.4), at_most], ..table.clone() };
        limited.plan.max_rate_bps = 100_000_000;
        cutline_baseline::save(&file, &limited).unwrap();
        let warnings = read("").unwrap().warnings();
        assert!(warnings.len() == 1 && warnings[0].contains("a larger --max-rate"), "{warnings:?}");
        assert_eq!(read(own).unwrap().warnings(), [] as [&str; 0]);
        // A host whose kernel was updated starts.
        let host = HostFingerprint { kernel: "another".to_owned(), ..table.host.clone() };
        cutline_baseline::save(&file, &BaselineDocument { host, ..table }).unwrap();
        let warnings = read("").unwrap().warnings();
        assert!(
            warnings[0].contains("its kernel is another") && warnings[0].contains("measure again"),
            "{warnings:?}"
        );
    }

    /// The numbers of summaries are in the state: without it, old summaries are accepted after a reboot.
    #[test]
    fn a_state_that_a_reboot_removes_is_warned_of_where_summaries_are_exchanged() {
        let own = "host = 3\nlisten = '10.0.0.3:9467'\nkeys = '/etc/cutline/path.keys'\n";
        let path = "[[manager.path]]\nnumber = 1\ndestinations = ['10.2.0.0/16']\n";
        let peer = "[[manager.path.peer]]\nhost = 4\naddress = '10.0.0.4:9467'\n";
        let warnings = |state: &str, peer: &str| {
            let text = format!("[manager]\n{state}{own}{path}{peer}");
            DaemonConfig::parse(&text, "c.toml").unwrap().warnings()
        };
        let found = warnings("", peer);
        let [warning] = &found[..] else { panic!("{found:?}") };
        let says = "manager.state: `/run/cutline/manager.state` is lost at a reboot";
        assert!(warning.starts_with(says), "{warning}");
        assert_eq!(warnings("state = '/run/m.state'\n", peer).len(), 1);
        assert_eq!(warnings("state = '/var/lib/cutline/manager.state'\n", peer), [] as [&str; 0]);
        assert_eq!(warnings("", ""), [] as [&str; 0], "a path of this host alone has no summaries");
    }

    #[test]
    fn a_host_with_a_monitor_needs_no_interface() {
        let monitor = |text: &str| DaemonConfig::parse(text, "c.toml").map(|config| config.monitor.unwrap());
        let default = monitor("[monitor]").unwrap();
        assert_eq!(default.listen, Some("127.0.0.1:9466".parse().unwrap()));
        assert!(!default.readers_see_all && default.token_file.is_none());
        let all = "[monitor]\nlisten = '10.0.0.1:80'\ntoken-file = '/etc/cutline/token'\nname = 'gateway'\nreaders = 'all'";
        let all = monitor(all).unwrap();
        assert!(all.readers_see_all && all.name.as_deref() == Some("gateway"));
        assert_eq!(monitor("[monitor]\nlisten = 'off'").unwrap().listen, None);
        let elsewhere = monitor("[monitor]\nbpffs = '/run/bpf'").unwrap();
        assert_eq!(
            [&default, &elsewhere].map(|it| it.bpffs.as_path()),
            ["/sys/fs/bpf", "/run/bpf"].map(Path::new)
        );
        let zoned =
            monitor("[monitor]\nlisten = '[fe80::1%lo]:80'\ntoken-file = '/etc/cutline/token'").unwrap();
        assert_eq!(zoned.listen, Some("[fe80::1%1]:80".parse().unwrap()));
        for (text, part) in [
            ("listen = '0.0.0.0:80'", "token-file"),
            ("listen = 'here'", "an address with a port"),
            ("listen = '[fe80::1]:80'", "write fe80::1%INTERFACE, one of "),
            ("[monitor.snmp]\nlisten = '[fe80::1]:161'", "write fe80::1%INTERFACE, one of "),
            (
                "[monitor.snmp]\n[[monitor.snmp.manager]]\naddress = '[fe80::1]:162'",
                "write fe80::1%INTERFACE, one of ",
            ),
            ("readers = 'some'", "\"own\", \"all\""),
            ("socket = 'relative'", "absolute"),
            ("bpffs = 'relative'", "absolute"),
            ("publish = '/x'", "publish-socket"),
        ] {
            let why = monitor(&format!("[monitor]\n{text}")).unwrap_err().render();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}

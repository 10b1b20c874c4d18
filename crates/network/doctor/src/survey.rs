//! The answers of all probes.

use crate::probe::{
    self, Answer, Bpf, Congestion, InterfaceProperties, Kernel, KernelConfig, Lateness, Paths, Privileges,
    Sandbox, Sysctl, Tools, Waiting,
};
use cutline_units::Duration;

/// The congestion controls that experiments name.
pub(crate) const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];

/// The settings of the kernel that are read.
const SYSCTLS: [&str; 7] = [
    "net.ipv4.ip_forward",
    "net.ipv6.conf.all.forwarding",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.default_qdisc",
];

/// The number of sleeps with which each way to wait is measured. All ways together take 0.7 s.
const SLEEPS: u32 = 200;
/// The length of a sleep: about the transmission time of a frame of 1500 B at 15 Mbit/s.
const SLEEP: Duration = Duration::from_micros(800);

/// The answers of all probes.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Release, cores, clock.
    pub kernel: Kernel,
    /// The configuration of the kernel; `None` if it is not available.
    pub config: Option<KernelConfig>,
    /// Settings of the kernel.
    pub sysctls: Vec<Sysctl>,
    /// The commands of iproute2.
    pub tools: Tools,
    /// The privileges of this process.
    pub privileges: Privileges,
    /// Lateness of sleeps, for each way to wait.
    pub lateness: Vec<Lateness>,
    /// Availability of a network namespace with a virtual pair.
    pub sandbox: Answer,
    /// The ways to receive and send frames; `None` without a sandbox.
    pub paths: Option<Paths>,
    /// The kinds of queue disciplines: tried in the sandbox, or as the kernel lists them if there is no sandbox.
    pub kinds: Vec<(&'static str, Answer)>,
    /// Availability of eBPF.
    pub bpf: Bpf,
    /// The congestion controls of TCP.
    pub congestion: Congestion,
    /// The interfaces, or why they cannot be listed.
    pub links: Result<Vec<InterfaceProperties>, String>,
}

impl Survey {
    /// Calls all probes. This takes about a second. Everything that the probes create is removed again.
    pub fn take() -> Self {
        let kernel = probe::kernel();
        let config = probe::config(&kernel.release);
        let privileges = probe::privileges();
        let sandbox = Sandbox::create();
        let listed = || probe::listed_kinds(&kernel.release, config.as_ref());
        Self {
            sysctls: SYSCTLS.iter().map(|name| probe::sysctl(name)).collect(),
            tools: probe::tools(),
            lateness: lateness(privileges.fifo.is_yes()),
            paths: sandbox.as_ref().ok().and_then(|sandbox| probe::paths(sandbox).ok()),
            kinds: sandbox.as_ref().map_or_else(|_| listed(), probe::kinds),
            sandbox: Sandbox::answer(&sandbox),
            bpf: probe::bpf(),
            congestion: probe::congestion(&CONTROLS),
            links: probe::links(),
            kernel,
            config,
            privileges,
        }
    }

    /// The value of a setting of the kernel.
    pub(crate) fn sysctl(&self, name: &str) -> Option<&str> {
        self.sysctls.iter().find(|sysctl| sysctl.name == name)?.value.as_deref()
    }
}

fn lateness(fifo: bool) -> Vec<Lateness> {
    let classes: &[bool] = if fifo { &[false, true] } else { &[false] };
    let each = classes.iter().flat_map(|&fifo| Waiting::ALL.map(|waiting| (waiting, fifo)));
    // A way to wait that is refused now, although it was allowed a moment ago, is left out.
    each.filter_map(|(waiting, fifo)| probe::lateness(waiting, fifo, SLEEPS, SLEEP)).collect()
}

/// A survey of a machine that has everything. Tests remove parts of it.
#[cfg(test)]
pub(crate) fn perfect() -> Survey {
    let sysctl = |name: &str, value: &str| Sysctl { name: name.into(), value: Some(value.into()) };
    let late = |waiting, fifo| {
        let mut late = cutline_units::Histogram::default();
        late.record(Duration::from_micros(30));
        Lateness { waiting, fifo, late }
    };
    Survey {
        kernel: Kernel {
            release: "6.18.0".into(),
            cores: 4,
            clock_source: Some("tsc".into()),
            clock_read: Duration::from_nanos(30),
        },
        config: None,
        sysctls: vec![
            sysctl("net.ipv4.ip_forward", "0"),
            sysctl("net.ipv6.conf.all.forwarding", "0"),
            sysctl("net.ipv4.tcp_rmem", "4096 131072 6291456"),
            sysctl("net.ipv4.tcp_wmem", "4096 16384 4194304"),
            sysctl("net.core.rmem_max", "4194304"),
            sysctl("net.core.wmem_max", "4194304"),
            sysctl("net.core.default_qdisc", "fq_codel"),
        ],
        tools: Tools { ip: Some("ip 6.1".into()), tc: Some("tc 6.1".into()) },
        privileges: Privileges {
            root: true,
            has: probe::CAPABILITIES.map(|(_, name, _)| name).to_vec(),
            fifo: Answer::Yes,
        },
        lateness: vec![late(Waiting::Poll, false), late(Waiting::Poll, true)],
        sandbox: Answer::Yes,
        paths: Some(Paths {
            packet: Answer::Yes,
            xdp_copy: Answer::Yes,
            xdp_zero_copy: Answer::No("Operation not supported".into()),
            tun: Answer::Yes,
        }),
        kinds: probe::KINDS.map(|(kind, _)| (kind, Answer::Yes)).to_vec(),
        bpf: Bpf {
            programs: Answer::Yes,
            xdp: Answer::Yes,
            jit: Some(true),
            btf: Answer::Yes,
            qdisc: Answer::Yes,
            file_system: true,
        },
        congestion: Congestion {
            default: Some("cubic".into()),
            available: CONTROLS.map(str::to_owned).to_vec(),
            allowed: CONTROLS.map(str::to_owned).to_vec(),
            tried: CONTROLS.map(|name| (name.to_owned(), Answer::Yes)).to_vec(),
        },
        links: Ok(Vec::new()),
    }
}

//! The platforms beside the simulator: QoS sockets in the simulator, and the laboratories.

use crate::connections::{self, HintCriterion, SessionSettings};
use crate::hosts::{Hosts, alone};
use crate::managed_hosts;
use crate::testbed::Testbed;
use cutline_lab::routed::{self, Shares};
use cutline_lab::{Stack, loaded};
use cutline_manager::feedback::FeedbackParams;
use cutline_results::RunResult;
use cutline_study::{Platform, Run, Simulator};

/// Platforms of experiments, by their names in `study.toml`.
pub const PLATFORMS: &[&dyn Platform] = &[
    &Simulator,
    &QosSockets { name: "qos-sockets", label: "QoS sockets", sessions: SessionSettings::DEFAULT },
    &QosSockets {
        name: "qos-sockets-counting-loss",
        label: "QoS sockets that count loss",
        sessions: SessionSettings::with_hint(HintCriterion::QualityAndLoss),
    },
    &QosSockets {
        name: "qos-sockets-within-limit",
        label: "QoS sockets within the limit of loss",
        sessions: SessionSettings::with_hint(HintCriterion::WithinLimit),
    },
    &QosSockets {
        name: "qos-sockets-soon",
        label: "QoS sockets that adapt soon",
        sessions: SessionSettings::with_hint(HintCriterion::QualitySoon),
    },
    &QosSockets {
        name: "qos-sockets-with-alternatives",
        label: "QoS sockets that accept less",
        sessions: SessionSettings { alternatives: true, ..SessionSettings::DEFAULT },
    },
    &QosSockets {
        name: "qos-sockets-fair-to-tcp",
        label: "QoS sockets with TFRC",
        sessions: SessionSettings { fair_to_tcp: true, ..SessionSettings::DEFAULT },
    },
    &ManagedHosts {
        name: "managed-hosts",
        label: "hosts with managers that predict",
        feedback: FeedbackParams::default,
    },
    &ManagedHosts {
        name: "managed-hosts-reacting",
        label: "hosts with managers that react",
        feedback: FeedbackParams::reacting,
    },
    &Laboratory { name: "laboratory", stack: Stack::Stock, sockets: None },
    &Laboratory { name: "laboratory-classic", stack: Stack::Classic, sockets: None },
    &Laboratory {
        name: "laboratory-qos-sockets-soon",
        stack: Stack::Stock,
        sockets: Some(SessionSettings::with_hint(HintCriterion::QualitySoon)),
    },
    &Testbed,
    &Hosts,
    &LoadedHost,
    &SharedLink { name: "qos-hosts", label: "QoS sockets on hosts", shares: Shares::Unmanaged },
    &SharedLink {
        name: "qos-hosts-allocated",
        label: "QoS sockets with shares of hosts",
        shares: Shares::Allocated { path_kbps: PATH_KBPS },
    },
    &SharedLink {
        name: "qos-hosts-feedback",
        label: "QoS sockets with feedback to hosts",
        shares: Shares::Feedback,
    },
];

/// The rate of the path in the file of a host's resource manager, kbit/s: that of the link of 100 Mbit/s in `quanta-lab`, less its headers
/// below IP and the acknowledgements.
const PATH_KBPS: u32 = 95_000;

/// The simulator, with an application over a QoS socket in the place of each flow over UDP.
#[derive(Debug)]
struct QosSockets {
    name: &'static str,
    label: &'static str,
    sessions: SessionSettings,
}

impl Platform for QosSockets {
    fn name(&self) -> &str {
        self.name
    }

    fn label(&self) -> &str {
        self.label
    }

    fn run(&self, run: Run<'_>) -> Result<RunResult, String> {
        connections::simulate(run.scenario, self.sessions, run.seed, run.cancel)
    }
}

/// The simulator, with a manager at every host and a managed connection in the place of each flow over UDP.
#[derive(Debug)]
struct ManagedHosts {
    name: &'static str,
    label: &'static str,
    feedback: fn() -> FeedbackParams,
}

impl Platform for ManagedHosts {
    fn name(&self) -> &str {
        self.name
    }

    fn label(&self) -> &str {
        self.label
    }

    fn run(&self, run: Run<'_>) -> Result<RunResult, String> {
        managed_hosts::simulate(run.scenario, &(self.feedback)(), run.seed, run.cancel)
    }
}

/// The laboratory: real packets and this variant of Linux's TCP, in real time. `sockets` puts an application over a real QoS socket in
/// the place of each flow over UDP.
#[derive(Debug)]
struct Laboratory {
    name: &'static str,
    stack: Stack,
    sockets: Option<SessionSettings>,
}

impl Platform for Laboratory {
    fn name(&self) -> &str {
        self.name
    }

    fn label(&self) -> &str {
        self.stack.label()
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn permitted(&self) -> Result<(), String> {
        cutline_lab::permitted().map_err(|error| error.to_string())
    }

    fn run(&self, run: Run<'_>) -> Result<RunResult, String> {
        if let Some(sessions) = self.sockets {
            return connections::measure(run.scenario, sessions, self.stack, run.seed, run.cancel);
        }
        let options = cutline_lab::LabOptions { stack: self.stack, ..cutline_lab::LabOptions::default() };
        cutline_lab::run(run.scenario, run.seed, &options, run.cancel).map_err(|error| error.to_string())
    }
}

/// A receiver whose processor decoders load.
#[derive(Debug)]
struct LoadedHost;

impl Platform for LoadedHost {
    fn name(&self) -> &'static str {
        "loaded-host"
    }

    fn label(&self) -> &'static str {
        "loaded host"
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn permitted(&self) -> Result<(), String> {
        cutline_lab::permitted().map_err(|error| error.to_string())
    }

    fn run(&self, run: Run<'_>) -> Result<RunResult, String> {
        let _alone = alone();
        loaded::run(run.scenario, run.seed, run.cancel).map_err(|error| error.to_string())
    }
}

/// The laboratory with routers, whose flows with a specification are QoS sockets with or without shares of their host.
#[derive(Debug)]
struct SharedLink {
    name: &'static str,
    label: &'static str,
    shares: Shares,
}

impl Platform for SharedLink {
    fn name(&self) -> &str {
        self.name
    }

    fn label(&self) -> &str {
        self.label
    }

    fn is_real_time(&self) -> bool {
        true
    }

    fn permitted(&self) -> Result<(), String> {
        cutline_lab::permitted().map_err(|error| error.to_string())
    }

    fn run(&self, run: Run<'_>) -> Result<RunResult, String> {
        let options = routed::LabOptions { shares: Some(self.shares), ..routed::LabOptions::default() };
        routed::run(run.scenario, run.seed, &options, run.cancel).map_err(|error| error.to_string())
    }
}

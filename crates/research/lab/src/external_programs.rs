//! Programs of the user's in the place of flows: each runs on its flow's source host from the flow's start until its end, and its traffic with
//! the flow's sink crosses the network as the flow.
#![expect(clippy::disallowed_methods, reason = "programs run in real time, and are waited for")]

use crate::connections::Course;
use crate::hosts::{self, Hosts};
use crate::{LabError, NetworkSide};
use cutline_sim::Network;
use cutline_sys::thread::joined;
use cutline_sys::{SysError, now};
use cutline_transport::endpoint::TransportParams;
use cutline_units::{Duration, Instant, Streams};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;

/// A program in the place of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalProgram {
    /// The name of the flow, which is UDP or TFRC in the scenario.
    pub flow: String,
    /// The command, as for `sh -c`.
    pub command: String,
}

/// Commands by the indices of the flows in whose place they run.
pub(crate) type ExternalPrograms<'s> = BTreeMap<usize, &'s str>;

/// Interval of checks of a program.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);
/// Time that a program has to end after a request to.
const GRACE: Duration = Duration::from_secs(1);

/// Finds the flows of programs.
///
/// # Errors
/// When there is no such flow, two programs use the same one, or one is TCP.
pub(crate) fn find<'s>(
    programs: &'s [ExternalProgram],
    network: &Network,
) -> Result<ExternalPrograms<'s>, LabError> {
    let flows = network.flows();
    let mut found = ExternalPrograms::new();
    for ExternalProgram { flow: name, command } in programs {
        let refuse = |what, instead| LabError::OnlySimulated { flow: name.clone(), what, instead };
        let index = flows.iter().position(|flow| flow.name == *name).ok_or_else(|| {
            let free = flows.iter().filter(|flow| !matches!(flow.transport, TransportParams::Tcp(_)));
            LabError::NoFlowFor { flow: name.clone(), those: free.map(|flow| flow.name.clone()).collect() }
        })?;
        // Of a TCP flow the links follow the sequence numbers.
        if matches!(flows[index].transport, TransportParams::Tcp(_)) {
            return Err(refuse(
                "a program in the place of a TCP flow",
                "set `protocol = \"udp\"`, whatever the program uses",
            ));
        }
        if found.insert(index, command.as_str()).is_some() {
            return Err(refuse("a second program in the place of a flow", "name another flow"));
        }
    }
    Ok(found)
}

/// Runs programs, each from the start of its flow to its end or the run's. One that ends before has done so of itself.
///
/// # Errors
/// When a program cannot be started, or has ended with a failure before its time was over.
pub(crate) fn run(
    programs: &ExternalPrograms<'_>,
    network: &Network,
    hosts: &Hosts,
    seed: u64,
    course: Course<'_>,
) -> Result<(), LabError> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = programs
            .iter()
            .map(|(index, command)| scope.spawn(move || host(*index, command, network, hosts, seed, course)))
            .collect();
        threads.into_iter().map(joined).fold(Ok(()), Result::and)
    })
}

/// Runs one program.
fn host(
    index: usize,
    command: &str,
    network: &Network,
    hosts: &Hosts,
    seed: u64,
    course: Course<'_>,
) -> Result<(), LabError> {
    let flow = &network.flows()[index];
    let since_zero = |at: Instant| at.saturating_since(Instant::ZERO);
    let from = course.zero + since_zero(flow.start_with(Streams::new(seed)));
    let until = match flow.stop {
        Instant::FAR_FUTURE => course.end,
        stop => course.end.min(course.zero + since_zero(stop)),
    };
    let is_over = || now() >= until || (course.ended)();
    while now() < from {
        if is_over() {
            return Ok(());
        }
        sleep(LOOK);
    }
    let failed = |what: &str, error: io::Error| {
        SysError::new(format!("flow `{}`: its program {what}", flow.name), error)
    };
    let time = until.saturating_since(now());
    let mut command =
        prepared(command, index, hosts, seed, time).map_err(|error| failed("cannot be prepared", error))?;
    let mut child = hosts
        .host(NetworkSide::Sources)
        .within(|| command.spawn())?
        .map_err(|error| failed("cannot be started", error))?;
    let mut status = Ok(None);
    while matches!(status, Ok(None)) && !is_over() {
        sleep(LOOK);
        status = child.try_wait();
    }
    end(&mut child).map_err(|error| failed("cannot be ended", error))?;
    match status.map_err(|error| failed("cannot be waited for", error))? {
        Some(status) if !status.success() => {
            Err(LabError::ExternalProgram { flow: flow.name.clone(), status })
        }
        _ => Ok(()),
    }
}

/// The command, in a process group of its own. Should this process be killed, `timeout` ends it all the same.
fn prepared(command: &str, index: usize, hosts: &Hosts, seed: u64, time: Duration) -> io::Result<Command> {
    let seconds = |time: Duration| format!("{:.3}", time.as_secs_f64());
    let mut timeout = Command::new("timeout");
    timeout.args(["--kill-after=1", &seconds(time + GRACE * 2), "sh", "-c", command]);
    timeout.env("CUTLINE_ADDRESS", hosts::address(NetworkSide::Sources, index).to_string());
    timeout.env("CUTLINE_OTHER", hosts::address(NetworkSide::Sinks, index).to_string());
    timeout.env("CUTLINE_OTHER_NAMESPACE", hosts.host(NetworkSide::Sinks).name());
    timeout.env("CUTLINE_SEED", seed.to_string()).env("CUTLINE_SECONDS", seconds(time));
    // Results go to stdout, and a program's output is none of them.
    let output = io::stderr().as_fd().try_clone_to_owned()?;
    timeout.stdin(Stdio::null()).stdout(output).process_group(0);
    Ok(timeout)
}

/// Ends a program and its child processes.
fn end(child: &mut Child) -> io::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    // The group may be gone.
    let _gone = kill_process_group(group, Signal::TERM);
    let patience = now() + GRACE;
    while child.try_wait()?.is_none() && now() < patience {
        sleep(LOOK);
    }
    let _gone = kill_process_group(group, Signal::KILL);
    child.wait().map(drop)
}

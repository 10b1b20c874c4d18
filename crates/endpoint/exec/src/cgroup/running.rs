//! Marking of running programs: a process, or the processes of a control group.
//!
//! Programs in the kernel see the calls of sockets from now on. Sockets that are open already are borrowed from their process
//! (`pidfd_getfd`), and get their options directly.

use super::{Attached, ControlGroup, sweep};
use crate::ExecError;
use cutline_marking::MarkSettings;
use cutline_sys::SysError;
use cutline_sys::reactor::{LONGEST_WAIT, PollFd, PollFlags, wait};
use cutline_sys::sockopt::{IP_TOS, IPV6_TCLASS, SO_DOMAIN, SO_MAX_PACING_RATE, SO_PRIORITY};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::AddressFamily;
use rustix::process::{ForeignRawFd, Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs;
use std::io;
use std::path::PathBuf;

/// Target of marking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkingTarget {
    /// A process, and the children that it will start.
    Process(Pid),
    /// The processes of a control group and of those below it. The folder may be given below the mount of cgroup2.
    Group(PathBuf),
}

impl MarkingTarget {
    /// The process of that number; `None` if no process has such a number.
    pub fn process(number: i32) -> Option<Self> {
        Pid::from_raw(number).filter(|_| number > 0).map(Self::Process)
    }
}

/// Something that runs, and is marked for as long as this exists.
#[derive(Debug)]
pub struct Running {
    attached: Attached,
    /// The process, where it is one.
    process: Option<OwnedFd>,
    group: ControlGroup,
    /// Number of open sockets that were marked.
    pub open_sockets: usize,
}

impl Running {
    /// Marks a process or a group.
    ///
    /// # Errors
    /// When there is none, or this process may not.
    pub fn mark(target: &MarkingTarget, settings: &MarkSettings) -> Result<Self, ExecError> {
        sweep();
        let (group, process, processes) = match target {
            MarkingTarget::Process(pid) => {
                let process = pidfd_open(*pid, PidfdFlags::empty());
                let process = process.map_err(|errno| {
                    SysError::privileged(format!("process {pid} cannot be opened"), "CAP_SYS_PTRACE", errno)
                })?;
                (ControlGroup::around(*pid)?, Some(process), vec![*pid])
            }
            MarkingTarget::Group(path) => {
                let group = ControlGroup::existing(path)?;
                let processes = group.processes();
                (group, None, processes)
            }
        };
        let attached = Attached::new(&group, settings)?;
        let open_sockets =
            processes.into_iter().map(|pid| mark_open_sockets(pid, settings).unwrap_or(0)).sum();
        Ok(Self { attached, process, group, open_sockets })
    }

    /// The folder of the group.
    pub fn group(&self) -> &std::path::Path {
        self.group.path()
    }

    /// The interfaces whose packets are not looked at, each with the reason.
    pub fn without(&self) -> &[String] {
        &self.attached.without
    }

    /// Waits a moment. Returns whether the process still runs; a group always does.
    ///
    /// # Errors
    /// When the kernel cannot wait.
    pub fn wait(&self) -> io::Result<bool> {
        let mut ended: Vec<_> =
            self.process.iter().map(|process| PollFd::new(process, PollFlags::IN)).collect();
        wait(&mut ended, LONGEST_WAIT).map(|has_ended| !has_ended)
    }
}

/// Marks the sockets that a process has open. Returns their number.
fn mark_open_sockets(process: Pid, settings: &MarkSettings) -> io::Result<usize> {
    let entries = fs::read_dir(format!("/proc/{process}/fd"))?.filter_map(Result::ok);
    let is_socket = |entry: &fs::DirEntry| {
        fs::read_link(entry.path())
            .is_ok_and(|file| file.as_os_str().to_string_lossy().starts_with("socket:"))
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<ForeignRawFd>().ok();
    let numbers: Vec<ForeignRawFd> = entries.filter(is_socket).filter_map(number).collect();
    let process = pidfd_open(process, PidfdFlags::empty())?;
    let mark = |number: &ForeignRawFd| {
        let socket = pidfd_getfd(&process, *number, PidfdGetfdFlags::empty())?;
        mark_socket(&socket, settings)
    };
    Ok(numbers.iter().filter(|number| mark(number).unwrap_or(false)).count())
}

/// Sets the options of a socket; false if it is none of IPv4 or IPv6.
fn mark_socket(socket: impl AsFd, settings: &MarkSettings) -> io::Result<bool> {
    let family = SO_DOMAIN.get(&socket)?;
    let is_v6 = family == i32::from(AddressFamily::INET6.as_raw());
    if !is_v6 && family != i32::from(AddressFamily::INET.as_raw()) {
        return Ok(false);
    }
    if settings.dscp.is_some() {
        if is_v6 {
            IPV6_TCLASS.set(&socket, settings.traffic_class(IPV6_TCLASS.get(&socket)?))?;
        }
        IP_TOS.set(&socket, settings.traffic_class(IP_TOS.get(&socket)?))?;
    }
    if let Some(priority) = settings.priority {
        SO_PRIORITY.set(&socket, priority.into())?;
    }
    if settings.rate.is_some() {
        SO_MAX_PACING_RATE.set(&socket, settings.pacing_rate(SO_MAX_PACING_RATE.get(&socket)?))?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_units::{Dscp, Rate};
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn an_open_socket_gets_its_options() {
        let settings = MarkSettings::new(Dscp::new(23), Some(Rate::from_kbps(800)));
        let [v4, v6] = ["127.0.0.1:0", "[::1]:0"].map(|address| TcpListener::bind(address).unwrap());
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        IP_TOS.set(&udp, 0b1011_1001).unwrap();
        assert!(mark_socket(&v4, &settings).unwrap() && mark_socket(&v6, &settings).unwrap());
        assert!(mark_socket(&udp, &settings).unwrap());
        assert_eq!([IP_TOS.get(&v4).unwrap(), IPV6_TCLASS.get(&v6).unwrap()], [23 << 2; 2]);
        assert_eq!(IP_TOS.get(&udp).unwrap(), 23 << 2 | 1);
        assert_eq!((SO_PRIORITY.get(&v4).unwrap(), SO_MAX_PACING_RATE.get(&v4).unwrap()), (6, 100_000));
        let local = std::os::unix::net::UnixDatagram::unbound().unwrap();
        assert!(!mark_socket(&local, &settings).unwrap());
        assert!(mark_socket(fs::File::open("/").unwrap(), &settings).is_err());
    }

    #[test]
    fn the_open_sockets_of_a_process_are_found() {
        let settings = MarkSettings::new(Dscp::new(11), None);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(mark_open_sockets(rustix::process::getpid(), &settings).unwrap() >= 1);
        assert_eq!(IP_TOS.get(&socket).unwrap(), 11 << 2);
    }
}

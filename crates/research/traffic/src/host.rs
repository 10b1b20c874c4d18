//! Work and losses of a host during a run: the processor time of the thread that sends or receives, the use of all
//! processors, and the kernel's counters of packets that were lost inside of the host.
//!
//! The counters are those of the thread's network namespace (`/proc/net/snmp`, `snmp6` and `dev`), so they include the losses of
//! other programs. The use of the processors is that of the whole machine (`/proc/stat`).

use cutline_sys::{now, thread};
use cutline_units::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::fs;

/// Work and losses of a host during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostUse {
    /// Processor time of the thread that sends or receives, ns. It includes the kernel's work in system calls, and
    /// excludes that in interrupts.
    pub thread_ns: u64,
    /// The duration of the measurement, ns.
    pub elapsed_ns: u64,
    /// Time in use of all processors together, by any program, in ticks of the kernel.
    pub busy_ticks: u64,
    /// Time in use and idle time of all processors together, in ticks of the kernel.
    pub ticks: u64,
    /// The counters of the kernel.
    pub drops: HostDrops,
    /// The size of the meter's buffer for datagrams as the kernel counts, bytes; `None` at a sender.
    pub receive_buffer: Option<u64>,
}

/// Packets that a host has lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostDrops {
    /// Datagrams that did not fit into the buffer of a receiving socket.
    pub receive_buffer: u64,
    /// Datagrams that did not fit into the queue of an interface, which the system call reported as an error.
    pub send_buffer: u64,
    /// Datagrams that were discarded because a fragment was missing.
    pub reassembly: u64,
    /// Packets that interfaces dropped on their way out.
    pub interface_sent: u64,
    /// Packets that interfaces dropped on arrival.
    pub interface_received: u64,
}

impl HostUse {
    /// Returns the processor time of the thread over the elapsed time, 0..=1; `None` if no time has elapsed.
    pub fn thread_share(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.thread_ns as f64 / self.elapsed_ns as f64)
    }

    /// Returns the used share of all processors' time, 0..=1; `None` if it is not known.
    pub fn busy_share(&self) -> Option<f64> {
        (self.ticks > 0).then(|| self.busy_ticks as f64 / self.ticks as f64)
    }
}

impl HostDrops {
    fn since(self, before: Self) -> Self {
        // The counters of an interface that was replaced meanwhile begin at zero.
        Self {
            receive_buffer: self.receive_buffer.saturating_sub(before.receive_buffer),
            send_buffer: self.send_buffer.saturating_sub(before.send_buffer),
            reassembly: self.reassembly.saturating_sub(before.reassembly),
            interface_sent: self.interface_sent.saturating_sub(before.interface_sent),
            interface_received: self.interface_received.saturating_sub(before.interface_received),
        }
    }

    /// Reads the counters of the calling thread's network namespace. Those that cannot be read are zero.
    fn read() -> Self {
        let table =
            |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        let (snmp, snmp6, devices) = (table("snmp"), table("snmp6"), table("dev"));
        let both =
            |group: &str, name: &str| ipv4(&snmp, group, name) + ipv6(&snmp6, &format!("{group}6{name}"));
        let [interface_received, interface_sent] = interfaces(&devices);
        Self {
            receive_buffer: both("Udp", "RcvbufErrors"),
            send_buffer: both("Udp", "SndbufErrors"),
            reassembly: both("Ip", "ReasmFails"),
            interface_sent,
            interface_received,
        }
    }
}

/// A measurement that has begun.
#[derive(Debug)]
pub(crate) struct HostWatch {
    began: Instant,
    thread: Duration,
    ticks: [u64; 2],
    drops: HostDrops,
}

impl HostWatch {
    /// Begins to measure the calling thread and its host.
    pub(crate) fn begin() -> Self {
        let (drops, ticks) = (HostDrops::read(), ticks());
        Self { began: now(), thread: thread::cpu_time(), ticks, drops }
    }

    /// Ends the measurement, in the thread that began it.
    pub(crate) fn end(self) -> HostUse {
        let [busy, all] = ticks();
        HostUse {
            thread_ns: thread::cpu_time().saturating_sub(self.thread).as_nanos(),
            elapsed_ns: now().saturating_since(self.began).as_nanos(),
            busy_ticks: busy.saturating_sub(self.ticks[0]),
            ticks: all.saturating_sub(self.ticks[1]),
            drops: HostDrops::read().since(self.drops),
            receive_buffer: None,
        }
    }
}

/// Returns a value of `/proc/net/snmp`, which has two lines for each group: names, and numbers in the same order.
fn ipv4(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(": ")).filter(|(of, _)| *of == group);
    let (Some((_, names)), Some((_, numbers))) = (lines.next(), lines.next()) else { return 0 };
    let mut pairs = names.split_whitespace().zip(numbers.split_whitespace());
    pairs.find(|(of, _)| *of == name).and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

/// Returns a value of `/proc/net/snmp6`, which has a line for each name.
fn ipv6(text: &str, name: &str) -> u64 {
    let mut pairs = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    pairs.find(|(of, _)| *of == name).and_then(|(_, number)| number.trim().parse().ok()).unwrap_or(0)
}

/// Returns the packets that all interfaces of `/proc/net/dev` have dropped on arrival and on their way out: the fourth and the
/// twelfth column behind a name.
fn interfaces(text: &str) -> [u64; 2] {
    let mut sums = [0_u64; 2];
    for (_, columns) in text.lines().filter_map(|line| line.split_once(':')) {
        let numbers: Vec<u64> = columns.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        for (sum, column) in sums.iter_mut().zip([3, 11]) {
            *sum = sum.saturating_add(numbers.get(column).copied().unwrap_or(0));
        }
    }
    sums
}

/// Returns the time for which processors were in use, and with the time for which they were idle, in ticks (proc(5), `/proc/stat`).
fn ticks() -> [u64; 2] {
    of_all_processors(&fs::read_to_string("/proc/stat").unwrap_or_default())
}

fn of_all_processors(stat: &str) -> [u64; 2] {
    // user, nice, system, idle, iowait, irq, softirq, steal; the time of guests is in user.
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let numbers: Vec<u64> = line
        .unwrap_or_default()
        .split_whitespace()
        .take(8)
        .filter_map(|number| number.parse().ok())
        .collect();
    let all = numbers.iter().sum::<u64>();
    let idle = numbers.iter().skip(3).take(2).sum::<u64>();
    [all - idle, all]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn the_tables_of_the_kernel_are_read() {
        let snmp = "Ip: Forwarding ReasmFails\nIp: 1 7\nUdp: InDatagrams RcvbufErrors\nUdp: 5 9\nUdpLite: InDatagrams\nUdpLite: 0\n";
        assert_eq!([ipv4(snmp, "Udp", "RcvbufErrors"), ipv4(snmp, "Ip", "ReasmFails")], [9, 7]);
        assert_eq!([ipv4(snmp, "Udp", "SndbufErrors"), ipv4("", "Udp", "RcvbufErrors")], [0, 0]);
        let snmp6 = "Ip6ReasmFails                   \t3\nUdp6RcvbufErrors                \t4\n";
        assert_eq!([ipv6(snmp6, "Udp6RcvbufErrors"), ipv6(snmp6, "Udp6SndbufErrors")], [4, 0]);
        let devices = "Inter-|   Receive |  Transmit\n face |bytes    packets errs drop\n\
                       lo: 1 2 0 30 0 0 0 0 5 6 0 40 0 0 0 0\neth0:1 2 0 1 0 0 0 0 5 6 0 2 0 0 0 0\n";
        assert_eq!(interfaces(devices), [31, 42]);
        assert_eq!(of_all_processors("cpu  10 1 20 300 4 5 6 7 100 0\ncpu0 1 1 1 1\n"), [49, 353]);
        assert_eq!(of_all_processors(""), [0, 0]);
    }

    #[test]
    fn an_overflow_and_the_time_of_a_thread_are_measured() {
        let full = UdpSocket::bind("127.0.0.1:0").unwrap();
        rustix::net::sockopt::set_socket_recv_buffer_size(&full, 100_000).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let watch = HostWatch::begin();
        for _ in 0..2_000 {
            sender.send_to(&[0; 1000], full.local_addr().unwrap()).unwrap();
        }
        let found = watch.end();
        assert!(found.drops.receive_buffer > 1_000, "{found:?}");
        let share = found.thread_share().unwrap();
        assert!(share > 0.0 && share <= 1.01, "{found:?}");
        assert_eq!((HostUse::default().thread_share(), HostUse::default().busy_share()), (None, None));
    }
}

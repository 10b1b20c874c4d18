//! The document of a host: the delivery of its processes, and its routers.

use cutline_provision::status::Status;
use cutline_publish::{ProgramRow, SocketRow};
use cutline_records::{record, total};
use cutline_router_service::{QdiscDocument, Statistics};
use serde::Deserialize;
use std::sync::Arc;

record! {
    /// State of a host at one time.
    #[derive(Deserialize)]
    pub struct HostDocument {
        #[schemars(extend("const" = "host"))]
        event: String, label, "`host`.";
        at_unix_s: f64, gauge("s"), "Time of the document, since 1970.";
        elapsed_s: f64, counter("s"), "Time since the monitor's start.";
        publishers: u64, gauge("processes"), "Processes that publish.";
        refused_publishers: u64, counter("processes"), "Processes that were refused, because too many published, in all or of their user.";
        refused_rows: u64, counter("rows"), "Rows that were refused, because they were too large or too many.";
        malformed_publishers: u64, counter("processes"), "Processes that were disconnected, because they sent malformed lines.";
        hidden_rows: u64, gauge("rows"), "Rows of other users, which this reader may not see.";
        #[serde(default)]
        unlisted_sockets: u64, gauge("sockets"), "QoS sockets that are not listed; the page lists a hundred.";
        #[serde(default)]
        unlisted_programs: u64, gauge("programs"), "Programs under `cutline exec` that are not listed; the page lists a hundred.";
        #[serde(default)]
        unlisted_routers: u64, gauge("routers"), "Routers that are not listed; the page lists 32.";
        totals: HostTotals, part, "Totals of the rows that this reader may see.";
        sockets: Vec<SocketEntry>, part, "QoS sockets.";
        programs: Vec<ProgramEntry>, part, "Programs that run under `cutline exec`.";
        routers: Vec<RouterEntry>, part, "Routers.";
        #[serde(default)]
        kernel_queues: Vec<KernelQueueEntry>, part, "Queues in the kernel of the monitor's network namespace, which `cutline qdisc add` has put there.";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kernel_queues_problem: Option<String>, label, "Reason why the queues in the kernel cannot be read; null if they can.";
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reservations: Option<Arc<ReservationState>>, part, "Reservations of `cutlined`; null without it, and for readers without access to all rows.";
    }

    /// Reservations of a host.
    #[derive(Deserialize)]
    pub struct ReservationState {
        unlisted_sessions: u64, gauge("sessions"), "Sessions that are not listed, because there are too many.";
        #[serde(default)]
        unlisted_local: u64, gauge("reservations"), "Reservations at this host alone (`local`) that are not listed, because there are too many.";
        status: Status, part, "The status of `cutlined`.";
    }

    /// Totals of a host.
    #[derive(Deserialize)]
    #[serde(default)]
    pub struct HostTotals {
        publishers: u64, gauge("processes"), "Processes that publish.";
        sockets: u64, gauge("sockets"), "QoS sockets.";
        programs: u64, gauge("programs"), "Programs that run under `cutline exec`.";
        routers: u64, gauge("routers"), "Routers.";
        kernel_queues: u64, gauge("queues"), "Queues in the kernel.";
        violations: u64, gauge("violations"), "Violations under way.";
        violations_begun: u64, gauge("violations"), "Violations of the present sockets since each was connected.";
        send_throughput_bps: u64, gauge("bit/s"), "Throughput of the sockets' sent traffic, as the peers report it.";
        receive_throughput_bps: u64, gauge("bit/s"), "Throughput of the sockets' received traffic.";
        reserved_bps: u64, gauge("bit/s"), "Rate that the network has reserved for the sockets.";
        refused_reservations: u64, gauge("sockets"), "Sockets whose reservation was refused. One that was held and has ended is not counted.";
    }

    /// A QoS socket of a process.
    #[derive(Deserialize)]
    pub struct SocketEntry {
        pid: u32, label, "Number of the process.", shown("process");
        uid: u32, label, "User of the process.";
        program: String, label, "Name of the program, as it states it.", shown("program");
        #[serde(flatten)]
        socket: Arc<SocketRow>, part, "The socket.";
    }

    /// A program that runs under `cutline exec`.
    #[derive(Deserialize)]
    pub struct ProgramEntry {
        pid: u32, label, "Number of the process of `cutline exec`.", shown("process");
        uid: u32, label, "User of the process.";
        #[serde(flatten)]
        row: Arc<ProgramRow>, part, "The program.";
    }

    /// A router.
    #[derive(Deserialize)]
    pub struct RouterEntry {
        pid: u32, label, "Number of the process.", shown("process");
        uid: u32, label, "User of the process.";
        router: Arc<Statistics>, part, "Statistics of the router.";
    }

    /// A queue in the kernel. It has no process, and every reader sees it.
    #[derive(Deserialize)]
    pub struct KernelQueueEntry {
        index: u32, label, "Number of the interface in the kernel.";
        #[serde(flatten)]
        queue: Arc<QdiscDocument>, part, "The queue, as `cutline qdisc show --json` reports it.";
    }
}

impl HostTotals {
    /// Adds a socket.
    pub fn add_socket(&mut self, row: &SocketRow) {
        let both = [&row.send, &row.receive];
        self.sockets += 1;
        self.violations += both.iter().map(|row| row.violations.len() as u64).sum::<u64>();
        // The other numbers are those that a process states, which can be any.
        let add = |total: &mut u64, number: u64| *total = total.saturating_add(number);
        add(&mut self.violations_begun, total(both.map(|row| row.violations_begun)));
        add(&mut self.send_throughput_bps, row.send.throughput_bps.unwrap_or(0));
        add(&mut self.receive_throughput_bps, row.receive.throughput_bps.unwrap_or(0));
        add(&mut self.reserved_bps, row.reserved_bps.unwrap_or(0));
        self.refused_reservations += u64::from(row.reservation == "refused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_publish::DirectionRow;

    #[test]
    fn a_reservation_that_was_held_and_has_ended_is_not_refused() {
        let mut totals = HostTotals::default();
        for reservation in ["none", "waiting", "reserved", "refused", "ended"] {
            totals.add_socket(&SocketRow { reservation: reservation.to_owned(), ..SocketRow::default() });
        }
        assert_eq!((totals.sockets, totals.refused_reservations), (5, 1));
    }

    #[test]
    fn totals_are_the_largest_numbers_at_most() {
        let way = || DirectionRow {
            throughput_bps: Some(u64::MAX),
            violations_begun: u64::MAX,
            ..DirectionRow::default()
        };
        let row =
            SocketRow { reserved_bps: Some(u64::MAX), send: way(), receive: way(), ..SocketRow::default() };
        let mut totals = HostTotals::default();
        for _ in 0..2 {
            totals.add_socket(&row);
        }
        assert_eq!((totals.sockets, totals.violations_begun, totals.reserved_bps), (2, u64::MAX, u64::MAX));
        assert_eq!([totals.send_throughput_bps, totals.receive_throughput_bps], [u64::MAX; 2]);
    }
}

//! The document of a host: what its processes deliver, and its routers.

use cutline_publish::{ProgramRow, SocketRow};
use cutline_records::record;
use cutline_router_service::Statistics;
use serde::Deserialize;

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
        malformed_publishers: u64, counter("processes"), "Processes that were disconnected, because they sent something else.";
        hidden_rows: u64, gauge("rows"), "Rows of other users, which this reader may not see.";
        #[serde(default)]
        unlisted_sockets: u64, gauge("sockets"), "QoS sockets that are not listed; the page lists a hundred.";
        sockets: Vec<SocketEntry>, part, "QoS sockets.";
        programs: Vec<ProgramEntry>, part, "Programs that run under `cutline exec`.";
        routers: Vec<RouterEntry>, part, "Routers.";
    }

    /// A QoS socket of a process.
    #[derive(Deserialize)]
    pub struct SocketEntry {
        pid: u32, label, "Number of the process.", shown("process");
        uid: u32, label, "User of the process.";
        program: String, label, "Name of the program, as it states it.", shown("program");
        #[serde(flatten)]
        socket: SocketRow, part, "The socket.";
    }

    /// A program that runs under `cutline exec`.
    #[derive(Deserialize)]
    pub struct ProgramEntry {
        pid: u32, label, "Number of the process of `cutline exec`.", shown("process");
        uid: u32, label, "User of the process.";
        #[serde(flatten)]
        row: ProgramRow, part, "The program.";
    }

    /// A router.
    #[derive(Deserialize)]
    pub struct RouterEntry {
        pid: u32, label, "Number of the process.", shown("process");
        uid: u32, label, "User of the process.";
        router: Statistics, part, "Its statistics.";
    }
}

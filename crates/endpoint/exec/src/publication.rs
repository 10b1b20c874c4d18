//! Publication of a program's counters to the monitor of this host, while it runs ([`cutline_publish`]).

use crate::counters::Counters;
use crate::report::SocketTotals;
use crate::{ExecOptions, MarkingMethod};
use cutline_publish::{ProgramRow, Publisher, RowKind, RowSnapshot, SEARCH_EVERY, socket_path};
use cutline_units::{DscpPool2, HintCodec as _};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Name of the publishing program.
const PROGRAM: &str = "cutline exec";

/// A program that runs, for its row.
pub struct RunningProgram<'r> {
    /// Number of its process.
    pub process: u32,
    pub method: MarkingMethod,
    pub options: &'r ExecOptions,
    /// Counters of its sockets; `None` where nothing is counted.
    pub counters: Option<&'r Counters>,
}

impl RunningProgram<'_> {
    /// Publishes until the other end of `ended` is dropped.
    pub fn publish(&self, ended: &Receiver<()>) {
        let Some(path) = socket_path() else { return };
        loop {
            // A monitor that is not there, or has gone, may come.
            if self.publish_to(&path, ended).is_ok() || has_ended(ended, SEARCH_EVERY) {
                return;
            }
        }
    }

    /// Publishes to the monitor at `path` until the program has ended.
    ///
    /// # Errors
    /// When there is none, or it has gone.
    fn publish_to(&self, path: &Path, ended: &Receiver<()>) -> io::Result<()> {
        let put =
            |snapshot: &mut RowSnapshot<'_>| snapshot.put(RowKind::Program, self.process.into(), &self.row());
        let pause = |_: &mut Publisher, time| Ok(!has_ended(ended, time));
        // Every request concerns a socket.
        Publisher::connect(path, PROGRAM)?.run(put, pause, drop)
    }

    fn row(&self) -> ProgramRow {
        let settings = &self.options.settings;
        let totals = self
            .counters
            .map(|counters| counters.read().as_ref().map(SocketTotals::from).unwrap_or_default());
        let totals = totals.as_ref();
        ProgramRow {
            process: self.process.into(),
            program: self
                .options
                .command
                .first()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            method: self.method.name().to_owned(),
            hint: settings.dscp.and_then(|dscp| DscpPool2.decode(dscp)).map(cutline_units::Hint::level),
            rate_bps: settings.rate.map(cutline_units::Rate::as_bps),
            is_counted: self.counters.is_some(),
            sockets: totals.map(|totals| totals.tcp_sockets + totals.udp_sockets),
            messages: totals.map(|totals| totals.udp_messages + totals.tcp_segments),
            bytes: totals.map(|totals| totals.udp_bytes + totals.tcp_sent_bytes),
            waits: totals.map(|totals| totals.udp_waits),
        }
    }
}

/// Waits for so long. Returns whether the program has ended meanwhile.
fn has_ended(ended: &Receiver<()>, time: Duration) -> bool {
    !matches!(ended.recv_timeout(time), Err(RecvTimeoutError::Timeout))
}

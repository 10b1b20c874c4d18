//! Output without a reader: pipes that stay full, and processes that have to end nevertheless.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::process::{Child, ExitStatus};
use std::time::Instant;

/// Time that a process may take to end.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
/// A write of this many bytes finds room whenever a pipe reports room (pipe(7), `PIPE_BUF`).
const PART: usize = 4096;

/// Returns a pipe that is full. A writer waits until it is read.
///
/// # Panics
/// When the system has no pipe.
pub fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = pipe().expect("a pipe");
    let has_room = |writer: &PipeWriter| {
        let mut fds = [PollFd::new(writer, PollFlags::OUT)];
        poll(&mut fds, Some(&Timespec::default())).expect("a pipe can be waited for") > 0
    };
    while has_room(&writer) {
        writer.write_all(&[b'x'; PART]).expect("there is room");
    }
    (reader, writer)
}

/// Sends SIGTERM to a process and waits until it has ended; `None` if it does not within a minute. It is killed then.
///
/// # Panics
/// When the process cannot be signalled or waited for.
pub fn terminated(process: &mut Child) -> Option<ExitStatus> {
    kill_process(Pid::from_child(process), Signal::TERM).expect("it runs");
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        if let Some(status) = process.try_wait().expect("it can be waited for") {
            return Some(status);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(process.kill());
    drop(process.wait());
    None
}

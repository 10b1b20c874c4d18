//! Decoders of a film as the load of a processor (QUANTA section 4.2): ffmpeg decodes MPEG-1 as fast as it can, again and again.

use super::child::{Child, ProgramError, of_file};
use cutline_sys::thread::joined;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time that making the film may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Standard image format of MPEG-1, 25 frames/s, 4 s.
const FILM: &str = "testsrc2=size=352x288:rate=25:duration=4";
const FILE: &str = "film.mpg";
/// Clock ticks per second in `/proc/PID/stat` (`proc_pid_stat(5)`; the value of `sysconf(_SC_CLK_TCK)` on all Linux systems).
const TICKS_PER_SECOND: f64 = 100.0;

fn ffmpeg(folder: &Path) -> Command {
    let mut command = Command::new("ffmpeg");
    command.current_dir(folder).args(["-hide_banner", "-nostdin", "-nostats", "-y"]);
    command
}

/// A film in a folder.
#[derive(Clone, Debug)]
pub struct EncodedFilm(PathBuf);

impl EncodedFilm {
    /// Makes the film.
    ///
    /// # Errors
    /// When ffmpeg is not installed or fails.
    pub fn make(folder: &Path) -> Result<Self, ProgramError> {
        let mut command = ffmpeg(folder);
        command.args(["-f", "lavfi", "-i", FILM, "-c:v", "mpeg1video", "-b:v", "1500k", FILE]);
        Child::run(&mut command, &folder.join("film"), PATIENCE)?;
        Ok(Self(folder.to_owned()))
    }

    /// Starts decoders on one processor. They run until this is dropped.
    ///
    /// # Errors
    /// When ffmpeg does not start, or the processor is not available to this process.
    pub fn decode(&self, count: u32, processor: usize) -> Result<Decoders, ProgramError> {
        let start = |number: u32| {
            let mut command = ffmpeg(&self.0);
            command.args(["-stream_loop", "-1", "-threads", "1", "-i", FILE, "-f", "null", "-"]);
            Child::start(&mut command, None, &self.0.join(format!("decode{number}")))
        };
        // A process is where the thread is that starts it.
        let started = std::thread::scope(|scope| {
            let starting = scope.spawn(|| {
                pin(&[processor]).map_err(of_file(&self.0))?;
                (0..count).map(start).collect::<Result<Vec<_>, _>>()
            });
            joined(starting)
        });
        Ok(Decoders(started?))
    }
}

/// Decoders that run. They are killed when this is dropped.
#[derive(Debug)]
pub struct Decoders(Vec<Child>);

impl Decoders {
    /// Returns the processor time of all decoders since their start, s.
    ///
    /// # Errors
    /// When one has ended.
    pub fn processor_time(&self) -> Result<f64, ProgramError> {
        let of = |child: &Child| {
            let path = PathBuf::from(format!("/proc/{}/stat", child.id()));
            let text = std::fs::read_to_string(&path).map_err(of_file(&path))?;
            Ok(ticks(&text).unwrap_or(0) as f64 / TICKS_PER_SECOND)
        };
        self.0.iter().map(of).sum()
    }
}

/// Returns the time of a process in user and kernel mode, from `/proc/PID/stat`: fields 14 and 15. The name, field 2, is in parentheses and
/// may have any characters.
fn ticks(stat: &str) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Returns the processors that this thread may use.
///
/// # Errors
/// When the kernel does not report it.
pub fn processors() -> std::io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|processor| set.is_set(*processor)).collect())
}

/// Restricts the calling thread to some processors.
///
/// # Errors
/// When none of them is available to this process.
pub fn pin(processors: &[usize]) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    for processor in processors {
        set.set(*processor);
    }
    Ok(sched_setaffinity(None, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_process_is_that_in_both_modes() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194304 100 0 0 0 250 31 0 0 20 0 1 0 100 1000 10";
        assert_eq!(ticks(stat), Some(281));
        assert_eq!(ticks("42 (short) S 1"), None);
        let own = std::fs::read_to_string("/proc/self/stat").unwrap();
        assert!(ticks(&own).is_some());
    }

    #[test]
    fn a_pinned_thread_has_the_processors_that_it_was_given() {
        let all = processors().unwrap();
        let last = *all.last().unwrap();
        let pinned = std::thread::spawn(move || {
            pin(&[last]).unwrap();
            processors().unwrap()
        });
        assert_eq!(pinned.join().unwrap(), [last]);
        assert_eq!(processors().unwrap(), all);
    }
}

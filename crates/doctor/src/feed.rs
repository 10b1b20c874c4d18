//! Where a router's statistics come from: a file that it writes, a pipe, or its socket.

use cutline_router_service::{AskError, Client, Request, Statistics, StatisticsError};
use cutline_sys::now;
use cutline_units::{Duration, Instant};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// How often a socket is asked.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long its answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where statistics are to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The standard input.
    Stdin,
    /// A file that a router writes to, a named pipe, or a socket that answers `stats`.
    Path(PathBuf),
}

/// Why there are none.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// It cannot be opened or read.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// What it says is something else.
    #[error("{0}: {1}")]
    Other(String, StatisticsError),
    /// A router does not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
}

/// An open source.
pub enum Feed {
    /// A file, from some place on.
    File { name: String, file: BufReader<File>, line: String },
    /// Lines from a thread that waits for them.
    Lines { name: String, lines: Receiver<io::Result<String>>, ended: bool },
    /// A socket, and when it is asked next.
    Socket { path: PathBuf, next: Instant },
}

impl Feed {
    /// Opens it. Of a file, only what is appended from now on counts if `live`, and else all of it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(source: &Source, live: bool) -> Result<Self, FeedError> {
        match source {
            Source::Stdin => Ok(Self::lines("stdin".to_owned(), BufReader::new(io::stdin()))),
            Source::Path(path) => {
                Self::open_path(path, live).map_err(|error| FeedError::Io(path.display().to_string(), error))
            }
        }
    }

    fn open_path(path: &Path, live: bool) -> io::Result<Self> {
        let kind = path.metadata()?.file_type();
        let name = path.display().to_string();
        if kind.is_socket() {
            return Ok(Self::Socket { path: path.to_owned(), next: Instant::ZERO });
        }
        let mut file = File::open(path)?;
        if !kind.is_file() {
            return Ok(Self::lines(name, BufReader::new(file)));
        }
        if live {
            file.seek(SeekFrom::End(0))?;
        }
        Ok(Self::File { name, file: BufReader::new(file), line: String::new() })
    }

    fn lines(name: String, from: impl BufRead + Send + 'static) -> Self {
        let (to, lines) = channel();
        // It ends with its source, or with the process.
        std::thread::spawn(move || from.lines().try_for_each(|line| to.send(line)));
        Self::Lines { name, lines, ended: false }
    }

    /// What has come since the last call.
    ///
    /// # Errors
    /// When it cannot be read, or says something else.
    pub fn take(&mut self) -> Result<Vec<Statistics>, FeedError> {
        match self {
            Self::File { name, file, line } => appended(name, file, line),
            Self::Lines { name, lines, ended } => {
                let mut samples = Vec::new();
                loop {
                    match lines.try_recv() {
                        Ok(Ok(text)) => samples.push(sample(name, &text)?),
                        Ok(Err(error)) => return Err(FeedError::Io(name.clone(), error)),
                        Err(TryRecvError::Empty) => return Ok(samples),
                        Err(TryRecvError::Disconnected) => {
                            *ended = true;
                            return Ok(samples);
                        }
                    }
                }
            }
            Self::Socket { path, next } if now() >= *next => {
                *next = now() + ASK_EVERY;
                let reply = Client::ask(path, Request::Statistics, PATIENCE)?.reply()?;
                Ok(reply.statistics.into_iter().collect())
            }
            Self::Socket { .. } => Ok(Vec::new()),
        }
    }

    /// Whether nothing more can come, unless somebody appends to a file.
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Lines { ended: true, .. })
    }
}

/// Whole lines that have been appended; half a line is kept for the next time.
fn appended(name: &str, file: &mut BufReader<File>, line: &mut String) -> Result<Vec<Statistics>, FeedError> {
    let mut samples = Vec::new();
    while file.read_line(line).map_err(|error| FeedError::Io(name.to_owned(), error))? > 0 {
        if line.ends_with('\n') {
            samples.push(sample(name, line)?);
            line.clear();
        }
    }
    Ok(samples)
}

fn sample(name: &str, line: &str) -> Result<Statistics, FeedError> {
    Statistics::parse(line).map_err(|error| FeedError::Other(name.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixListener;

    fn line(elapsed_s: u32) -> String {
        Statistics { elapsed_s: elapsed_s.into(), ..Statistics::default() }.json() + "\n"
    }

    fn elapsed(feed: &mut Feed) -> Vec<f64> {
        feed.take().unwrap().iter().map(|sample| sample.elapsed_s).collect()
    }

    #[test]
    fn a_file_is_read_as_it_grows_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats");
        std::fs::write(&path, line(1)).unwrap();
        let source = Source::Path(path.clone());
        let (mut live, mut past) = (Feed::open(&source, true).unwrap(), Feed::open(&source, false).unwrap());
        assert_eq!((elapsed(&mut live), elapsed(&mut past)), (vec![], vec![1.0]));
        let text = line(2) + &line(3);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&text.as_bytes()[..text.len() - 9]).unwrap();
        assert_eq!(elapsed(&mut live), [2.0]);
        file.write_all(&text.as_bytes()[text.len() - 9..]).unwrap();
        assert_eq!(elapsed(&mut live), [3.0]);
    }

    #[test]
    fn a_socket_is_asked_for_statistics() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = String::new();
            BufReader::new(&stream).read_line(&mut question).unwrap();
            stream.write_all(line(7).as_bytes()).unwrap();
            question
        });
        let mut feed = Feed::open(&Source::Path(path), true).unwrap();
        assert_eq!(elapsed(&mut feed), [7.0]);
        assert_eq!(answering.join().unwrap(), "stats\n");
        assert!(elapsed(&mut feed).is_empty(), "not again at once");
    }

    #[test]
    fn lines_come_from_a_pipe_until_it_ends() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut feed = Feed::lines("pipe".into(), BufReader::new(reader));
        writer.write_all(line(4).as_bytes()).unwrap();
        drop(writer);
        let mut found = Vec::new();
        while !feed.has_ended() {
            found.extend(elapsed(&mut feed));
        }
        assert_eq!(found, [4.0]);
    }

    #[test]
    fn what_is_something_else_is_told_with_its_name() {
        let missing = Feed::open(&Source::Path("/nosuch".into()), true).err().unwrap().to_string();
        assert!(missing.starts_with("/nosuch: "), "{missing}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        std::fs::write(&path, "words\n").unwrap();
        let error = Feed::open(&Source::Path(path), false).unwrap().take().unwrap_err().to_string();
        assert!(error.contains("other: ") && error.contains("cutline router --json"), "{error}");
    }
}

//! Sources of a router's statistics: a file that it writes, a pipe, or its socket.

use cutline_router_service::{RouterClient, RouterClientError, RouterRequest, Statistics, StatisticsError};
use cutline_sys::now;
use cutline_text::Printable;
use cutline_units::{Duration, Instant};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// The interval between queries of a socket.
const QUERY_INTERVAL: Duration = Duration::from_millis(500);
/// The longest time that a socket may take to answer.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// A source of statistics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The standard input.
    Stdin,
    /// A file to which a router writes, a named pipe, or a socket that answers `stats`.
    Path(PathBuf),
}

/// Reason why statistics cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The source cannot be opened or read.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// The source has something other than statistics.
    #[error("{0}: {1}")]
    Other(String, StatisticsError),
    /// The router does not answer.
    #[error(transparent)]
    Router(#[from] RouterClientError),
}

/// A reader of statistics from an open source.
pub enum StatisticsReader {
    /// A file. `line` is the beginning of a line that is not complete.
    File { name: String, file: BufReader<File>, line: String },
    /// Lines from a thread that reads them.
    Lines { name: String, lines: Receiver<io::Result<String>>, ended: bool },
    /// A socket, and the time of the next query.
    Socket { path: PathBuf, next: Instant },
}

impl StatisticsReader {
    /// Opens a source. If `live`, only lines that are appended to a file from now on are read; otherwise the whole file.
    ///
    /// # Errors
    /// When the source cannot be opened.
    pub fn open(source: &Source, live: bool) -> Result<Self, SourceError> {
        match source {
            Source::Stdin => Ok(Self::lines("stdin".to_owned(), BufReader::new(io::stdin()))),
            Source::Path(path) => Self::open_path(path, live)
                .map_err(|error| SourceError::Io(Printable(path.display()).to_string(), error)),
        }
    }

    fn open_path(path: &Path, live: bool) -> io::Result<Self> {
        let kind = path.metadata()?.file_type();
        let name = Printable(path.display()).to_string();
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
        // The thread ends when its source ends, or with the process.
        std::thread::spawn(move || from.lines().try_for_each(|line| to.send(line)));
        Self::Lines { name, lines, ended: false }
    }

    /// Returns the statistics that have arrived since the last call.
    ///
    /// # Errors
    /// When the source cannot be read or has something other than statistics.
    pub fn take(&mut self) -> Result<Vec<Statistics>, SourceError> {
        match self {
            Self::File { name, file, line } => appended(name, file, line),
            Self::Lines { name, lines, ended } => {
                let mut samples = Vec::new();
                loop {
                    match lines.try_recv() {
                        Ok(Ok(text)) => samples.push(sample(name, &text)?),
                        Ok(Err(error)) => return Err(SourceError::Io(name.clone(), error)),
                        Err(TryRecvError::Empty) => return Ok(samples),
                        Err(TryRecvError::Disconnected) => {
                            *ended = true;
                            return Ok(samples);
                        }
                    }
                }
            }
            Self::Socket { path, next } if now() >= *next => {
                *next = now() + QUERY_INTERVAL;
                let reply = RouterClient::ask(path, RouterRequest::Statistics, REPLY_TIMEOUT)?.reply()?;
                Ok(reply.statistics.into_iter().collect())
            }
            Self::Socket { .. } => Ok(Vec::new()),
        }
    }

    /// Returns whether the source has ended. A file always counts as ended, although more lines may be
    /// appended.
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Lines { ended: true, .. })
    }
}

/// Reads the complete lines that have been appended. An incomplete line is kept for the next call.
fn appended(
    name: &str,
    file: &mut BufReader<File>,
    line: &mut String,
) -> Result<Vec<Statistics>, SourceError> {
    let mut samples = Vec::new();
    while file.read_line(line).map_err(|error| SourceError::Io(name.to_owned(), error))? > 0 {
        if line.ends_with('\n') {
            samples.push(sample(name, line)?);
            line.clear();
        }
    }
    Ok(samples)
}

fn sample(name: &str, line: &str) -> Result<Statistics, SourceError> {
    Statistics::parse(line).map_err(|error| SourceError::Other(name.to_owned(), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixListener;

    fn line(elapsed_s: u32) -> String {
        Statistics { elapsed_s: elapsed_s.into(), ..Statistics::default() }.json() + "\n"
    }

    fn elapsed(reader: &mut StatisticsReader) -> Vec<f64> {
        reader.take().unwrap().iter().map(|sample| sample.elapsed_s).collect()
    }

    #[test]
    fn a_file_is_read_as_it_grows_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stats");
        std::fs::write(&path, line(1)).unwrap();
        let source = Source::Path(path.clone());
        let (mut live, mut past) =
            (StatisticsReader::open(&source, true).unwrap(), StatisticsReader::open(&source, false).unwrap());
        assert_eq!((elapsed(&mut live), elapsed(&mut past)), (vec![], vec![1.0]));
        let text = line(2) + &line(3);
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(&text.as_bytes()[..text.len() - 9]).unwrap();
        assert_eq!(elapsed(&mut live), [2.0]);
        file.write_all(&text.as_bytes()[text.len() - 9..]).unwrap();
        assert_eq!(elapsed(&mut live), [3.0]);
    }

    #[test]
    fn a_socket_is_queried_for_statistics() {
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
        let mut reader = StatisticsReader::open(&Source::Path(path), true).unwrap();
        assert_eq!(elapsed(&mut reader), [7.0]);
        assert_eq!(answering.join().unwrap(), "stats\n");
        assert!(elapsed(&mut reader).is_empty(), "the next query is not due yet");
    }

    #[test]
    fn lines_come_from_a_pipe_until_it_ends() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut reader = StatisticsReader::lines("pipe".into(), BufReader::new(reader));
        writer.write_all(line(4).as_bytes()).unwrap();
        drop(writer);
        let mut times = Vec::new();
        while !reader.has_ended() {
            times.extend(elapsed(&mut reader));
        }
        assert_eq!(times, [4.0]);
    }

    #[test]
    fn errors_name_the_source() {
        let missing =
            StatisticsReader::open(&Source::Path("/nosuch".into()), true).err().unwrap().to_string();
        assert!(missing.starts_with("/nosuch: "), "{missing}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        std::fs::write(&path, "words\n").unwrap();
        let error =
            StatisticsReader::open(&Source::Path(path), false).unwrap().take().unwrap_err().to_string();
        assert!(error.contains("other: ") && error.contains("cutline router --json"), "{error}");
    }
}

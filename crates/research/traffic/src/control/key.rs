//! The key that both ends share, and the authentication of their messages with HMAC-SHA-256 (RFC 2104).
//!
//! ```text
//! session key of a direction = HMAC(key, direction, `hello` as it was sent, `open` as it was sent)
//! tag of a message           = HMAC(session key, number of the message, JSON of the message)
//! line                       = tag as 64 hexadecimal digits, a space, JSON
//! ```
//!
//! `hello` has the version of the protocol and a nonce of the receiver, `open` a nonce of the sender. So the tags of one
//! session are worth nothing in another one, and those of one direction nothing in the other. Messages are numbered from 0
//! in each direction, so none can be repeated, left out or exchanged.

use super::message::split_tag;
use cutline_signal::authentication::{self, LONGEST_KEY};
use cutline_sys::random;
use cutline_text::Printable;
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Purpose of the key.
const PURPOSE: &[u8] = b"cutline tg, key";
const TO_RECEIVER: &[u8] = b"cutline tg, sender to receiver";
const TO_SENDER: &[u8] = b"cutline tg, receiver to sender";

/// A key that both ends of a session know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(authentication::Key);

impl Key {
    /// Reads a key file: a regular file that only its owner may read, of
    /// [`SHORTEST_KEY`](authentication::SHORTEST_KEY) to [`LONGEST_KEY`] bytes.
    ///
    /// # Errors
    /// Returns a sentence that names the file, the error in it and the remedy.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong = |why: &dyn fmt::Display| format!("key file {}: {why}", Printable(path.display()));
        Self::new(&Self::content(path)?).map_err(|why| wrong(&why))
    }

    /// Reads the content of a key file, which may be a key for something else: a regular file that only its owner may read.
    ///
    /// # Errors
    /// As [`Key::read`], but for the length.
    pub fn content(path: &Path) -> Result<Vec<u8>, String> {
        let wrong = |why: &dyn fmt::Display| format!("key file {}: {why}", Printable(path.display()));
        let system = |errno| wrong(&io::Error::from(errno));
        // Opening a pipe must not wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty()).map_err(system)?;
        let status = fstat(&file).map_err(system)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(wrong(&"must be a regular file"));
        }
        let mode = status.st_mode & 0o777;
        if mode & 0o077 != 0 {
            let shown = Printable(path.display());
            return Err(wrong(&format_args!("others may use it (mode {mode:03o}): run chmod 600 {shown}")));
        }
        let mut content = Vec::new();
        let read = File::from(file).take(LONGEST_KEY as u64 + 1).read_to_end(&mut content);
        read.map_err(|error| wrong(&error))?;
        Ok(content)
    }

    /// Returns the key with this content. White space at its ends does not count.
    ///
    /// # Errors
    /// Returns the allowed lengths if the content is shorter or longer.
    pub fn new(content: &[u8]) -> Result<Self, String> {
        authentication::Key::new(content, PURPOSE).map(Self)
    }
}

/// The end of a session that seals and opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Sender,
    Receiver,
}

/// State with which an end writes and checks the tags of a session.
pub(super) struct Seal {
    ours: authentication::Key,
    theirs: authentication::Key,
    /// The number of messages that this end has sent.
    sent: u64,
    received: u64,
}

impl Seal {
    /// Returns the seal of the session that began with these two messages.
    pub(super) fn new(key: &Key, role: Role, hello: &[u8], open: &[u8]) -> Self {
        let of = |direction: &[u8]| key.0.derive(&[direction, hello, open]);
        let (ours, theirs) = match role {
            Role::Sender => (TO_RECEIVER, TO_SENDER),
            Role::Receiver => (TO_SENDER, TO_RECEIVER),
        };
        Self { ours: of(ours), theirs: of(theirs), sent: 0, received: 0 }
    }

    /// Returns the line of a message.
    pub(super) fn close(&mut self, message: &[u8]) -> Vec<u8> {
        let tag = self.ours.tag(&[&self.sent.to_be_bytes(), message]);
        self.sent += 1;
        let mut line = hex(&tag).into_bytes();
        line.push(b' ');
        line.extend_from_slice(message);
        line.push(b'\n');
        line
    }

    /// Returns the message in a line without its end, if its tag is valid and the line is the next one.
    pub(super) fn open<'l>(&mut self, line: &'l [u8]) -> Option<&'l [u8]> {
        let (tag, message) = split_tag(line)?;
        if !self.theirs.verifies(&[&self.received.to_be_bytes(), message], &tag) {
            return None;
        }
        self.received += 1;
        Some(message)
    }
}

/// Returns 32 random bytes of the kernel as hexadecimal digits: a number that is used once.
pub(super) fn nonce() -> io::Result<String> {
    Ok(hex(&random::<32>()?))
}

/// Returns an unpredictable random number.
pub(super) fn token() -> io::Result<u64> {
    random().map(u64::from_be_bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, chmod, mknodat};

    const HELLO: &[u8] = b"{\"hello\":1}";
    const OPEN: &[u8] = b"{\"open\":2}";

    fn key(first: u8) -> Key {
        Key::new(&[first; 32]).unwrap()
    }

    fn close(seal: &mut Seal, message: &[u8]) -> Vec<u8> {
        seal.close(message).strip_suffix(b"\n").unwrap().to_vec()
    }

    fn pair() -> (Seal, Seal) {
        let of = |role| Seal::new(&key(1), role, HELLO, OPEN);
        (of(Role::Sender), of(Role::Receiver))
    }

    #[test]
    fn each_message_opens_once_and_in_order() {
        let (mut sender, mut receiver) = pair();
        let [one, two] = [b"one", b"two"].map(|message| close(&mut sender, message));
        assert_eq!(receiver.open(&two), None, "the first one is missing");
        assert_eq!(receiver.open(&one), Some(&b"one"[..]));
        assert_eq!(receiver.open(&one), None, "again");
        assert_eq!(receiver.open(&two), Some(&b"two"[..]));
        assert_eq!(sender.open(&one), None, "a reflection");
        let reply = close(&mut receiver, b"reply");
        assert_eq!(sender.open(&reply), Some(&b"reply"[..]));
    }

    #[test]
    fn a_tag_belongs_to_key_session_and_message() {
        let line = close(&mut pair().0, b"message");
        let opens = |key: &Key, hello: &[u8], open: &[u8], line: &[u8]| {
            Seal::new(key, Role::Receiver, hello, open).open(line).is_some()
        };
        assert!(opens(&key(1), HELLO, OPEN, &line));
        assert!(!opens(&key(2), HELLO, OPEN, &line));
        assert!(!opens(&key(1), b"{\"hello\":2}", OPEN, &line));
        assert!(!opens(&key(1), HELLO, b"{\"open\":3}", &line));
        for at in 0..line.len() {
            let mut changed = line.clone();
            changed[at] ^= 1;
            assert!(!opens(&key(1), HELLO, OPEN, &changed), "byte {at}");
            assert!(!opens(&key(1), HELLO, OPEN, &line[..at]), "{at} bytes");
        }
    }

    #[test]
    fn nonces_and_tokens_differ() {
        assert_ne!(nonce().unwrap(), nonce().unwrap());
        assert_ne!(token().unwrap(), token().unwrap());
    }

    #[test]
    fn a_key_file_is_regular_private_and_long_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let write = |content: &[u8], mode: u32| {
            std::fs::write(&path, content).unwrap();
            chmod(&path, Mode::from_raw_mode(mode)).unwrap();
            Key::read(&path)
        };
        assert_eq!(write(&[b"\n", &[7; 32][..], b"\n"].concat(), 0o600), Key::new(&[7; 32]));
        for mode in [0o640, 0o604, 0o620, 0o602, 0o601] {
            let why = write(&[7; 32], mode).unwrap_err();
            assert!(why.contains("chmod 600") && why.contains("key"), "{why}");
        }
        for length in [0, 31, LONGEST_KEY + 1, 1 << 20] {
            let why = write(&vec![7; length], 0o400).unwrap_err();
            assert!(why.contains("32 to 4096 bytes"), "{length}: {why}");
        }
        let pipe = folder.path().join("pipe\u{1b}");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let why = Key::read(&pipe).unwrap_err();
        assert!(why.contains("must be a regular file") && why.contains("pipe\\u{1b}"), "{why}");
        assert!(Key::read(folder.path()).is_err() && Key::read(Path::new("/nosuch")).is_err());
    }
}

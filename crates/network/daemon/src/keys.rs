//! Files with the keys of neighbours (RFC 2747).
//!
//! ```toml
//! [[key]]
//! id = 1
//! algorithm = "hmac-sha-256"
//! secret = "00112233445566778899aabbccddeeff"
//! ```
//!
//! The secret is in hexadecimal digits. `sender` may name the one neighbour that signs with a key. Only the owner may read the file.

use crate::error::DaemonError;
use cutline_config::{Document, TableReader, ValueKind, kind};
use cutline_rsvp::integrity::{Algorithm, SecurityKey};
use cutline_rsvp::object::KEY_BITS;
use cutline_service::regular_file;
use std::net::IpAddr;
use std::path::Path;

/// The shortest secret, bytes.
const SHORTEST: usize = 16;

/// Reads a file of keys.
pub fn load(path: &Path) -> Result<Vec<SecurityKey>, DaemonError> {
    let file = path.display().to_string();
    let text =
        regular_file::read_private(path).map_err(|why| DaemonError::Keys { file: file.clone(), why })?;
    Ok(parse(&text, &file)?)
}

fn parse(text: &str, name: &str) -> Result<Vec<SecurityKey>, cutline_config::Errors> {
    cutline_config::read(&Document::parse(text, name)?, |root| {
        let tables = root.tables("key");
        if tables.is_empty() {
            root.lacks("key", "at least one key: write [[key]]");
        }
        let keys: Option<Vec<SecurityKey>> = tables.iter().map(key).collect();
        root.finish();
        keys
    })
}

fn key(table: &TableReader<'_>) -> Option<SecurityKey> {
    let id = table.required("id", &kind::integer(0, KEY_BITS as i64));
    let algorithms = [("hmac-sha-256", Algorithm::HmacSha256), ("hmac-md5", Algorithm::HmacMd5)];
    let algorithm = table.required("algorithm", &kind::one_of("one of", &algorithms));
    let secret = secret(table);
    let sender = table.optional("sender", &address());
    table.finish();
    Some(SecurityKey { sender, ..SecurityKey::new(id?, algorithm?, secret?) })
}

/// Reads the secret. A wrong one is not repeated in the message.
fn secret(table: &TableReader<'_>) -> Option<Vec<u8>> {
    let text = table.required("secret", &kind::text())?;
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0 && digits.len() >= 2 * SHORTEST);
    let Some(digits) = digits else {
        let span = table.node("secret").map(|node| &node.span);
        let why =
            format!(": the value is not allowed: expected at least {SHORTEST} bytes as hexadecimal digits");
        table.report(&table.path_of("secret"), span, why);
        return None;
    };
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// An address of IP.
pub fn address() -> ValueKind<IpAddr> {
    ValueKind::new("an address such as \"10.0.0.1\"", |node| {
        let text = node.as_text().ok_or_else(String::new)?;
        text.parse().map_err(|_| String::new())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "[[key]]\nid = 7\nalgorithm = 'hmac-sha-256'\nsecret = '00112233445566778899aabbccddeeff'\n";

    #[test]
    fn keys_are_read() {
        let keys = parse(KEY, "k.toml").unwrap();
        assert_eq!((keys.len(), keys[0].id, keys[0].secret.len()), (1, 7, 16));
        assert_eq!(keys[0].secret[..3], [0, 0x11, 0x22]);
        let with_sender = parse(&format!("{KEY}sender = '10.0.0.2'"), "k.toml").unwrap();
        assert_eq!(with_sender[0].sender, Some([10, 0, 0, 2].into()));
    }

    #[test]
    fn a_wrong_key_is_refused_and_its_secret_is_not_shown() {
        let refused = |text: &str| parse(text, "k.toml").unwrap_err().render();
        for secret in ["00112233", "00112233445566778899aabbccddeefg", "00112233445566778899aabbccddeeff0"] {
            let text = KEY.replace("00112233445566778899aabbccddeeff", secret);
            let said = refused(&text);
            let first_line = said.lines().next().unwrap();
            assert!(first_line.contains("at least 16 bytes") && !first_line.contains(secret), "{said}");
        }
        assert!(refused("").contains("at least one key"));
        assert!(refused(&KEY.replace("'hmac-sha-256'", "'sha1'")).contains("hmac-md5"));
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        std::fs::write(&path, KEY).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(load(&path).unwrap_err().to_string().contains("its mode is 640"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(load(&path).unwrap().len(), 1);
    }
}

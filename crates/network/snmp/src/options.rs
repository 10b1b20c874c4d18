//! Settings of SNMP: a table of a file.
//!
//! ```toml
//! [monitor.snmp]
//! listen = "127.0.0.1:161"
//! community-file = "/etc/cutline/community"
//! [[monitor.snmp.user]]
//! name = "noc"
//! auth-file = "/etc/cutline/noc-auth"
//! privacy-file = "/etc/cutline/noc-privacy"
//! [[monitor.snmp.manager]]
//! address = "192.0.2.10:162"
//! user = "noc"
//! ```

use crate::error::SnmpError;
use async_snmp::v3::{AuthProtocol, PrivProtocol};
use cutline_config::{Document, TableReader, ValueKind, kind};
use cutline_service::regular_file;
use cutline_sys::address::parse_listen_address;
use std::iter;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Settings of SNMP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnmpOptions {
    /// Address of the agent; `None` if there is no agent of its own.
    pub listen: Option<SocketAddr>,
    /// File with the community that may read all rows at this host. Without one, `public` may read totals and queues.
    pub community_file: Option<PathBuf>,
    /// Users of SNMPv3.
    pub users: Vec<SnmpUser>,
    /// Managers that are notified.
    pub managers: Vec<SnmpManager>,
    /// Socket of the master agent that the objects are served through; `None` without one.
    pub agentx: Option<PathBuf>,
    /// File with the identity of the agent.
    pub state: PathBuf,
    /// Texts of the group `system`.
    pub system: SystemTexts,
}

/// Texts of the group `system`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemTexts {
    /// The person to contact (`sysContact`).
    pub contact: String,
    /// Name of the host (`sysName`).
    pub name: String,
    /// Place of the host (`sysLocation`).
    pub location: String,
}

/// Objects that a user may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Views {
    /// All.
    All,
    /// Totals of the host, and queues: nothing of single programs.
    Queues,
}

/// A user of SNMPv3 (USM, RFC 3414).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnmpUser {
    /// Name of the user.
    pub name: String,
    /// Protocol that authenticates.
    pub auth: AuthProtocol,
    /// File with the password for that.
    pub auth_file: PathBuf,
    /// Protocol that encrypts.
    pub privacy: PrivProtocol,
    /// File with the password for that; `None` if messages are not encrypted.
    pub privacy_file: Option<PathBuf>,
    /// Objects that the user may read.
    pub sees: Views,
    /// True if the user may weaken limits of sockets whose owners allow it.
    pub may_set: bool,
}

/// A manager that is notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnmpManager {
    /// Its address.
    pub address: SocketAddr,
    /// Credentials that notifications are sent with.
    pub credentials: ManagerCredentials,
}

/// Credentials that notifications are sent with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManagerCredentials {
    /// Name of a user.
    User(String),
    /// File with a community (SNMPv2c).
    Community(PathBuf),
}

/// Address of the agent, unless another one is chosen: of this host alone.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:161";
/// File with the identity of the agent, unless another one is chosen.
pub const DEFAULT_STATE: &str = "/var/lib/cutline/snmp.toml";
/// Number of characters of the shortest password (RFC 3414, section 11.2).
const SHORTEST_PASSWORD: usize = 8;

/// Protocols that authenticate (RFC 7860). MD5 and SHA-1 are not among them.
const AUTH: [(&str, AuthProtocol); 4] = [
    ("sha224", AuthProtocol::Sha224),
    ("sha256", AuthProtocol::Sha256),
    ("sha384", AuthProtocol::Sha384),
    ("sha512", AuthProtocol::Sha512),
];
/// Protocols that encrypt: RFC 3826, and the longer keys as net-snmp makes them.
const PRIVACY: [(&str, PrivProtocol); 3] = [
    ("aes128", PrivProtocol::Aes128),
    ("aes192", PrivProtocol::Aes192Blumenthal),
    ("aes256", PrivProtocol::Aes256Blumenthal),
];

impl SnmpOptions {
    /// Reads a file that has the table's lines alone.
    ///
    /// # Errors
    /// When a line is wrong.
    pub fn parse(text: &str, name: &str) -> Result<Self, cutline_config::Errors> {
        cutline_config::read(&Document::parse(text, name)?, |root| Some(Self::read(root)))
    }

    /// Reads a table of a file.
    pub fn read(table: &TableReader<'_>) -> Self {
        let expected = "a text in quotes, an address with a port such as 127.0.0.1:161, or \"off\"";
        let address = ValueKind::new(expected, |node| match node.as_text().ok_or_else(String::new)? {
            "off" => Ok(None),
            text => parse_listen_address(text).map(Some).map_err(|error| error.to_string()),
        });
        let listen: Option<SocketAddr> = table.or("listen", &address, DEFAULT_LISTEN.parse().ok());
        let community_file = table.optional("community-file", &kind::absolute_path()).map(PathBuf::from);
        let users: Vec<SnmpUser> = table.tables("user").iter().filter_map(SnmpUser::read).collect();
        let managers: Vec<SnmpManager> =
            table.tables("manager").iter().filter_map(SnmpManager::read).collect();
        let agentx = table.optional("agentx", &kind::absolute_path()).map(PathBuf::from);
        let state = table.or("state", &kind::absolute_path(), DEFAULT_STATE.to_owned()).into();
        let system = SystemTexts {
            contact: table.or("contact", &kind::text(), String::new()),
            name: table.optional("name", &kind::text()).unwrap_or_else(host_name),
            location: table.or("location", &kind::text(), String::new()),
        };
        let is_open = listen.is_some_and(|listen| !listen.ip().is_loopback());
        if is_open && users.is_empty() {
            table.lacks(
                "user",
                "other hosts can reach the address in `listen`: at least one [[user]] of SNMPv3",
            );
        }
        if is_open && community_file.is_some() {
            let span = table.node("community-file").map(|node| &node.span);
            let why =
                ": communities are sent in clear text, so they are allowed at an address of this host alone";
            table.report(&table.path_of("community-file"), span, why.to_owned());
        }
        for (number, user) in users.iter().enumerate() {
            if users[..number].iter().any(|other| other.name == user.name) {
                let why = format!(": two [[user]] have the name `{}`", user.name);
                table.report(&table.path_of("user"), table.node("user").map(|node| &node.span), why);
            }
        }
        for manager in &managers {
            let ManagerCredentials::User(name) = &manager.credentials else { continue };
            let why = match users.iter().find(|user| user.name == *name) {
                None => format!(": there is no [[user]] with the name `{name}`"),
                Some(user) if user.sees != Views::All => format!(
                    ": notifications are about single programs, which `{name}` may not see; allowed is a user with sees = \"all\""
                ),
                Some(_) => continue,
            };
            table.report(&table.path_of("manager"), table.node("manager").map(|node| &node.span), why);
        }
        table.finish();
        Self { listen, community_file, users, managers, agentx, state, system }
    }

    /// Checks the files with secrets.
    ///
    /// # Errors
    /// When one cannot be used.
    pub fn check(&self) -> Result<(), SnmpError> {
        let communities =
            self.community_file.iter().chain(self.managers.iter().filter_map(SnmpManager::community_file));
        communities.into_iter().try_for_each(|file| secret(file, false).map(drop))?;
        let passwords =
            self.users.iter().flat_map(|user| iter::once(&user.auth_file).chain(&user.privacy_file));
        passwords.into_iter().try_for_each(|file| secret(file, true).map(drop))
    }

    /// Returns whether the agent is reachable from other hosts.
    pub fn is_open(&self) -> bool {
        self.listen.is_some_and(|listen| !listen.ip().is_loopback())
    }
}

impl SnmpUser {
    fn read(table: &TableReader<'_>) -> Option<Self> {
        let name = table.required(
            "name",
            &kind::text().only("1 to 32 characters", |name| (1..=32).contains(&name.len())),
        );
        let auth = table.or("auth", &kind::one_of("one of", &AUTH), AuthProtocol::Sha256);
        let auth_file = table.required("auth-file", &kind::absolute_path()).map(PathBuf::from);
        let privacy = table.or("privacy", &kind::one_of("one of", &PRIVACY), PrivProtocol::Aes128);
        let privacy_file = table.optional("privacy-file", &kind::absolute_path()).map(PathBuf::from);
        let views = [("all", Views::All), ("queues", Views::Queues)];
        let sees = table.or("sees", &kind::one_of("one of", &views), Views::All);
        let may_set = table.or("may-set", &kind::flag(), false);
        table.finish();
        Some(Self { name: name?, auth, auth_file: auth_file?, privacy, privacy_file, sees, may_set })
    }
}

impl SnmpManager {
    /// Returns the file with the community; `None` if notifications are sent by a user.
    pub const fn community_file(&self) -> Option<&PathBuf> {
        match &self.credentials {
            ManagerCredentials::Community(file) => Some(file),
            ManagerCredentials::User(_) => None,
        }
    }

    fn read(table: &TableReader<'_>) -> Option<Self> {
        let expected = "a text in quotes, an address with a port such as 192.0.2.10:162";
        let address = ValueKind::new(expected, |node| {
            let text = node.as_text().ok_or_else(String::new)?;
            parse_listen_address(text).map_err(|error| error.to_string())
        });
        let address = table.required("address", &address);
        let user = table.optional("user", &kind::text());
        let community = table.optional("community-file", &kind::absolute_path());
        let credentials = match (user, community) {
            (Some(user), None) => Some(ManagerCredentials::User(user)),
            (None, Some(file)) => Some(ManagerCredentials::Community(file.into())),
            (None, None) => {
                table.lacks("user", "the name of a [[user]], or a `community-file`");
                None
            }
            (Some(_), Some(_)) => {
                let span = table.node("community-file").map(|node| &node.span);
                table.report(
                    &table.path_of("community-file"),
                    span,
                    ": allowed is `user` or this, not both".to_owned(),
                );
                None
            }
        };
        table.finish();
        Some(Self { address: address?, credentials: credentials? })
    }
}

/// Reads a password or a community: the content of a file that only its owner may read, without white space at its ends.
///
/// # Errors
/// When the file cannot be used.
pub fn secret(path: &Path, is_password: bool) -> Result<String, SnmpError> {
    let wrong = |why: String| SnmpError::Secret { file: path.display().to_string(), why };
    let text = regular_file::read_private(path).map_err(wrong)?;
    let secret = text.trim();
    let shortest = if is_password { SHORTEST_PASSWORD } else { 1 };
    if secret.chars().count() < shortest {
        return Err(wrong(format!("it has fewer than {shortest} characters")));
    }
    Ok(secret.to_owned())
}

/// Returns the name of this host.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All notifications are about single programs.
    #[test]
    fn the_user_of_a_manager_sees_programs() {
        let of = |sees: &str| {
            let text = format!(
                "[[user]]\nname = 'noc'\nauth-file = '/a'\nsees = '{sees}'\n[[manager]]\naddress = '192.0.2.1:162'\nuser = 'noc'\n"
            );
            SnmpOptions::parse(&text, "snmp.toml")
        };
        assert_eq!(of("all").unwrap().managers.len(), 1);
        let error = of("queues").unwrap_err().to_string();
        assert!(error.contains("`noc` may not see"), "{error}");
    }
}

//! Identity and rights of readers over HTTP.

use super::{WebOptions, is_loopback};
use crate::registry::Viewer;
use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The rules of a server.
#[derive(Debug)]
pub struct Access {
    options: WebOptions,
}

/// Reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// The header `Host` names another host: a name that leads here may be of an attacker (DNS rebinding).
    OtherHost,
    /// The request is from a page of another site.
    OtherSite,
    /// The token is wrong.
    WrongToken,
    /// Readers of other hosts need the token.
    NeedsToken,
}

impl AccessError {
    /// Returns the reason in words, and a remedy.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::OtherHost => {
                "The name in the address is not one of this host. Use its IP address or localhost, or start the monitor with `--name NAME` (in cutlined: `name` in the table [monitor])."
            }
            Self::OtherSite => "Pages of other sites may not read this.",
            Self::WrongToken => "The token is wrong.",
            Self::NeedsToken => {
                "Readers on other hosts need the token: /?token=... or the header Authorization: Bearer ..."
            }
        }
    }
}

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl Access {
    /// Creates the rules.
    pub const fn new(options: WebOptions) -> Self {
        Self { options }
    }

    /// Returns the view that the sender of a request may see.
    ///
    /// # Errors
    /// When the request is refused.
    pub fn viewer(&self, user: User, headers: &HeaderMap, query: &str) -> Result<Viewer, AccessError> {
        self.check_host(headers)?;
        check_site(headers)?;
        let bearer = text(headers, &AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let token = bearer.or_else(|| parameter(query, "token"));
        match (token, &self.options.token) {
            (Some(given), Some(token)) if is_equal(given, token) => return Ok(Viewer::All),
            (Some(_), Some(_)) => return Err(AccessError::WrongToken),
            _ => {}
        }
        match user {
            User::OfOtherHost => Err(AccessError::NeedsToken),
            _ if self.options.readers_see_all => Ok(Viewer::All),
            User::Local(uid) => Ok(Viewer::of_user(uid)),
            User::Unknown => Ok(Viewer::Nobody),
        }
    }

    fn check_host(&self, headers: &HeaderMap) -> Result<(), AccessError> {
        let host = text(headers, &HOST).ok_or(AccessError::OtherHost)?;
        let name = without_port(host);
        let address = name.trim_start_matches('[').trim_end_matches(']');
        // A link-local address has a zone, and no name has a percent sign.
        let is_zoned =
            || address.split_once('%').is_some_and(|(address, _)| address.parse::<Ipv6Addr>().is_ok());
        let is_address = address.parse::<IpAddr>().is_ok() || is_zoned();
        let is_ours = || self.options.names.iter().any(|ours| ours.eq_ignore_ascii_case(name));
        if is_address || name.eq_ignore_ascii_case("localhost") || is_ours() {
            Ok(())
        } else {
            Err(AccessError::OtherHost)
        }
    }
}

/// Checks that the request is not from a page of another site: browsers state the site that a request comes from.
fn check_site(headers: &HeaderMap) -> Result<(), AccessError> {
    // A person who follows a link navigates: nothing of the answer reaches the site with the link.
    let is_foreign = match text(headers, &SITE) {
        Some("cross-site" | "same-site") => {
            text(headers, &HeaderName::from_static("sec-fetch-mode")) != Some("navigate")
        }
        _ => false,
    };
    let host = text(headers, &HOST);
    let origin = text(headers, &ORIGIN).map(|origin| origin.split_once("://").map(|(_, host)| host));
    if is_foreign || origin.is_some_and(|origin| origin != host) {
        return Err(AccessError::OtherSite);
    }
    Ok(())
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Returns a host without its port.
fn without_port(host: &str) -> &str {
    let after_address = host.rfind(']').map_or(0, |end| end + 1);
    host[after_address..].rfind(':').map_or(host, |at| &host[..after_address + at])
}

/// Returns a parameter of a query.
pub fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    query
        .split('&')
        .find_map(|pair| pair.split_once('=').filter(|(key, _)| *key == name).map(|(_, value)| value))
}

/// Compares in a time that depends on the lengths alone.
fn is_equal(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && differ == 0
}

/// The user who has opened a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum User {
    /// A user of this host.
    Local(u32),
    /// A user of this host, and the kernel does not report which.
    Unknown,
    /// A user of another host.
    OfOtherHost,
}

/// Returns the user who has opened a connection from `peer` to `local`, as the kernel states it in `/proc/net/tcp`.
pub fn user_of(peer: SocketAddr, local: SocketAddr) -> User {
    if !is_loopback(peer.ip()) {
        return User::OfOtherHost;
    }
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let found =
        tables.into_iter().find_map(|path| owner_in(&std::fs::read_to_string(path).ok()?, peer, local));
    found.map_or(User::Unknown, User::Local)
}

/// Returns the owner of the socket that is `own`, connected to `other`, in a table of the kernel.
fn owner_in(table: &str, own: SocketAddr, other: SocketAddr) -> Option<u32> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let is_it =
            address(fields.next()?)? == canonical(own) && address(fields.next()?)? == canonical(other);
        // State, queues, timer, retransmissions; then the user.
        is_it.then(|| fields.nth(4)?.parse().ok())?
    })
}

fn canonical(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
}

/// Reads an address of the kernel's table: words of four bytes in the order of the machine, in hexadecimal digits, and the port.
fn address(text: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| Some(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?),
        32 => {
            let mut bytes = [0; 16];
            for at in 0..4 {
                bytes[4 * at..4 * at + 4].copy_from_slice(&word(8 * at)?);
            }
            IpAddr::from(bytes).to_canonical()
        }
        _ => return None,
    };
    Some((ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn access(token: Option<&str>) -> Access {
        Access::new(WebOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            token: token.map(str::to_owned),
            names: vec!["gateway.home".to_owned()],
            readers_see_all: false,
        })
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_names_of_this_host_are_served() {
        let ask = |host: &str| access(None).viewer(User::Local(0), &headers(&[("host", host)]), "");
        for host in
            ["127.0.0.1:9466", "localhost", "[::1]:80", "10.0.0.1", "Gateway.Home:80", "[fe80::1%eth0]:9466"]
        {
            assert_eq!(ask(host), Ok(Viewer::All), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example:9466", "127.0.0.1.evil.example", "127.0.0.1%evil", ""]
        {
            assert_eq!(ask(host), Err(AccessError::OtherHost), "{host}");
        }
        assert_eq!(access(None).viewer(User::Local(0), &headers(&[]), ""), Err(AccessError::OtherHost));
        // The remedy names the option as people write it.
        assert!(AccessError::OtherHost.in_words().contains("--name NAME"));
    }

    #[test]
    fn pages_of_other_sites_are_refused_and_links_are_followed() {
        let ask = |more: &[(&'static str, &str)]| {
            let pairs = [&[("host", "localhost:1")], more].concat();
            access(None).viewer(User::Local(7), &headers(&pairs), "")
        };
        assert_eq!(ask(&[("sec-fetch-site", "same-origin")]), Ok(Viewer::User(7)));
        assert_eq!(ask(&[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")]), Ok(Viewer::User(7)));
        assert_eq!(
            ask(&[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]),
            Ok(Viewer::User(7))
        );
        for other in [
            &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")][..],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
            // Another service of the same host is another site.
            &[("origin", "http://localhost:2")],
        ] {
            assert_eq!(ask(other), Err(AccessError::OtherSite), "{other:?}");
        }
        assert_eq!(ask(&[("origin", "http://localhost:1")]), Ok(Viewer::User(7)));
    }

    #[test]
    fn the_token_shows_everything_and_other_hosts_need_it() {
        let rules = access(Some("secret"));
        let host = ("host", "10.0.0.1");
        let ask = |user, more: &[(&'static str, &str)], query: &str| {
            rules.viewer(user, &headers(&[&[host], more].concat()), query)
        };
        assert_eq!(ask(User::OfOtherHost, &[], ""), Err(AccessError::NeedsToken));
        assert_eq!(ask(User::OfOtherHost, &[], "a=b&token=secret"), Ok(Viewer::All));
        assert_eq!(ask(User::Local(7), &[("authorization", "Bearer secret")], ""), Ok(Viewer::All));
        assert_eq!(
            ask(User::Local(7), &[("authorization", "Bearer secre")], ""),
            Err(AccessError::WrongToken)
        );
        assert_eq!(ask(User::Unknown, &[], ""), Ok(Viewer::Nobody));
    }

    #[test]
    fn the_kernel_reports_the_connected_process() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = std::net::TcpListener::bind(address).unwrap();
            let ours = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (theirs, peer) = listener.accept().unwrap();
            let user = rustix::process::geteuid().as_raw();
            assert_eq!(user_of(peer, theirs.local_addr().unwrap()), User::Local(user), "{address}");
            drop(ours);
        }
        let other = user_of("192.0.2.1:5".parse().unwrap(), "192.0.2.2:5".parse().unwrap());
        assert_eq!(other, User::OfOtherHost);
    }
}

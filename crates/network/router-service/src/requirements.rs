//! Requirements of a router on this machine: `cutline router --check` and the start check them by the same code.
//!
//! A router that runs already is no obstacle here, because its file is checked before it is reloaded. So nothing is taken that it
//! has: the interfaces, the socket, the port of the metrics. Privileges are not checked either, because a file may be checked
//! without those of the start.

use crate::autorate::OpenAutorate;
use crate::bridging::OtherUses;
use crate::error::ServiceError;
use crate::metrics::Endpoint;
use crate::privileges::User;
use crate::spec::RouterSpec;
use cutline_ports::AnyPort;
use cutline_service::SocketFile;
use cutline_sys::{SysError, interface};
use cutline_text::Printable;

/// Findings about a router's requirements on this machine now.
#[derive(Debug, Default)]
pub struct StartRequirements {
    /// The obstacles that would keep the router from starting.
    pub obstacles: Vec<ServiceError>,
    /// Notices for the user, a line each, that are no obstacles.
    pub notices: Vec<String>,
    /// The user to change to.
    pub(crate) user: Option<User>,
}

impl StartRequirements {
    /// Checks the requirements of a router.
    pub fn check(spec: &RouterSpec) -> Self {
        let (mut found, process) = (Self::default(), &spec.process);
        found.user = process.user.as_deref().and_then(|name| found.keep(User::find(name)));
        found.check_interfaces(spec);
        if let Some(path) = &process.socket {
            found.keep(SocketFile::check(path));
            if SocketFile::is_made_at_start(path) {
                let folder = path.parent().unwrap_or(path).display();
                found.notices.push(format!(
                    "the folder {} of the socket does not exist: a unit makes it with RuntimeDirectory=, and otherwise it must be made \
                     before the start",
                    Printable(folder)
                ));
            }
        }
        if let Some(address) = process.metrics {
            found.keep(Endpoint::check(address));
        }
        if let Some(autorate) = &spec.autorate {
            found.keep(OpenAutorate::check(autorate));
        }
        found
    }

    /// Checks the interfaces: existence, then their kinds, and then uses by the host.
    fn check_interfaces(&mut self, spec: &RouterSpec) {
        let names = [&spec.input, &spec.output];
        let indices = names.map(|name| self.keep(interface::index(AnyPort::interface_of(name))));
        if indices.contains(&None) {
            return;
        }
        let pair = AnyPort::check_pair(names.map(String::as_str), spec.process.fix_offloads);
        if self.keep(pair).is_none() {
            return;
        }
        match OtherUses::find(spec) {
            Ok(uses) => drop(self.keep(uses.refuse(spec))),
            Err(cutline_netlink::Error::System(error @ SysError::NoInterface { .. })) => {
                self.obstacles.push(error.into());
            }
            Err(error) => self.notices.push(format!(
                "it is not known whether the host uses the interfaces itself ({error}): if it does, do not bridge them; a unit needs AF_NETLINK"
            )),
        }
    }

    /// Keeps the error of a check.
    fn keep<T, E: Into<ServiceError>>(&mut self, checked: Result<T, E>) -> Option<T> {
        checked.map_err(|error| self.obstacles.push(error.into())).ok()
    }
}

//! Changes around the host: interfaces that come and go, routes that change.

use super::Daemon;
use crate::requests::RequestId;
use cutline_rsvp::engine::RouteKey;
use cutline_sys::now;
use cutline_units::Instant;

/// State that depends on a route which may have changed.
#[derive(Clone, Copy, Debug)]
pub enum Stale {
    Route(RouteKey),
    Announced(RequestId),
    Shaped(RequestId),
}

impl Daemon {
    /// Looks at interfaces and routes again, if something has changed.
    pub(super) fn handle_changes(&mut self) {
        let changes = self.node.changes();
        if changes.links || changes.addresses {
            self.update_interfaces();
        }
        if changes.any() {
            self.mark_routes();
        }
    }

    /// Releases interfaces that have gone, and takes over new ones. Failures are reported.
    fn update_interfaces(&mut self) {
        let all = match cutline_netlink::interfaces() {
            Ok(all) => all,
            Err(error) => return self.node.notices.push(error.to_string()),
        };
        if self.node.detach(&all) {
            // Reservations there end before an interface of the same name begins.
            self.mark_routes();
            self.refresh_routes(Instant::FAR_FUTURE);
            self.applications.settle(&mut self.node);
        }
        self.node.update_traffic_control();
        // An error is a problem of its interface, which is reported.
        let _first = self.node.attach(&all);
    }

    /// Marks all routes for another look-up, which takes turns with other work.
    fn mark_routes(&mut self) {
        self.stale.clear();
        self.stale.extend(self.node.wanted_routes().into_iter().map(Stale::Route));
        self.stale.extend(self.applications.requests.announced().into_iter().map(Stale::Announced));
        self.stale.extend(self.applications.requests.shaped().map(|(request, _)| Stale::Shaped(request)));
    }

    /// Looks up some of the marked routes, until that time.
    pub(super) fn refresh_routes(&mut self, until: Instant) {
        while let Some(stale) = self.stale.pop_front() {
            match stale {
                Stale::Route(key) => self.node.refresh_route(key),
                Stale::Announced(request) => self.applications.announce(&mut self.node, request, false),
                Stale::Shaped(request) => self.applications.shape(&mut self.node, request, false),
            }
            if now() >= until {
                return;
            }
        }
    }
}

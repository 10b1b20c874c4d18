//! A rate that follows the link: echo requests are sent to hosts behind the link, and a direction's rate falls while replies are
//! delayed and its traffic is near its rate, and rises while it has more to send and nothing is delayed. The idea is that of
//! cake-autorate, for links whose rate changes, such as those of mobile networks.
//!
//! ```text
//! probes      a thread that sends requests, so that the forwarding loop never blocks
//! delays      evidence from the last replies of a queue
//! controller  the rate of a direction
//! ```

mod controller;
mod delays;
mod probes;

use crate::spec::{AutorateSpec, RouterSpec};
use crate::statistics::AutorateStatistics;
use controller::{Controller, TICK};
use cutline_router::{DuplexShaper, Shaper};
use cutline_sys::SysError;
use cutline_units::{Duration, Instant, Rate};
use delays::{Delays, Evidence};
use probes::Probes;

/// The rates of both directions.
#[derive(Debug)]
pub struct Autorate {
    probes: Probes,
    delays: Delays,
    directions: [Option<Controller>; 2],
    next: Instant,
    decreases: u64,
    increases: u64,
    silence: Silence,
}

/// The silence of all reflectors, as it is reported.
#[derive(Debug)]
struct Silence {
    since: Option<Instant>,
    is_reported: bool,
    /// Time of the next possible report.
    next: Instant,
}

/// The silence that is worth a report.
const REPORTED: Duration = Duration::from_secs(5);
/// The least time between reports.
const REPORTS: Duration = Duration::from_secs(60);

/// Sockets of autorate, opened before privileges are dropped.
#[derive(Debug)]
pub struct OpenAutorate {
    sockets: probes::Sockets,
    delay: Duration,
}

impl OpenAutorate {
    /// Opens sockets to the reflectors.
    ///
    /// # Errors
    /// When there is no route to one, or the process lacks `CAP_NET_RAW`.
    pub fn open(spec: &AutorateSpec) -> Result<Self, SysError> {
        Ok(Self { sockets: probes::Sockets::open(&spec.reflectors)?, delay: spec.delay })
    }

    /// Checks that there are routes to the reflectors. A process without the privilege to send echo requests cannot do so, and finds
    /// nothing.
    ///
    /// # Errors
    /// When there is no route to one.
    pub fn check(spec: &AutorateSpec) -> Result<(), SysError> {
        match Self::open(spec) {
            Ok(_) | Err(SysError::NotPermitted { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Starts echo requests for a router with this specification.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(self, spec: &RouterSpec, now: Instant) -> Result<Autorate, SysError> {
        let reflectors = self.sockets.count();
        Ok(Autorate {
            probes: self.sockets.start()?,
            delays: Delays::new(reflectors, self.delay),
            directions: controllers(spec, now),
            next: now,
            decreases: 0,
            increases: 0,
            silence: Silence { since: None, is_reported: false, next: now },
        })
    }
}

impl Autorate {
    /// Takes the ranges and rates of a specification that was read again.
    pub fn reload(&mut self, spec: &RouterSpec, now: Instant) {
        self.directions = controllers(spec, now);
    }

    /// Takes the replies that have arrived, and changes the rates when it is time. Returns the time of the next call. `report` gets
    /// notes for the user.
    pub fn look(
        &mut self,
        now: Instant,
        duplex: &mut DuplexShaper,
        report: &mut dyn FnMut(String),
    ) -> Instant {
        for (reflector, time) in self.probes.replies() {
            self.delays.add(now, reflector, time);
        }
        if now < self.next {
            return self.next;
        }
        self.next = now + TICK;
        let evidence = self.delays.evidence(now);
        if let Some(text) = self.silence.look(now, evidence) {
            report(text);
        }
        for (controller, shaper) in self.directions.iter_mut().zip([&mut duplex.forward, &mut duplex.reverse])
        {
            let Some(controller) = controller else { continue };
            let (before, sent) = (rate(shaper), on_link(shaper));
            let Some(after) = controller.step(now, before, sent, evidence) else { continue };
            shaper.set_rate(now, after);
            if after < before {
                self.decreases += 1;
            } else {
                self.increases += 1;
            }
        }
        self.next
    }

    /// Returns the statistics.
    pub fn statistics(&self, now: Instant) -> AutorateStatistics {
        AutorateStatistics {
            requests: self.probes.requests(),
            replies: self.delays.replies(),
            replying: self.delays.replying(now) as u64,
            delayed_replies: self.delays.delayed(),
            delay_ms: self.delays.last().map(Duration::as_millis_f64),
            decreases: self.decreases,
            increases: self.increases,
        }
    }
}

impl Silence {
    /// Returns a report when all reflectors have been silent for some time, and when one replies again.
    fn look(&mut self, now: Instant, evidence: Evidence) -> Option<String> {
        let Evidence::Silent { ever } = evidence else {
            self.since = None;
            return std::mem::take(&mut self.is_reported)
                .then(|| "autorate: a reflector replies again: the rate follows the link".to_owned());
        };
        let since = *self.since.get_or_insert(now);
        if self.is_reported || now.saturating_since(since) < REPORTED || now < self.next {
            return None;
        }
        (self.is_reported, self.next) = (true, now + REPORTS);
        let text = if ever {
            "autorate: no reflector replies: no rate rises until one replies; a rate falls to the configured one, or to the lowest one while \
             its direction is busy"
        } else {
            "autorate: no reflector has replied so far: no rate rises above the configured one until one replies. Check with \
             `ping` that this host reaches them"
        };
        Some(text.to_owned())
    }
}

fn controllers(spec: &RouterSpec, now: Instant) -> [Option<Controller>; 2] {
    [&spec.forward, &spec.reverse].map(|direction| {
        direction.autorate.clone().map(|range| Controller::new(direction.queue.rate, range, now))
    })
}

const fn rate(shaper: &Shaper) -> Rate {
    shaper.params().queue.rate
}

/// The bytes that a shaper has sent, as they are on the link.
fn on_link(shaper: &Shaper) -> f64 {
    let sent = shaper.stats().sent;
    shaper.params().overhead.of_frames(sent.packets, sent.bytes)
}

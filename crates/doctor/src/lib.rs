//! What a machine offers to Cutline, and whether the bottleneck is where its queue is.
//!
//! Looking and judging are separate: [`Survey::take`] calls the probes, and everything that follows from their answers is
//! pure functions, tested with invented answers. System calls are behind `cutline-sys`.
//!
//! ```text
//! probe         what this machine offers
//! survey        the answers of all probes
//! finding       what it comes to: state, words, what to do next
//!   host        kernel, privileges, tools, timers
//!   paths       ways to receive and send frames, namespaces
//!   queues      queue disciplines, eBPF
//!   tcp         congestion controls, buffers
//!   interface   one interface
//! document      a report as JSON
//! bottleneck    where queues build up: the judgement
//!   load        how busy its queue was, from a router's statistics
//!   feed        where these come from: a file, a pipe, a socket
//!   watch       observing for a while
//!   echo        round-trip times
//! ```

mod bottleneck;
mod document;
mod echo;
mod feed;
mod finding;
mod host;
mod interface;
mod load;
mod paths;
pub mod probe;
mod queues;
mod survey;
mod tcp;
mod watch;
mod words;

pub use bottleneck::{
    Confidence, Judgement, Observations, PathDelay, Place, Port, QueueLoad, Thresholds, judge,
};
pub use document::{BottleneckDocument, ReportDocument};
pub use feed::{FeedError, Source};
pub use finding::{Finding, Group, Report, State, Use};
pub use interface::interface;
pub use load::load;
pub use survey::Survey;
pub use watch::{Watch, WatchError};

/// Everything that follows from a survey: groups about the host, then one for each interface chosen. `named` says that
/// somebody has named these interfaces, to put the router between them.
pub fn report(survey: &Survey, interfaces: &[String], named: bool) -> Report {
    let mut groups = vec![
        Group::new("privileges", host::privileges(survey)),
        Group::new("host", host::host(survey)),
        Group::new("timers", host::timers(&survey.lateness, survey.privileges.fifo.is_yes())),
        Group::new("packet paths", paths::paths(survey)),
        Group::new("queues of the kernel", queues::queues(survey)),
        Group::new("TCP", tcp::tcp(survey)),
    ];
    let links = survey.links.as_deref().unwrap_or_default();
    let chosen = interfaces.iter().filter_map(|name| links.iter().find(|link| link.name == *name));
    groups.extend(chosen.map(|link| Group::new(format!("interface {}", link.name), interface(link, named))));
    Report { groups }
}

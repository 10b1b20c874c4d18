//! Checks a machine's support for Cutline, and whether the bottleneck of a path is at the router's queue.
//!
//! Measuring and judging are separate. [`Survey::take`] calls the probes. The findings follow from their answers by pure
//! functions, which are tested with made-up answers. System calls are in `cutline-sys`.
//!
//! ```text
//! probe         probes: capabilities of this machine
//! survey        the answers of all probes
//! finding       findings: state, text, remedy
//!   host        kernel, privileges, tools, timers
//!   paths       ways to receive and send frames, namespaces
//!   queues      queue disciplines, eBPF
//!   tcp         congestion controls, buffers
//!   interface   one interface
//! document      a report as JSON
//! bottleneck    the judgement where queues build up
//!   load        how busy a router's queue was, from its statistics
//!   source      sources of statistics: a file, a pipe, a socket
//!   watch       observes statistics, round-trip times and an interface for some time
//! evidence      probes of the interfaces of routers, for the explanation of bad delivery (`cutline-monitor`)
//! format        numbers in texts and documents
//! ```

mod bottleneck;
mod document;
mod evidence;
mod finding;
mod format;
mod host;
mod interface;
mod load;
mod paths;
pub mod probe;
mod queues;
mod source;
mod survey;
mod tcp;
mod watch;

pub use bottleneck::{
    BottleneckPlace, BottleneckPort, Confidence, Judgement, Observations, PathDelay, QueueLoad, Thresholds,
    judge,
};
pub use document::{BottleneckDocument, ReportDocument};
pub use evidence::LinkInterfaces;
pub use finding::{Finding, FindingGroup, Findings, State, Use};
pub use interface::{interface, router_up};
pub use load::load;
pub use source::{Source, SourceError};
pub use survey::Survey;
pub use watch::{LinkWatch, WatchError};

/// The findings of a survey: groups about the host, then one for each chosen interface. `named` is true if the user has
/// named these interfaces, as those of a router.
pub fn report(survey: &Survey, interfaces: &[String], named: bool) -> Findings {
    let mut groups = vec![
        FindingGroup::new("privileges", host::privileges(survey)),
        FindingGroup::new("host", host::host(survey)),
        FindingGroup::new("timers", host::timers(&survey.lateness, survey.privileges.fifo.is_yes())),
        FindingGroup::new("packet paths", paths::paths(survey)),
        FindingGroup::new("queues of the kernel", queues::queues(survey)),
        FindingGroup::new("TCP", tcp::tcp(survey)),
    ];
    let links = survey.links.as_deref().unwrap_or_default();
    let chosen = interfaces.iter().filter_map(|name| links.iter().find(|link| link.name == *name));
    let up = router_up(if named { interfaces } else { &[] });
    let of = |link| interface(link, named, host::is_forwarding(survey), &up);
    groups.extend(chosen.map(|link| FindingGroup::new(format!("interface {}", link.name), of(link))));
    Findings { groups }
}

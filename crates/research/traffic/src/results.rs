//! The measurements of a sender and its receiver, by flow and by group.

use crate::control::{BothReports, SendParams};
use crate::document::{FlowDocument, GroupTotals, SendDocument, Totals};
use crate::plan::{FlowPlan, PlanDirection};
use crate::report::{ReceiverReport, SenderReport};
use crate::summary::FlowsSummary;
use cutline_units::Duration;
use std::collections::BTreeMap;
use std::ops::Range;

/// The plans of all flows, and their groups.
#[derive(Debug, Default)]
pub struct FlowGroups {
    /// The plans. Those of a group follow each other.
    pub plans: Vec<FlowPlan>,
    /// The groups.
    pub groups: Vec<FlowGroup>,
}

/// A group of flows with the same parameters.
#[derive(Debug)]
pub struct FlowGroup {
    /// Its name.
    pub name: String,
    /// The name of the transport.
    pub transport: &'static str,
    /// The direction of its flows.
    pub direction: PlanDirection,
    /// The places of its plans.
    pub members: Range<usize>,
}

impl FlowGroups {
    /// Adds a group; one without flows is left out.
    pub fn add(&mut self, name: String, plans: impl IntoIterator<Item = FlowPlan>) {
        let first = self.plans.len();
        self.plans.extend(plans);
        let Some(plan) = self.plans.get(first) else { return };
        let (transport, direction) = (plan.transport.name(), plan.direction);
        self.groups.push(FlowGroup { name, transport, direction, members: first..self.plans.len() });
    }

    /// Returns whether a flow has this direction.
    pub fn has(&self, direction: PlanDirection) -> bool {
        self.groups.iter().any(|group| group.direction == direction)
    }
}

/// The results of both ends.
#[derive(Debug)]
pub struct SendResults<'a> {
    /// The seed of the random numbers.
    pub seed: u64,
    /// The duration of the run as it was planned.
    pub duration: Duration,
    /// The width of the intervals; `None`: without intervals.
    pub interval: Option<Duration>,
    /// The reports of both ends.
    pub outcome: &'a BothReports,
    /// The sums and distributions of all groups together.
    pub total: FlowsSummary,
    flows: &'a FlowGroups,
    /// The receiver's reports by flow.
    received: BTreeMap<u32, &'a ReceiverReport>,
    /// A summary for each group.
    groups: Vec<FlowsSummary>,
}

impl<'a> SendResults<'a> {
    /// Joins the reports of both ends about flows that were sent with these parameters.
    pub fn new(params: &SendParams, flows: &'a FlowGroups, outcome: &'a BothReports) -> Self {
        let reports = outcome.received.iter().flat_map(|report| &report.flows);
        let received: BTreeMap<u32, _> = reports.map(|report| (report.flow, report)).collect();
        let summaries = flows.groups.iter().map(|group| {
            let mut summary = FlowsSummary::default();
            for sent in &outcome.sent[group.members.clone()] {
                summary.add(sent, received.get(&sent.flow).copied());
            }
            summary
        });
        let groups: Vec<FlowsSummary> = summaries.collect();
        let mut total = FlowsSummary::default();
        for group in &groups {
            total.merge(group);
        }
        let SendParams { duration, interval, streams, .. } = params;
        Self {
            seed: streams.seed(),
            duration: *duration,
            interval: *interval,
            outcome,
            total,
            flows,
            received,
            groups,
        }
    }

    /// Returns the JSON document.
    pub fn document(&self) -> SendDocument {
        let report = self.outcome.received.as_ref();
        let flow = |(sent, plan): (&SenderReport, &FlowPlan)| {
            let received = self.received.get(&sent.flow).copied();
            FlowDocument::new(sent, received, plan.direction, self.interval)
        };
        SendDocument {
            receiver: self.outcome.receiver.to_string(),
            seed: self.seed,
            duration_s: self.duration.as_secs_f64(),
            elapsed_s: self.outcome.elapsed.as_secs_f64(),
            clock: (&self.outcome.clock).into(),
            groups: self.group_totals(),
            total: self.totals(&self.total),
            flows: self.outcome.sent.iter().zip(&self.flows.plans).map(flow).collect(),
            overflowed: report.map(|report| report.overflowed),
            strangers: report.map(|report| report.strangers),
            error: self.outcome.error.as_ref().map(ToString::to_string),
        }
    }

    /// Returns the sums and distributions of each group.
    pub fn group_totals(&self) -> Vec<GroupTotals> {
        let totals = self.flows.groups.iter().zip(&self.groups).map(|(group, summary)| {
            let (transport, totals) = (group.transport, self.totals(summary));
            let totals = if transport == "tcp" { totals.without_loss_ratio() } else { totals };
            let (name, direction) = (group.name.clone(), group.direction.name().to_owned());
            GroupTotals { name, transport: transport.to_owned(), direction, totals }
        });
        totals.collect()
    }

    /// Returns the sums and distributions of each flow.
    pub fn flow_totals(&self) -> Vec<GroupTotals> {
        let one = |group: &FlowGroup, sent: &SenderReport| {
            let mut summary = FlowsSummary::default();
            summary.add(sent, self.received.get(&sent.flow).copied());
            let totals = self.totals(&summary);
            let totals = if group.transport == "tcp" { totals.without_loss_ratio() } else { totals };
            let (transport, direction) = (group.transport.to_owned(), group.direction.name().to_owned());
            GroupTotals { name: sent.name.clone(), transport, direction, totals }
        };
        let of = |group: &'a FlowGroup| {
            self.outcome.sent[group.members.clone()].iter().map(move |sent| (group, sent))
        };
        self.flows.groups.iter().flat_map(of).map(|(group, sent)| one(group, sent)).collect()
    }

    /// Returns the sums and distributions of a summary.
    pub fn totals(&self, summary: &FlowsSummary) -> Totals {
        Totals::new(summary, self.outcome.elapsed, self.interval)
    }

    /// Returns the names and errors of the flows that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcome.sent.iter().filter_map(|sent| {
            let received = self.received.get(&sent.flow).and_then(|received| received.error.as_deref());
            Some((sent.name.as_str(), sent.error.as_deref().or(received)?))
        })
    }

    /// Returns the reason why the run failed: an error of the session, an interruption (`stopped`), or flows that failed; `None` if it was
    /// as planned.
    pub fn failure(&self, stopped: bool) -> Option<String> {
        let Self { duration, outcome, total, .. } = self;
        match (&outcome.error, stopped, total.failed) {
            (Some(error), ..) => Some(error.to_string()),
            (None, true, _) => Some(format!("interrupted after {} of {duration}", outcome.elapsed)),
            (None, false, 0) => None,
            (None, false, failed) => Some(format!("{failed} of {} flows failed", total.flows)),
        }
    }
}

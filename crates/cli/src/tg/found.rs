//! The measurements of a sender and its receiver, by flow and by group.

use super::flows::{Flows, Group};
use crate::exit::Failure;
use cutline_traffic::control::BothReports;
use cutline_traffic::{
    FlowDocument, FlowPlan, FlowsSummary, GroupTotals, ReceiverReport, SendDocument, SenderReport, Totals,
};
use cutline_units::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The results of both ends.
pub struct Found<'a> {
    pub receiver: SocketAddr,
    pub seed: u64,
    pub duration: Duration,
    pub interval: Option<Duration>,
    pub flows: &'a Flows,
    pub outcome: &'a BothReports,
    /// The receiver's reports by flow.
    pub received: BTreeMap<u32, &'a ReceiverReport>,
    /// A summary for each group.
    pub groups: Vec<FlowsSummary>,
    /// All groups together.
    pub total: FlowsSummary,
}

impl<'a> Found<'a> {
    /// Joins the reports of both ends.
    pub fn new(
        (seed, duration, interval): (u64, Duration, Option<Duration>),
        flows: &'a Flows,
        outcome: &'a BothReports,
    ) -> Self {
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
        Self { receiver: outcome.receiver, seed, duration, interval, flows, outcome, received, groups, total }
    }

    /// Returns the JSON document.
    pub fn document(&self) -> SendDocument {
        let report = self.outcome.received.as_ref();
        let flow = |(sent, plan): (&SenderReport, &FlowPlan)| {
            let received = self.received.get(&sent.flow).copied();
            FlowDocument::new(sent, received, plan.direction, self.interval)
        };
        SendDocument {
            receiver: self.receiver.to_string(),
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
        let one = |group: &Group, sent: &SenderReport| {
            let mut summary = FlowsSummary::default();
            summary.add(sent, self.received.get(&sent.flow).copied());
            let totals = self.totals(&summary);
            let totals = if group.transport == "tcp" { totals.without_loss_ratio() } else { totals };
            let (transport, direction) = (group.transport.to_owned(), group.direction.name().to_owned());
            GroupTotals { name: sent.name.clone(), transport, direction, totals }
        };
        let of =
            |group: &'a Group| self.outcome.sent[group.members.clone()].iter().map(move |sent| (group, sent));
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

    /// Returns an error if a flow failed or the run was interrupted.
    pub fn judge(&self, stopped: bool) -> Result<(), Failure> {
        if let Some(error) = &self.outcome.error {
            return Err(Failure::Failed(error.to_string()));
        }
        if stopped {
            let Self { duration, outcome, .. } = self;
            return Err(Failure::Failed(format!("interrupted after {} of {duration}", outcome.elapsed)));
        }
        match self.total.failed {
            0 => Ok(()),
            failed => Err(Failure::Failed(format!("{failed} of {} flows failed", self.total.flows))),
        }
    }
}

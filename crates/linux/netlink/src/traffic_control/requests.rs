//! Requests to the kernel for classes and filters: made, sent in one batch, and reverted if one of them fails.

use super::htb::{self, Class, message};
use super::installed::is_gone;
use super::lists::List;
use super::tables::Tables;
use super::{CLASSES, ClassId, HtbShaper, NEW, handle};
use crate::Error;
use cutline_flow::FlowSelector;
use cutline_units::Bytes;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcFilterU32, TcHandle};

/// Subject of a request to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Class(u16),
    Fifo(u16),
    Filter(List, u32),
    Table(List, u32),
    NoClass(u16),
    NoFilter(List, u32),
}

impl Subject {
    pub(super) const fn is_removal(self) -> bool {
        matches!(self, Self::NoClass(_) | Self::NoFilter(..))
    }

    /// Returns the message for a refused request.
    pub(super) fn failure(self, name: &str) -> String {
        match self {
            Self::Class(minor) => format!("class {} of `{name}` cannot be set", ClassId(minor)),
            Self::Fifo(minor) => format!("the fifo of class {} of `{name}` cannot be set", ClassId(minor)),
            Self::Filter(..) | Self::Table(..) => format!("a filter of `{name}` cannot be added"),
            Self::NoClass(minor) => format!("class {} of `{name}` cannot be removed", ClassId(minor)),
            Self::NoFilter(..) => format!("a filter of `{name}` cannot be removed"),
        }
    }
}

/// A request to the kernel.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) subject: Subject,
    pub(super) message: RouteNetlinkMessage,
    pub(super) flags: u16,
}

/// Requests of which not all were carried out.
#[derive(Debug)]
pub(super) struct Failed {
    /// The first error.
    pub(super) first: Error,
    pub(super) done: Vec<Subject>,
    pub(super) refused: Vec<Subject>,
}

impl HtbShaper {
    /// Reverts the parts of a failed addition. The first error describes the fault; an error of this call would only repeat it.
    pub(super) fn undo(&mut self, placed: &[(FlowSelector, u32)], failed: &Failed) {
        for (filter, node) in placed.iter().rev() {
            let _its_links_are_among_what_was_done = self.tables_of(List::of(filter)).remove(*node);
        }
        if failed.refused.iter().any(|subject| matches!(subject, Subject::Table(..))) {
            self.tables.iter_mut().for_each(Tables::forget_spare);
        }
        let removal = |subject: &Subject| match *subject {
            Subject::Filter(list, node) => Some(self.filter_removal(list, node)),
            Subject::Class(minor) if CLASSES.contains(&minor) => Some(self.class_removal(minor)),
            _ => None,
        };
        let mut changes: Vec<Change> = failed.done.iter().rev().filter_map(removal).collect();
        self.weighed = 0;
        changes.extend(self.weight_change(self.classes.len()).ok().flatten());
        let _undone = self.apply(changes);
    }

    /// Sends the changes to the kernel, in this order. An object that is already removed is not an error.
    pub(super) fn apply(&mut self, changes: Vec<Change>) -> Result<(), Failed> {
        let (subjects, messages): (Vec<Subject>, Vec<_>) =
            changes.into_iter().map(|change| (change.subject, (change.message, change.flags))).unzip();
        let name = &self.name;
        let mut refused = match self.channel.batch(&messages, |at| subjects[at].failure(name)) {
            Ok(refused) => refused,
            // The result of the request is unknown.
            Err(first) => return Err(Failed { first, done: subjects, refused: Vec::new() }),
        };
        refused.retain(|at, error| !(subjects[*at].is_removal() && is_gone(error)));
        let is_refused = |at: &usize| refused.contains_key(at);
        let (not_done, done): (Vec<usize>, Vec<usize>) = (0..subjects.len()).partition(is_refused);
        let of = |places: Vec<usize>| places.into_iter().map(|at| subjects[at]).collect();
        let (not_done, done) = (of(not_done), of(done));
        match refused.pop_first() {
            None => Ok(()),
            Some((_, first)) => Err(Failed { first, done, refused: not_done }),
        }
    }

    pub(super) fn class_change(
        &self,
        parent: TcHandle,
        minor: u16,
        class: Class,
        flags: u16,
    ) -> Result<Change, Error> {
        let attributes = [TcAttribute::Kind(htb::KIND.to_owned()), class.options()?];
        let class = message(self.interface, parent, handle(minor), 0, attributes);
        Ok(Change {
            subject: Subject::Class(minor),
            message: RouteNetlinkMessage::NewTrafficClass(class),
            flags,
        })
    }

    pub(super) fn class_removal(&self, minor: u16) -> Change {
        let class = message(self.interface, handle(0), handle(minor), 0, []);
        let message = RouteNetlinkMessage::DelTrafficClass(class);
        Change { subject: Subject::NoClass(minor), message, flags: 0 }
    }

    pub(super) fn fifo_change(&self, minor: u16, limit: Bytes, flags: u16) -> Change {
        let fifo = message(self.interface, handle(minor), TcHandle::UNSPEC, 0, htb::fifo(limit));
        let message = RouteNetlinkMessage::NewQueueDiscipline(fifo);
        Change { subject: Subject::Fifo(minor), message, flags }
    }

    /// Adds a node to a list, or a table to it.
    pub(super) fn filter_change(
        &self,
        list: List,
        node: u32,
        options: TcAttribute,
        subject: Subject,
    ) -> Change {
        let attributes = [TcAttribute::Kind(TcFilterU32::KIND.to_owned()), options];
        let filter = message(self.interface, handle(0), node.into(), list.info(), attributes);
        Change { subject, message: RouteNetlinkMessage::NewTrafficFilter(filter), flags: NEW }
    }

    pub(super) fn filter_removal(&self, list: List, node: u32) -> Change {
        let attributes = [TcAttribute::Kind(TcFilterU32::KIND.to_owned())];
        let filter = message(self.interface, handle(0), node.into(), list.info(), attributes);
        let message = RouteNetlinkMessage::DelTrafficFilter(filter);
        Change { subject: Subject::NoFilter(list, node), message, flags: 0 }
    }
}

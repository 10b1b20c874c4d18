//! The queueing discipline at the root of an interface, of any kind.

use crate::channel::Channel;
use crate::{Error, Interface};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage};
use rustix::io::Errno;
use std::collections::BTreeMap;

/// Kind of the queueing discipline with a class for each transmit queue.
const MQ: &str = "mq";
/// Kind of the queueing discipline of [`HtbShaper`](crate::HtbShaper).
const HTB: &str = "htb";

/// A queueing discipline that is set at the root of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootQdisc {
    /// Its kind, such as `fq_codel`.
    pub kind: String,
    /// Its major number.
    pub handle: u16,
    /// Kinds of those that were set for transmit queues, by the number of the queue from 1 on, if this one is `mq`.
    pub below: BTreeMap<u16, String>,
}

impl RootQdisc {
    /// Returns the one of an interface; `None` if it is the kernel's default, which was not set. The number of other interfaces does not matter, except
    /// where the kind is HTB.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn of(interface: &Interface) -> Result<Option<Self>, Error> {
        let channel = &mut Channel::open()?;
        // The kernel reports a request for one discipline as if it had been set, to all who listen to changes, and the owner of a shaper then makes it
        // again. A list is not reported.
        if kind_at_root(channel, interface)?.as_deref() == Some(HTB) {
            let failed = || format!("the queueing disciplines of `{}` cannot be listed", interface.name);
            let all = all_set(channel, interface.index as i32, failed)?;
            return Ok(Self::read(&all).remove(&interface.index));
        }
        let Some(root) = set_at(channel, interface, TcHandle::ROOT)? else { return Ok(None) };
        let mut found = Self::alone(&root);
        if found.kind == MQ {
            for queue in 1..=interface.transmit_queues.min(u16::MAX.into()) as u16 {
                let parent = TcHandle { major: found.handle, minor: queue };
                if let Some(leaf) = set_at(channel, interface, parent)? {
                    found.below.insert(queue, kind(&leaf));
                }
            }
        }
        Ok(Some(found))
    }

    /// Returns those of all interfaces of this network namespace that have one, by the interface's number, with one question to the
    /// kernel.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn all() -> Result<BTreeMap<u32, Self>, Error> {
        let failed = || "the queueing disciplines cannot be listed".to_owned();
        Ok(Self::read(&all_set(&mut Channel::open()?, 0, failed)?))
    }

    /// Reads those at roots, by the interface's number.
    fn read(all: &[TcMessage]) -> BTreeMap<u32, Self> {
        let (at_roots, others): (Vec<_>, Vec<_>) = all.iter().partition(|message| is_root(message));
        let root = |message: &TcMessage| (message.header.index as u32, Self::alone(message));
        let mut roots: BTreeMap<u32, Self> = at_roots.into_iter().map(root).collect();
        for message in others {
            let parent = message.header.parent;
            let root = roots.get_mut(&(message.header.index as u32));
            if let Some(root) = root.filter(|root| root.kind == MQ && root.handle == parent.major) {
                root.below.insert(parent.minor, kind(message));
            }
        }
        roots
    }

    /// Reads one at a root, without those below it.
    fn alone(message: &TcMessage) -> Self {
        Self { kind: kind(message), handle: message.header.handle.major, below: BTreeMap::new() }
    }

    /// Sets a discipline of this kind, without options. With `replace` it takes the place of any other discipline in one step; without, an
    /// interface that already has one is refused.
    ///
    /// # Errors
    /// When the interface has one, the kernel does not know the kind or refuses it, or the process may not: it needs `CAP_NET_ADMIN`.
    pub fn add(interface: &Interface, kind: &str, replace: bool) -> Result<(), Error> {
        let flags = NLM_F_CREATE | if replace { NLM_F_REPLACE } else { NLM_F_EXCL };
        let message = at_root(interface, [TcAttribute::Kind(kind.to_owned())]);
        let failed = || format!("the queueing discipline {kind} cannot be set on `{}`", interface.name);
        Channel::open()?.request(RouteNetlinkMessage::NewQueueDiscipline(message), flags, failed).map(drop)
    }

    /// Sets `mq`, and below it a discipline of this kind, without options, for each of the first `queues` transmit queues. `mq` has a class for each queue
    /// that the driver has allocated, and sets the kernel's default for the others. `replace` is as for [`RootQdisc::add`]; it does not replace an `mq`
    /// that was set. An interface of which a queue is refused has none of them.
    ///
    /// # Errors
    /// As [`RootQdisc::add`].
    pub fn add_for_each_queue(
        interface: &Interface,
        kind: &str,
        queues: u32,
        replace: bool,
    ) -> Result<(), Error> {
        Self::add(interface, MQ, replace)?;
        let added = Self::fill(interface, kind, queues);
        if added.is_err() {
            // The error of adding is the one that matters.
            let _removed = Self::remove(interface);
        }
        added
    }

    /// Sets a discipline of this kind for each of the first classes of the `mq` of an interface.
    fn fill(interface: &Interface, kind: &str, queues: u32) -> Result<(), Error> {
        let mut channel = Channel::open()?;
        // Another program may have removed it at once. The kernel then refuses the classes of number 0.
        let major =
            set_at(&mut channel, interface, TcHandle::ROOT)?.map_or(0, |root| root.header.handle.major);
        for queue in 1..=queues {
            let parent = TcHandle { major, minor: queue as u16 };
            let message = below(interface, parent, [TcAttribute::Kind(kind.to_owned())]);
            let failed = || {
                format!(
                    "the queueing discipline {kind} cannot be set on transmit queue {queue} of `{}`",
                    interface.name
                )
            };
            channel.request(
                RouteNetlinkMessage::NewQueueDiscipline(message),
                NLM_F_CREATE | NLM_F_EXCL,
                failed,
            )?;
        }
        Ok(())
    }

    /// Removes the one of an interface, which gets the kernel's default again. It is no error if there is none, or the interface
    /// has gone.
    ///
    /// # Errors
    /// When the kernel refuses, or the process may not: it needs `CAP_NET_ADMIN`.
    pub fn remove(interface: &Interface) -> Result<(), Error> {
        let message = RouteNetlinkMessage::DelQueueDiscipline(at_root(interface, []));
        let failed = || format!("the queueing discipline of `{}` cannot be removed", interface.name);
        match Channel::open()?.request(message, 0, failed) {
            Err(error) if matches!(error.number(), Some(Errno::NOENT | Errno::NODEV)) => Ok(()),
            answered => answered.map(drop),
        }
    }
}

fn at_root(interface: &Interface, attributes: impl IntoIterator<Item = TcAttribute>) -> TcMessage {
    below(interface, TcHandle::ROOT, attributes)
}

fn below(
    interface: &Interface,
    parent: TcHandle,
    attributes: impl IntoIterator<Item = TcAttribute>,
) -> TcMessage {
    let header = TcHeader { index: interface.index as i32, parent, ..TcHeader::default() };
    TcMessage::from_parts(header, attributes.into_iter().collect())
}

fn is_root(message: &TcMessage) -> bool {
    message.header.parent == TcHandle::ROOT
}

/// Returns the queueing discipline at the root of an interface; `None` if it is the kernel's default, which has no number.
pub(crate) fn root(channel: &mut Channel, interface: &Interface) -> Result<Option<TcMessage>, Error> {
    let failed = || format!("the queueing disciplines of `{}` cannot be listed", interface.name);
    let index = interface.index as i32;
    let found = all_set(channel, index, failed)?;
    // Kernels list those of all interfaces, whichever is named.
    Ok(found.into_iter().find(|discipline| is_root(discipline) && discipline.header.index == index))
}

/// Returns the kind of the queueing discipline at the root of an interface, the kernel's default included; `None` if there is no such interface.
fn kind_at_root(channel: &mut Channel, interface: &Interface) -> Result<Option<String>, Error> {
    let mut message = LinkMessage::default();
    message.header.index = interface.index;
    let failed = || format!("the interface `{}` cannot be read", interface.name);
    let answers = match channel.request(RouteNetlinkMessage::GetLink(message), 0, failed) {
        Err(error) if error.number() == Some(Errno::NODEV) => return Ok(None),
        answers => answers?,
    };
    let mut attributes = answers.into_iter().flat_map(|answer| match answer {
        RouteNetlinkMessage::NewLink(link) => link.attributes,
        _ => Vec::new(),
    });
    Ok(attributes.find_map(|attribute| match attribute {
        LinkAttribute::Qdisc(kind) => Some(kind),
        _ => None,
    }))
}

/// Returns the queueing discipline that was set at the root of an interface, or for a class; `None` if it is the kernel's default, or there is no such class.
fn set_at(
    channel: &mut Channel,
    interface: &Interface,
    parent: TcHandle,
) -> Result<Option<TcMessage>, Error> {
    let message = RouteNetlinkMessage::GetQueueDiscipline(below(interface, parent, []));
    let failed = || format!("the queueing disciplines of `{}` cannot be read", interface.name);
    // Without the flag only those who listen to changes get the answer.
    let answers = match channel.request(message, NLM_F_ECHO, failed) {
        Err(error) if matches!(error.number(), Some(Errno::NOENT | Errno::NODEV)) => return Ok(None),
        answers => answers?,
    };
    Ok(set_ones(answers).into_iter().next())
}

/// Returns the queueing disciplines that were set: of the interface with a number, or of all for 0, and perhaps more.
fn all_set(channel: &mut Channel, index: i32, failed: impl Fn() -> String) -> Result<Vec<TcMessage>, Error> {
    let answers =
        channel.list(&RouteNetlinkMessage::GetQueueDiscipline(TcMessage::with_index(index)), failed)?;
    Ok(set_ones(answers))
}

/// Returns the queueing disciplines of an answer that were set. The kernel's defaults have no number.
fn set_ones(answers: Vec<RouteNetlinkMessage>) -> Vec<TcMessage> {
    let found = answers.into_iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewQueueDiscipline(discipline) => Some(discipline),
        _ => None,
    });
    found.filter(|discipline| discipline.header.handle != TcHandle::UNSPEC).collect()
}

/// Returns the kind of a queueing discipline.
pub(crate) fn kind(discipline: &TcMessage) -> String {
    let kind = discipline.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.clone()),
        _ => None,
    });
    kind.unwrap_or_default()
}

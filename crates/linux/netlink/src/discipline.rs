//! The queueing discipline at the root of an interface, of any kind.

use crate::channel::Channel;
use crate::{Error, Interface};
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle, TcHeader, TcMessage};
use rustix::io::Errno;
use std::collections::BTreeMap;

/// A queueing discipline that is set at the root of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootQdisc {
    /// Its kind, such as `fq_codel`.
    pub kind: String,
    /// Its major number.
    pub handle: u16,
}

impl RootQdisc {
    /// Returns the one of an interface; `None` if it is the kernel's default, which was not set.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn of(interface: &Interface) -> Result<Option<Self>, Error> {
        Ok(root(&mut Channel::open()?, interface)?.map(|message| Self::read(&message)))
    }

    /// Returns those of all interfaces of this network namespace that have one, by the interface's number, with one question to the
    /// kernel.
    ///
    /// # Errors
    /// When the kernel cannot be queried.
    pub fn all() -> Result<BTreeMap<u32, Self>, Error> {
        let failed = || "the queueing disciplines cannot be listed".to_owned();
        let found = at_roots(&mut Channel::open()?, 0, failed)?;
        Ok(found.iter().map(|message| (message.header.index as u32, Self::read(message))).collect())
    }

    fn read(message: &TcMessage) -> Self {
        Self { kind: kind(message), handle: message.header.handle.major }
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
    let header = TcHeader { index: interface.index as i32, parent: TcHandle::ROOT, ..TcHeader::default() };
    TcMessage::from_parts(header, attributes.into_iter().collect())
}

/// Returns the queueing discipline at the root of an interface; `None` if it is the kernel's default, which has no number.
pub(crate) fn root(channel: &mut Channel, interface: &Interface) -> Result<Option<TcMessage>, Error> {
    let failed = || format!("the queueing disciplines of `{}` cannot be listed", interface.name);
    let index = interface.index as i32;
    let found = at_roots(channel, index, failed)?;
    // Kernels list those of all interfaces, whichever is named.
    Ok(found.into_iter().find(|discipline| discipline.header.index == index))
}

/// Returns the queueing disciplines that were set at roots: of the interface with a number, or of all for 0, and perhaps more.
fn at_roots(channel: &mut Channel, index: i32, failed: impl Fn() -> String) -> Result<Vec<TcMessage>, Error> {
    let answers =
        channel.list(&RouteNetlinkMessage::GetQueueDiscipline(TcMessage::with_index(index)), failed)?;
    let found = answers.into_iter().filter_map(|answer| match answer {
        RouteNetlinkMessage::NewQueueDiscipline(discipline) => Some(discipline),
        _ => None,
    });
    let is_set = |discipline: &TcMessage| {
        discipline.header.parent == TcHandle::ROOT && discipline.header.handle != TcHandle::UNSPEC
    };
    Ok(found.filter(is_set).collect())
}

/// Returns the kind of a queueing discipline.
pub(crate) fn kind(discipline: &TcMessage) -> String {
    let kind = discipline.attributes.iter().find_map(|attribute| match attribute {
        TcAttribute::Kind(kind) => Some(kind.clone()),
        _ => None,
    });
    kind.unwrap_or_default()
}

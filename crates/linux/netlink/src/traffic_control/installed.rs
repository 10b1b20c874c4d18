//! Discipline at the root of an interface: recognition of our own, and removal.

use super::htb::{self, Discipline, message};
use super::{MAJOR, MARK, ShaperOptions, handle};
use crate::channel::Channel;
use crate::{Error, Interface, discipline};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::TcHandle;
use rustix::io::Errno;

/// Removes the remains of an earlier Cutline process from an interface. Returns whether there was anything.
///
/// # Errors
/// When the kernel cannot be queried, or refuses.
pub fn sweep(interface: &Interface) -> Result<bool, Error> {
    let mut channel = Channel::open()?;
    let is_ours = matches!(root(&mut channel, interface)?, Root::Ours);
    if is_ours {
        delete(&mut channel, interface.index, &interface.name)?;
    }
    Ok(is_ours)
}

/// Removes the discipline, with all that is in it.
pub(super) fn delete(channel: &mut Channel, interface: u32, name: &str) -> Result<(), Error> {
    let discipline = message(interface, TcHandle::ROOT, handle(0), 0, []);
    let failed = || format!("the queueing discipline of `{name}` cannot be removed");
    removed(channel.request(RouteNetlinkMessage::DelQueueDiscipline(discipline), 0, failed))
}

/// Treats an object that does not exist as removed: another process has removed it, or the interface is gone.
fn removed<T>(answered: Result<T, Error>) -> Result<(), Error> {
    match answered {
        Err(error) if is_gone(&error) => Ok(()),
        answered => answered.map(drop),
    }
}

pub(super) fn is_gone(error: &Error) -> bool {
    matches!(error.number(), Some(Errno::NOENT | Errno::NODEV))
}

/// Discipline at the root of an interface.
pub(super) enum Root {
    /// The kernel's default, which has no number.
    Default,
    Ours,
    Other {
        kind: String,
        handle: u16,
    },
}

/// Returns whether a shaper is there already.
///
/// # Errors
/// When another program has set a discipline that may not be replaced, or the kernel cannot be queried.
pub(super) fn is_ours(
    channel: &mut Channel,
    interface: &Interface,
    options: &ShaperOptions,
) -> Result<bool, Error> {
    match root(channel, interface)? {
        Root::Ours => Ok(true),
        Root::Default => Ok(false),
        Root::Other { .. } if options.replace => Ok(false),
        Root::Other { kind, handle } => {
            Err(Error::OtherQdisc { interface: interface.name.clone(), kind, handle })
        }
    }
}

pub(super) fn root(channel: &mut Channel, interface: &Interface) -> Result<Root, Error> {
    let Some(discipline) = discipline::root(channel, interface)? else { return Ok(Root::Default) };
    let kind = discipline::kind(&discipline);
    let is_marked = kind == htb::KIND && Discipline::read(&discipline.attributes) == Some(MARK);
    let handle = discipline.header.handle.major;
    Ok(if is_marked && handle == MAJOR { Root::Ours } else { Root::Other { kind, handle } })
}

//! Errors of the kernel's queues.

use crate::layout::LAYOUT;
use cutline_params::ParameterError;
use cutline_sys::SysError;
use cutline_sys::bpf::NoQueueingDisciplines;
use cutline_text::Printable;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// Reason why a queue of the kernel cannot be added, changed, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum QdiscError {
    /// The kernel accepts no queueing disciplines in eBPF.
    #[error(
        "TSQ and Sieve cannot be queueing disciplines on this machine: {0}; `cutline router up` has the same queues outside of the kernel \
         (docs/guide/router.md)"
    )]
    NotSupported(#[from] NoQueueingDisciplines),
    /// No file system for programs is mounted at the given place.
    #[error("{} is no bpffs: run `mount -t bpf bpf {}`, or name another place with --bpffs", Printable(path.display()), Printable(path.display()))]
    NoFileSystem {
        /// The place.
        path: PathBuf,
    },
    /// The folder of all pins is another user's, or others may write to it.
    #[error(
        "{} belongs to another user, or others than its owner may write to it: remove it, so that it is made again",
        Printable(folder.display())
    )]
    NotOwn {
        /// The folder.
        folder: PathBuf,
    },
    /// The object file of a queue is not installed.
    #[error(
        "{name} is missing: the package has it, and `make bpf` builds it; cutline looks for it in {}, or in the folder of {variable}",
        Printable(places)
    )]
    NoObject {
        /// Name of the file.
        name: &'static str,
        /// Places where it was looked for.
        places: String,
        /// Environment variable that may name its folder.
        variable: &'static str,
    },
    /// The kernel has refused an object, or it cannot be read.
    #[error("{} cannot be loaded: {why}{}", Printable(object.display()), explanation(log))]
    Load {
        /// The object file.
        object: PathBuf,
        /// The reason.
        why: String,
        /// Warnings of libbpf, with the verifier's reason.
        log: String,
    },
    /// The pins have another layout than this version.
    #[error(
        "the pins in {} are those of another version of Cutline: remove its queues with that version first",
        Printable(folder.display())
    )]
    OtherLayout {
        /// The folder of the pins.
        folder: PathBuf,
    },
    /// The interface has a queue of Cutline's already.
    #[error(
        "`{interface}` has the queue {kind} already: `cutline qdisc change` changes it, `cutline qdisc del` removes it, \
         `cutline qdisc add --replace` replaces it"
    )]
    AlreadyThere {
        /// The interface.
        interface: String,
        /// Name of the queue in the kernel.
        kind: &'static str,
    },
    /// The interface has no queue of Cutline's.
    #[error(
        "`{interface}` has no queue of Cutline's in the kernel{}: `cutline qdisc add` adds one, `cutline qdisc show` lists those of all \
         interfaces",
        in_its_place(has.as_deref())
    )]
    NotThere {
        /// The interface.
        interface: String,
        /// Kind of the queueing discipline that is set there.
        has: Option<String>,
    },
    /// The interface has a queue of Cutline's whose pins are elsewhere.
    #[error(
        "`{interface}` has the queue {kind}, and {} has no pins of it: name its bpffs with --bpffs (`ip netns exec` hides /sys/fs/bpf: \
         use `nsenter --net=/run/netns/NAME`)",
        Printable(folder.display())
    )]
    PinnedElsewhere {
        /// The interface.
        interface: String,
        /// Name of the queue in the kernel.
        kind: &'static str,
        /// The folder in which the pins were looked for.
        folder: PathBuf,
    },
    /// The interface has a queueing discipline that is not Cutline's.
    #[error(
        "`{interface}` has the queueing discipline {} {handle:x}: already, which is not Cutline's: remove it, or allow it to be replaced \
         (--replace); `cutline qdisc del` does not bring it back{}",
        Printable(kind),
        of_several_queues(kind)
    )]
    OtherQdisc {
        /// The interface.
        interface: String,
        /// Its kind, such as `htb`.
        kind: String,
        /// Its major number.
        handle: u16,
    },
    /// The interface has a queue that another version of Cutline has made.
    #[error(
        "`{interface}` has the queue {kind} of {} version of Cutline, which this version cannot read or change: `cutline qdisc add --replace` replaces it, \
         `tc qdisc del dev {} root` removes it, and `rm -r {}` frees the memory of that version after its last queue",
        older_or_newer(*layout),
        Printable(interface),
        Printable(folder.display())
    )]
    OtherVersion {
        /// The interface.
        interface: String,
        /// Name of the queue in the kernel.
        kind: String,
        /// Version of its layouts.
        layout: u32,
        /// The folder of its pins.
        folder: PathBuf,
    },
    /// Another program has set queueing disciplines of its own among those of Cutline's, below `mq`.
    #[error(
        "{} of `{interface}`, set by another program: nothing was removed; `cutline qdisc del --all` removes {} as well",
        leaves_in_words(others),
        if others.len() > 1 { "them" } else { "it" }
    )]
    OthersBelow {
        /// The interface.
        interface: String,
        /// Kinds of the queueing disciplines, by the number of the transmit queue from 1 on.
        others: BTreeMap<u16, String>,
    },
    /// The old queueing discipline of the interface has been removed, and the new one could not be set.
    #[error(
        "{error}; the queueing discipline that `{interface}` had is removed, and it has the kernel's default now: `cutline qdisc add` sets a queue again"
    )]
    NotReplaced {
        /// The interface.
        interface: String,
        /// Reason why the new one could not be set.
        error: Box<Self>,
    },
    /// All instances are in use.
    #[error(
        "all {instances} instances of {kind} are in use, or fewer in a row are free than this interface uses transmit queues (--mq): the number is set \
         with the first queue (`cutline qdisc add --instances`)"
    )]
    NoInstance {
        /// Number of instances.
        instances: u32,
        /// Name of the queue in the kernel.
        kind: &'static str,
    },
    /// Fewer transmit queues have a queue than are in use.
    #[error(
        "--mq: {} has {}: use `cutline qdisc add --replace --mq`",
        Printable(interface),
        queues_in_words(*has, *needs)
    )]
    FewerQueues {
        /// The interface.
        interface: String,
        /// Number of transmit queues with a queue each; 1 for one queue in the place of all.
        has: u32,
        /// Number of transmit queues in use.
        needs: u32,
    },
    /// The queue has memory for fewer packets than the new limit.
    #[error(
        "limit = {limit} packets: the queue was added with memory for {slots}{}; remove it and add it with the larger limit",
        in_each(*queues)
    )]
    LargerLimit {
        /// The new limit, packets.
        limit: u32,
        /// The packets for which there is memory, in each transmit queue that has a queue.
        slots: u32,
        /// Number of transmit queues that have a queue each.
        queues: u32,
    },
    /// The kernel's program has refused a configuration that was in range here.
    #[error("the kernel's program refused the change, which has no effect: {kind} may be of another version")]
    Refused {
        /// Name of the queue in the kernel.
        kind: &'static str,
    },
    /// A value that is not allowed.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The kernel refused a request about queueing disciplines.
    #[error(transparent)]
    Netlink(#[from] cutline_netlink::Error),
    /// A system call failed, or the process lacks a privilege.
    #[error(transparent)]
    System(#[from] SysError),
}

impl QdiscError {
    /// Returns whether the caller has given something that is not allowed, or that does not exist.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Parameter(_) | Self::LargerLimit { .. } | Self::FewerQueues { .. })
            || matches!(
                self,
                Self::Netlink(cutline_netlink::Error::System(SysError::NoInterface { .. }))
                    | Self::System(SysError::NoInterface { .. })
            )
    }

    pub(crate) fn map(failure: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let failure = failure.into();
        move |error| SysError::privileged(failure, "CAP_SYS_ADMIN", error).into()
    }
}

/// The last lines of a log with the reason of a refusal.
fn explanation(log: &str) -> String {
    const MOST: usize = 12;
    let lines: Vec<_> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(MOST);
    if lines.is_empty() { String::new() } else { format!("\n{}", Printable(lines[from..].join("\n"))) }
}

/// Returns words for memory in several transmit queues.
fn in_each(queues: u32) -> &'static str {
    if queues > 1 { " in each transmit queue" } else { "" }
}

/// Returns a note on a queueing discipline with a queue for each transmit queue of an interface.
fn of_several_queues(kind: &str) -> &'static str {
    match kind {
        "mq" | "mqprio" => {
            ". Cutline's queue is one for all transmit queues of the interface, or one for each with --mq, and has one rate for all of them"
        }
        _ => "",
    }
}

fn older_or_newer(layout: u32) -> &'static str {
    if layout < LAYOUT { "an older" } else { "a newer" }
}

/// Returns words such as "`fq_codel` on transmit queue 2 and pfifo on transmit queues 3, 4".
fn leaves_in_words(leaves: &BTreeMap<u16, String>) -> String {
    let mut by_kind: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (queue, kind) in leaves {
        by_kind.entry(kind).or_default().push(queue.to_string());
    }
    let of_kind = |(kind, queues): (&str, Vec<String>)| {
        let plural = if queues.len() > 1 { "s" } else { "" };
        format!("{} on transmit queue{plural} {}", Printable(kind), queues.join(", "))
    };
    by_kind.into_iter().map(of_kind).collect::<Vec<_>>().join(" and ")
}

fn queues_in_words(has: u32, needs: u32) -> String {
    match has {
        1 => "one queue for all of its transmit queues".to_owned(),
        queues => format!("a queue for {queues} of the {needs} transmit queues that are in use"),
    }
}

fn in_its_place(kind: Option<&str>) -> String {
    kind.map(|kind| format!("; it has {}", Printable(kind))).unwrap_or_default()
}

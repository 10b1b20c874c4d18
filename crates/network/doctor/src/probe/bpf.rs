//! eBPF: whether programs can be loaded, and whether the kernel supports queue disciplines in eBPF. They need type
//! information (BTF) that includes the struct of operations of such a discipline (`CONFIG_NET_SCH_BPF`, since Linux 6.16).

use super::answer::Answer;
use super::kernel;
use cutline_sys::bpf::{ProgramType, load_program, queueing_disciplines};
use std::io;

/// Availability of eBPF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bpf {
    /// Availability of loading programs.
    pub programs: Answer,
    /// Availability of XDP programs, which process frames before the kernel does.
    pub xdp: Answer,
    /// True if programs are compiled; `None` if the kernel does not report it.
    pub jit: Option<bool>,
    /// Availability of the kernel's type information.
    pub btf: Answer,
    /// Availability of queue disciplines in eBPF.
    pub qdisc: Answer,
    /// True if the file system for programs is mounted at `/sys/fs/bpf`.
    pub file_system: bool,
}

/// Loads two programs of two instructions, which are removed at once, and reads the other answers from files.
pub fn bpf() -> Bpf {
    let btf = std::fs::read("/sys/kernel/btf/vmlinux");
    Bpf {
        programs: Answer::from_result(load(ProgramType::SocketFilter)),
        xdp: Answer::from_result(load(ProgramType::Xdp)),
        jit: kernel::sysctl("net.core.bpf_jit_enable").value.map(|value| value != "0"),
        qdisc: queueing_disciplines().map_or_else(|why| Answer::No(why.to_string()), |()| Answer::Yes),
        btf: Answer::from_result(btf.map(drop)),
        file_system: is_mounted(&std::fs::read_to_string("/proc/self/mounts").unwrap_or_default()),
    }
}

/// Loads the shortest program, which returns zero.
fn load(kind: ProgramType) -> io::Result<()> {
    // r0 = 0; exit.
    load_program(kind, &[[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]]).map(drop)
}

/// Returns whether a list of mounts has the file system for programs at its usual place. One at another place is not where `cutline qdisc` looks.
fn is_mounted(mounts: &str) -> bool {
    mounts.lines().any(|line| {
        let mut words = line.split(' ').skip(1);
        words.next() == Some("/sys/fs/bpf") && words.next() == Some("bpf")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_for_programs_counts_at_its_usual_place_alone() {
        let usual = "sysfs /sys sysfs rw 0 0\nbpf /sys/fs/bpf bpf rw,nosuid,mode=700 0 0\n";
        let elsewhere = "sysfs /sys sysfs rw 0 0\nbpf /run/cilium/bpffs bpf rw 0 0\n";
        assert!(is_mounted(usual) && !is_mounted(elsewhere));
        assert!(!is_mounted("tmpfs /sys/fs/bpf tmpfs rw 0 0\n") && !is_mounted(""));
    }
}

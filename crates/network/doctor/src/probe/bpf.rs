//! eBPF: whether programs can be loaded, and whether the kernel supports queue disciplines in eBPF. They need type
//! information (BTF) that includes the struct of operations of such a discipline (`CONFIG_NET_SCH_BPF`, since Linux 6.16).

use super::answer::Answer;
use super::kernel;
use cutline_sys::bpf::{ProgramType, load_program};
use std::io;
use std::path::Path;

/// Availability of eBPF.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bpf {
    /// Availability of loading programs.
    pub programs: Answer,
    /// Availability of loading XDP programs, which process frames before the kernel does.
    pub xdp: Answer,
    /// True if programs are compiled; `None` if the kernel does not report it.
    pub jit: Option<bool>,
    /// Availability of the kernel's type information.
    pub btf: Answer,
    /// Availability of queue disciplines in eBPF.
    pub qdisc: Answer,
    /// True if the file system for programs is mounted.
    pub file_system: bool,
}

/// Loads two programs of two instructions, which are removed at once, and reads the other answers from files.
pub fn bpf() -> Bpf {
    let btf = std::fs::read("/sys/kernel/btf/vmlinux");
    Bpf {
        programs: Answer::from_result(load(ProgramType::SocketFilter)),
        xdp: Answer::from_result(load(ProgramType::Xdp)),
        jit: kernel::sysctl("net.core.bpf_jit_enable").value.map(|value| value != "0"),
        qdisc: qdisc(btf.as_ref()),
        btf: Answer::from_result(btf.map(drop)),
        file_system: Path::new("/sys/fs/bpf").is_dir() && is_mounted(),
    }
}

/// Loads the shortest program, which returns zero.
fn load(kind: ProgramType) -> io::Result<()> {
    // r0 = 0; exit.
    load_program(kind, &[[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]]).map(drop)
}

/// Looks up the name that a loader needs in the type information.
fn qdisc(btf: Result<&Vec<u8>, &io::Error>) -> Answer {
    match btf {
        Ok(btf) if has_name(btf, b"bpf_struct_ops_Qdisc_ops") => Answer::Yes,
        Ok(_) => {
            Answer::No("the kernel has been built without CONFIG_NET_SCH_BPF (since Linux 6.16)".to_owned())
        }
        Err(_) => Answer::No("the kernel has no type information (CONFIG_DEBUG_INFO_BTF)".to_owned()),
    }
}

/// Returns true if the zero-terminated strings of type information include this name.
fn has_name(btf: &[u8], name: &[u8]) -> bool {
    btf.split(|&byte| byte == 0).any(|found| found == name)
}

fn is_mounted() -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').nth(2) == Some("bpf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole() {
        let btf = b"\x9f\xeb\0bpf_struct_ops_Qdisc_ops_x\0x_bpf_struct_ops_Qdisc_ops\0Qdisc_ops\0".to_vec();
        assert!(has_name(&btf, b"Qdisc_ops") && !has_name(&btf, b"bpf_struct_ops_Qdisc_ops"));
        assert!(matches!(qdisc(Ok(&btf)), Answer::No(why) if why.contains("NET_SCH_BPF")));
        assert_eq!(qdisc(Ok(&b"\0bpf_struct_ops_Qdisc_ops\0".to_vec())), Answer::Yes);
        assert!(matches!(qdisc(Err(&io::Error::other("gone"))), Answer::No(why) if why.contains("BTF")));
    }
}

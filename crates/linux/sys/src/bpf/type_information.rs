//! Abilities of the kernel, by its type information (BTF).

use std::io;
use std::path::Path;

/// The kernel's own type information.
const KERNEL: &str = "/sys/kernel/btf/vmlinux";
/// The setting of the compiler of programs: 0 is off.
const COMPILER: &str = "/proc/sys/net/core/bpf_jit_enable";
/// A setting of every kernel that is shown where that of the compiler is: in the first network namespace.
const BESIDE_COMPILER: &str = "/proc/sys/net/core/netdev_budget";
/// The type that a loader needs for queueing disciplines in eBPF.
const OPERATIONS: &[u8] = b"bpf_struct_ops_Qdisc_ops";

/// Reason why a kernel has no queueing disciplines in eBPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoQueueingDisciplines {
    /// The kernel has no type information.
    #[error("the kernel has no type information (CONFIG_DEBUG_INFO_BTF)")]
    NoTypes,
    /// The kernel is older than Linux 6.16, or was built without them.
    #[error("the kernel has been built without CONFIG_NET_SCH_BPF (since Linux 6.16)")]
    NotBuilt,
    /// The kernel interprets programs. Only compiled programs may call the functions of the kernel, and a queue calls some.
    #[error(
        "the kernel interprets eBPF programs instead of compiling them (CONFIG_BPF_JIT): `sysctl -w net.core.bpf_jit_enable=1`"
    )]
    NotCompiled,
    /// The kernel has no compiler of programs.
    #[error(
        "the kernel has been built without a compiler of eBPF programs (CONFIG_BPF_JIT), and cannot interpret those of a queue"
    )]
    NoCompiler,
}

/// Returns whether the kernel accepts queueing disciplines in eBPF (`CONFIG_NET_SCH_BPF`, since Linux 6.16) and compiles programs.
///
/// # Errors
/// When it does not; the error is the reason.
pub fn queueing_disciplines() -> Result<(), NoQueueingDisciplines> {
    in_types(&std::fs::read(Path::new(KERNEL)))?;
    is_compiling(&std::fs::read_to_string(Path::new(COMPILER)), Path::new(BESIDE_COMPILER).exists())
}

/// A kernel whose settings are not shown in this network namespace may compile programs. Where they are shown (`are_shown`), one without the setting has
/// no compiler.
fn is_compiling(setting: &io::Result<String>, are_shown: bool) -> Result<(), NoQueueingDisciplines> {
    match setting {
        Ok(setting) if setting.trim() == "0" => Err(NoQueueingDisciplines::NotCompiled),
        Err(error) if error.kind() == io::ErrorKind::NotFound && are_shown => {
            Err(NoQueueingDisciplines::NoCompiler)
        }
        _ => Ok(()),
    }
}

fn in_types(types: &io::Result<Vec<u8>>) -> Result<(), NoQueueingDisciplines> {
    match types {
        Ok(types) if has_name(types, OPERATIONS) => Ok(()),
        Ok(_) => Err(NoQueueingDisciplines::NotBuilt),
        Err(_) => Err(NoQueueingDisciplines::NoTypes),
    }
}

/// Returns whether the zero-terminated strings of type information include this name.
fn has_name(types: &[u8], name: &[u8]) -> bool {
    types.split(|&byte| byte == 0).any(|found| found == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole() {
        let types = b"\x9f\xeb\0bpf_struct_ops_Qdisc_ops_x\0x_bpf_struct_ops_Qdisc_ops\0Qdisc_ops\0".to_vec();
        assert!(has_name(&types, b"Qdisc_ops") && !has_name(&types, OPERATIONS));
        assert_eq!(in_types(&Ok(types)), Err(NoQueueingDisciplines::NotBuilt));
        assert_eq!(in_types(&Ok(b"\0bpf_struct_ops_Qdisc_ops\0".to_vec())), Ok(()));
        assert_eq!(in_types(&Err(io::Error::other("gone"))), Err(NoQueueingDisciplines::NoTypes));
    }

    #[test]
    fn a_kernel_that_interprets_programs_is_refused_with_the_setting() {
        let with = |setting: &str| is_compiling(&Ok(setting.to_owned()), true);
        assert_eq!([with("1\n"), with("2\n")], [Ok(()), Ok(())]);
        let refused = with("0\n").unwrap_err().to_string();
        assert!(refused.contains("net.core.bpf_jit_enable=1") && refused.contains("CONFIG_"), "{refused}");
    }

    /// Another network namespace than the first one shows no such settings.
    #[test]
    fn a_kernel_without_the_setting_has_no_compiler_unless_settings_are_hidden() {
        let missing = || Err(io::Error::from(io::ErrorKind::NotFound));
        assert_eq!(is_compiling(&missing(), false), Ok(()));
        assert_eq!(is_compiling(&Err(io::Error::other("unreadable")), true), Ok(()));
        let refused = is_compiling(&missing(), true).unwrap_err().to_string();
        assert!(refused.contains("CONFIG_BPF_JIT") && !refused.contains("sysctl"), "{refused}");
    }
}

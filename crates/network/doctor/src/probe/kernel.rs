//! The kernel: its release, cores, clock, configuration and sysctls.

use cutline_sys::now;
use cutline_units::Duration;
use std::fs;
use std::io::Read as _;
use std::path::Path;

/// The kernel's release, cores and clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The release, such as `6.12.0`.
    pub release: String,
    /// The number of cores that this process may use.
    pub cores: usize,
    /// The clock in use, such as `tsc`; `None` if the kernel does not report it.
    pub clock_source: Option<String>,
    /// The time that reading the clock takes: the mean over a thousand readings.
    pub clock_read: Duration,
}

/// Reads release, cores and clock.
pub fn kernel() -> Kernel {
    const READS: u64 = 1000;
    let start = now();
    let end = (0..READS).fold(start, |_, _| std::hint::black_box(now()));
    Kernel {
        release: file("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        clock_source: file("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        clock_read: (end - start) / READS,
    }
}

/// The configuration with which the kernel was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelConfig(String);

impl KernelConfig {
    /// Returns whether an option, without its `CONFIG_`, is built in or a module.
    pub fn has(&self, option: &str) -> bool {
        let is_it = |line: &str| {
            let value = line.strip_prefix("CONFIG_").and_then(|line| line.strip_prefix(option));
            matches!(value, Some("=y" | "=m"))
        };
        self.0.lines().any(is_it)
    }
}

/// The configuration, from `/proc/config.gz` or `/boot/config-RELEASE`.
pub fn config(release: &str) -> Option<KernelConfig> {
    let packed = fs::read("/proc/config.gz").ok().and_then(|bytes| {
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).ok().map(|_| text)
    });
    let plain = || fs::read_to_string(format!("/boot/config-{release}")).ok();
    packed.or_else(plain).map(KernelConfig)
}

/// Returns whether the kernel has a module, built in or as a file; `None` if there is no list of modules.
pub fn module(release: &str, name: &str) -> Option<bool> {
    let folder = Path::new("/lib/modules").join(release);
    let read = |list: &str| fs::read_to_string(folder.join(list)).ok();
    let lists: Vec<String> = ["modules.builtin", "modules.dep"].into_iter().filter_map(read).collect();
    (!lists.is_empty()).then(|| lists.iter().any(|list| lists_module(list, name)))
}

/// Returns whether a list includes a module. Each line has a path, such as `kernel/net/sched/sch_pie.ko.xz:`,
/// and its dependencies.
fn lists_module(list: &str, name: &str) -> bool {
    let start = format!("{name}.ko");
    list.lines().any(|line| {
        let path = line.split([':', ' ']).next().unwrap_or_default();
        path.rsplit('/').next().is_some_and(|file| file.starts_with(&start))
    })
}

/// A setting of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysctl {
    /// The name, such as `net.core.rmem_max`.
    pub name: String,
    /// The value as the kernel writes it, with one space between numbers; `None` if there is no such setting.
    pub value: Option<String>,
}

/// Reads a setting.
pub fn sysctl(name: &str) -> Sysctl {
    let value = file(&format!("/proc/sys/{}", name.replace('.', "/")));
    let one_space = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    Sysctl { name: name.to_owned(), value: value.map(one_space) }
}

/// The content of a small file, without the end of the line.
pub(super) fn file(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_survey_has_the_release_and_settings_of_the_kernel() {
        let kernel = kernel();
        assert!(kernel.release.starts_with(|first: char| first.is_ascii_digit()), "{kernel:?}");
        assert!(kernel.cores > 0 && kernel.clock_read > Duration::ZERO, "{kernel:?}");
        assert!(sysctl("net.ipv4.tcp_rmem").value.is_some_and(|value| value.split(' ').count() == 3));
        assert_eq!(sysctl("net.cutline.none").value, None);
    }

    #[test]
    fn options_are_found_by_their_whole_name() {
        let config =
            KernelConfig("# CONFIG_NET_SCH_PIE is not set\nCONFIG_NET_SCH_FQ_PIE=m\nCONFIG_TUN=y\n".into());
        assert!(config.has("NET_SCH_FQ_PIE") && config.has("TUN"));
        assert!(!config.has("NET_SCH_PIE") && !config.has("NET_SCH_FQ") && !config.has("TU"));
    }

    #[test]
    fn modules_are_found_by_their_whole_name() {
        let list = "kernel/net/sched/sch_fq_pie.ko.xz: kernel/net/sched/sch_pie.ko.xz\nkernel/a/sch_fq.ko:\n";
        assert!(lists_module(list, "sch_fq_pie") && lists_module(list, "sch_fq"));
        assert!(!lists_module(list, "sch_pie") && !lists_module(list, "fq_pie"));
    }
}

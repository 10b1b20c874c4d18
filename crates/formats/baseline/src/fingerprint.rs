//! The host that a table belongs to.

use cutline_records::record;
use serde::Deserialize;
use std::fs;

record! {
    schema is a feature;

    /// Properties of a host on which its measurements depend.
    #[derive(Eq, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HostFingerprint {
        name: String, label, "Name of the host (`/proc/sys/kernel/hostname`).";
        kernel: String, label, "Release of the kernel (`/proc/sys/kernel/osrelease`).";
        processor: String, label, "Model of the first processor (`/proc/cpuinfo`); empty if the kernel does not report it.";
        processors: u32, label, "Number of processors.";
    }
}

impl HostFingerprint {
    /// Returns the fingerprint of this host.
    pub fn of_this_host() -> Self {
        let setting = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
            text.trim().to_owned()
        };
        let (processor, processors) = processors(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default());
        Self { name: setting("hostname"), kernel: setting("osrelease"), processor, processors }
    }

    /// Returns the first property in which two hosts differ: its name, and both values.
    pub fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let pairs = [
            ("name", self.name.clone(), other.name.clone()),
            ("kernel", self.kernel.clone(), other.kernel.clone()),
            ("processor", self.processor.clone(), other.processor.clone()),
            ("number of processors", self.processors.to_string(), other.processors.to_string()),
        ];
        pairs.into_iter().find(|(_, one, two)| one != two)
    }
}

/// Returns the model and the number of the processors in `/proc/cpuinfo`.
fn processors(text: &str) -> (String, u32) {
    let pairs = || {
        text.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()))
    };
    let model =
        pairs().find(|(name, _)| *name == "model name").map_or(String::new(), |(_, model)| model.to_owned());
    (model, pairs().filter(|(name, _)| *name == "processor").count() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted() {
        let text = "processor\t: 0\nmodel name\t: A Processor\n\nprocessor\t: 1\nmodel name\t: A Processor\n";
        assert_eq!(processors(text), ("A Processor".to_owned(), 2));
        assert_eq!(processors(""), (String::new(), 0));
        let here = HostFingerprint::of_this_host();
        assert!(!here.kernel.is_empty() && here.processors > 0, "{here:?}");
        assert_eq!(here.difference(&here.clone()), None);
        let other = HostFingerprint { processors: here.processors + 1, ..here.clone() };
        assert_eq!(here.difference(&other).unwrap().0, "number of processors");
    }
}

//! Lines of a process that publishes to the monitor: whatever their contents, the registry stays within its limits, and the document, its
//! explanation, the metrics and the objects of SNMP can be made. Each series of the metrics is there once, and the names of the objects rise.

use cutline_monitor::{
    HostDocument, HostEvidence, MonitoredHost, Process, PublicationLimits, PublishedLine, PublishedLineError,
    Viewer, explain, metrics,
};
use cutline_openmetrics::TextFormat;
use cutline_snmp::{HostObjects, SystemTexts};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Limits of a host whose process has an ordinary user.
const LIMITS: PublicationLimits =
    PublicationLimits { publishers: 2, publishers_of_user: 1, bytes: 1 << 20, bytes_of_user: 1 << 16 };
/// First line of every process.
const HELLO: &[u8] = br#"{"hello":{"version":1,"program":"fuzz"}}"#;

pub fn parse(bytes: &[u8]) -> bool {
    let host = Arc::new(MonitoredHost::new(LIMITS));
    let id = host.registry().open(Process { pid: 7, uid: 1000 }).expect("there is room for one");
    let take = |line: &[u8]| -> Result<(), PublishedLineError> {
        let line = PublishedLine::parse(line)?;
        host.registry().take(id, line)
    };
    take(HELLO).expect("it is of the protocol");
    let mut is_accepted = false;
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let [first, last] = [&lines[..lines.len() / 2], &lines[lines.len() / 2..]];
    for line in first {
        is_accepted |= take(line).is_ok();
    }
    host.note_second();
    let before = host.document(Viewer::All);
    for line in last {
        is_accepted |= take(line).is_ok();
    }
    host.note_second();
    let document = host.document(Viewer::User(1000));
    let text = serde_json::to_string(&document).expect("the document has text keys only");
    assert!(!text.is_empty());
    let after = HostDocument { at_unix_s: before.at_unix_s + 1.0, ..host.document(Viewer::All) };
    let explanation = explain(&HostEvidence { before: &before, after: &after, interfaces: &[] });
    assert!(serde_json::to_string(&explanation).is_ok());
    let metrics = metrics(document, TextFormat::OpenMetrics);
    let series = metrics.lines().filter_map(|line| Some(line.rsplit_once(' ')?.0));
    let mut seen = BTreeSet::new();
    series.filter(|name| !name.starts_with('#')).for_each(|name| assert!(seen.insert(name), "{name} twice"));
    walk(&host);
    is_accepted
}

/// Walks over all objects.
fn walk(host: &Arc<MonitoredHost>) {
    let objects = HostObjects::new(Arc::clone(host), &SystemTexts::default());
    let root = &objects.module.root;
    let mut name = root.clone();
    while let Some((next, _)) = objects.next(root, &name) {
        assert!(next > name, "{next:?} behind {name:?}");
        assert!(matches!(objects.get(&next), Ok(Some(_))), "{next:?} was found and is not there");
        name = next;
    }
}

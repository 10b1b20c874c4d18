//! Lines of a process that publishes to the monitor: whatever their contents, the registry stays within its limits, and the document, the metrics and
//! the objects of SNMP can be made, the names of the objects rising.

use cutline_monitor::{
    MonitoredHost, Process, PublicationLimits, PublishedLine, PublishedLineError, Viewer, metrics,
};
use cutline_openmetrics::TextFormat;
use cutline_snmp::{HostObjects, SystemTexts};
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
    for line in bytes.split(|byte| *byte == b'\n') {
        is_accepted |= take(line).is_ok();
    }
    host.note_second();
    let document = host.document(Viewer::User(1000));
    let text = serde_json::to_string(&document).expect("the document has text keys only");
    assert!(!text.is_empty() && !metrics(&document, TextFormat::OpenMetrics).is_empty());
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

//! Messages of managers over SNMP: the objects have an answer for every name, and the next name is behind it.

use async_snmp::DecodeConfig;
use async_snmp::message::Message;
use bytes::Bytes;
use cutline_monitor::{MonitoredHost, Process, PublicationLimits, PublishedLine};
use cutline_publish::SocketRow;
use cutline_snmp::{HostObjects, SystemTexts};
use std::sync::Arc;

thread_local! {
    static OBJECTS: HostObjects = objects();
}

/// The objects of a host with one socket.
fn objects() -> HostObjects {
    let host = Arc::new(MonitoredHost::new(PublicationLimits::DEFAULT));
    let id = host.registry().open(Process { pid: 7, uid: 1000 }).expect("there is room for one");
    let socket = serde_json::json!({ "socket": SocketRow::default() }).to_string();
    for line in [br#"{"hello":{"version":1,"program":"fuzz"}}"#, socket.as_bytes()] {
        let line = PublishedLine::parse(line).expect("it is of the protocol");
        host.registry().take(id, line).expect("there is room for it");
    }
    HostObjects::new(host, &SystemTexts::default())
}

pub fn parse(bytes: &[u8]) -> bool {
    let message = Message::decode(Bytes::copy_from_slice(bytes), DecodeConfig::default());
    let Some(request) = message.ok().and_then(|decoded| decoded.value.into_pdu()) else { return false };
    OBJECTS.with(|objects| {
        for variable in request.varbinds() {
            let name = variable.oid.arcs();
            let _answer = objects.get(name);
            let _change = objects.request(name, &variable.value);
            for module in objects.modules() {
                if let Some((next, _)) = objects.next(&module.root, name) {
                    assert!(&*next > name, "{next:?} behind {name:?}");
                }
            }
        }
    });
    true
}

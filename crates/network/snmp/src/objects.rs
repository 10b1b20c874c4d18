//! The objects of a host: the answers to requests for a name.

use crate::mib;
use crate::options::SystemTexts;
use crate::snapshot::Snapshot;
use crate::standard::{intsrv, rsvp, system};
use crate::table::{Module, NoSuchObject};
use async_snmp::Value;
use async_snmp::handler::SetTestError;
use cutline_monitor::{MonitoredHost, PublisherId};
use cutline_publish::ManagerRequest;
use cutline_sys::{lock, now};
use cutline_units::Duration;
use std::iter;
use std::sync::{Arc, Mutex};

/// Age at which a snapshot is renewed. Rows are published once a second.
const REFRESHED_AFTER: Duration = Duration::from_millis(500);

/// The objects of a host.
pub struct HostObjects {
    /// The host.
    pub host: Arc<MonitoredHost>,
    /// CUTLINE-QOS-MIB.
    pub module: Module,
    /// Modules of others: the group `system`, RSVP-MIB and INTSRV-MIB.
    pub standard: Vec<Module>,
    snapshot: Mutex<Option<Arc<Snapshot>>>,
}

impl HostObjects {
    /// Returns the objects of a host.
    pub fn new(host: Arc<MonitoredHost>, texts: &SystemTexts) -> Self {
        let standard =
            iter::once(system::module(texts)).chain(rsvp::modules()).chain([intsrv::module()]).collect();
        Self { host, module: mib::module(), standard, snapshot: Mutex::new(None) }
    }

    /// Returns the rows of the host, at most half a second old.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let mut kept = lock(&self.snapshot);
        if let Some(snapshot) = kept.as_ref()
            && now().saturating_since(snapshot.taken) < REFRESHED_AFTER
        {
            return Arc::clone(snapshot);
        }
        let snapshot = Arc::new(Snapshot::take(&self.host));
        *kept = Some(Arc::clone(&snapshot));
        snapshot
    }

    /// Returns all modules.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.standard.iter().chain([&self.module])
    }

    /// Returns the module that has this name, if any: the names of some begin with that of another one.
    fn module_of(&self, name: &[u32]) -> Option<&Module> {
        self.modules().filter(|module| name.starts_with(&module.root)).max_by_key(|module| module.root.len())
    }

    /// Returns the value of a name; `None` if the object has no such instance.
    ///
    /// # Errors
    /// When there is no such object at all.
    pub fn get(&self, name: &[u32]) -> Result<Option<Value>, NoSuchObject> {
        self.module_of(name).ok_or(NoSuchObject)?.get(&self.snapshot(), name)
    }

    /// Converts a manager's value into a request. Returns the publisher and the request.
    ///
    /// # Errors
    /// When there is no such object, or it cannot be set to this value.
    pub fn request(
        &self,
        name: &[u32],
        value: &Value,
    ) -> Result<(PublisherId, ManagerRequest), SetTestError> {
        let (index, request) = self.module.request(&self.snapshot(), name, value)?;
        // Numbers of publishers begin with 0, and those of an index with 1.
        let publisher =
            index.first().and_then(|number| number.checked_sub(1)).ok_or(SetTestError::NoCreation)?;
        Ok((publisher, request))
    }

    /// Returns the first value behind a name that is below `root`, with its own name.
    pub fn next(&self, root: &[u32], name: &[u32]) -> Option<(Vec<u32>, Value)> {
        let module = self.modules().find(|module| module.root == root)?;
        module.next(&self.snapshot(), name)
    }

    /// Returns the first value behind a name in the modules that a subagent serves: all but the group `system`, which the master has.
    pub fn next_of_subagent(&self, name: &[u32]) -> Option<(Vec<u32>, Value)> {
        let snapshot = self.snapshot();
        let modules = self.modules().filter(|module| module.root != system::MIB_2);
        modules.filter_map(|module| module.next(&snapshot, name)).min_by(|a, b| a.0.cmp(&b.0))
    }
}

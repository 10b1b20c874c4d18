//! Classes of the kernel for the flows of the interfaces.

use super::ManagedHost;
use crate::kernel_classes::WantedClasses;
use crate::reserved::selector;
use cutline_manager::resources::SchedulingClass;
use cutline_units::{Instant, Rate};
use std::collections::BTreeSet;

impl ManagedHost {
    /// Makes the classes of the kernel as the flows need them.
    pub(super) fn update_classes(&mut self, now: Instant) {
        let mut classes = std::mem::take(&mut self.kernel_classes);
        classes.update(now, || self.wanted_classes());
        self.notices.extend(classes.notices());
        self.kernel_classes = classes;
    }

    /// Returns the classes of the kernel as the flows need them: a real-time flow counts with its rate, a time-shared one with its promise,
    /// because the rest of its rate is not promised. Packets have one class: a flow that names those of another flow adds nothing, and
    /// real-time flows come first.
    fn wanted_classes(&mut self) -> WantedClasses {
        let mut flows = Vec::with_capacity(self.places.len());
        for (flow, place) in &self.places {
            let Some(found) = self.manager.allocation(*flow) else { continue };
            let Some(index) = found.request.interface else { continue };
            let packets = selector(found.request.carrier, place.source, place.destination);
            flows.push(match found.request.class {
                SchedulingClass::RealTime => (0, index, packets, found.granted),
                SchedulingClass::TimeShared => (1, index, packets, found.promised),
            });
        }
        // Within a class they stay in the order of their admission.
        flows.sort_by_key(|(class, ..)| *class);
        let (mut wanted, mut seen) = (WantedClasses::new(), BTreeSet::new());
        for (class, index, packets, rate) in flows {
            let Some(name) = self.interfaces.get(&index) else { continue };
            if packets.check().is_ok() && seen.insert((index, packets)) {
                let class = &mut wanted.entry(name.clone()).or_default()[class];
                class.packets.insert(packets);
                class.rate = Rate::from_bps(class.rate.as_bps() + rate.as_bps());
            }
        }
        wanted
    }
}

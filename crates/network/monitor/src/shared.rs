//! Documents for readers of the local socket. Readers who see the same rows at the same time share one, so that many readers cost the time
//! and the memory of one.

use crate::registry::Viewer;
use cutline_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Age up to which a document is given to further readers. Rows change once a second.
const FRESH: Duration = Duration::from_millis(250);

/// The latest document of each kind of reader, with the time at which it was made.
#[derive(Debug, Default)]
pub struct SharedDocuments(BTreeMap<Viewer, (Instant, Arc<[u8]>)>);

impl SharedDocuments {
    /// Returns the document for a reader, at most a quarter of a second old. `make` makes a new one; `clock` gives the time.
    pub fn get(
        &mut self,
        viewer: Viewer,
        clock: impl Fn() -> Instant,
        make: impl FnOnce() -> Arc<[u8]>,
    ) -> Arc<[u8]> {
        if let Some((_, document)) = self.0.get(&viewer).filter(|(made, _)| is_fresh(*made, clock())) {
            return Arc::clone(document);
        }
        let document = make();
        // One that takes long to make is fresh when it is made.
        self.0.insert(viewer, (clock(), Arc::clone(&document)));
        document
    }

    /// Frees the documents that no further reader gets.
    pub fn forget_old(&mut self, now: Instant) {
        self.0.retain(|_, (made, _)| is_fresh(*made, now));
    }
}

fn is_fresh(made: Instant, now: Instant) -> bool {
    now.saturating_since(made) < FRESH
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn readers_of_the_same_rows_share_a_document_until_it_is_old() {
        let time = Cell::new(Instant::ZERO);
        let made = Cell::new(0_u8);
        let mut documents = SharedDocuments::default();
        let mut get = |viewer| {
            documents.get(
                viewer,
                || time.get(),
                || {
                    made.set(made.get() + 1);
                    // It takes a second.
                    time.set(time.get() + Duration::from_secs(1));
                    [made.get()].into()
                },
            )[0]
        };
        assert_eq!([get(Viewer::All), get(Viewer::All)], [1, 1]);
        assert_eq!([get(Viewer::User(7)), get(Viewer::User(8)), get(Viewer::User(8))], [2, 3, 3]);
        assert_eq!(get(Viewer::All), 4, "two seconds are over");
        time.set(time.get() + FRESH);
        documents.forget_old(time.get());
        assert!(documents.0.is_empty());
    }
}

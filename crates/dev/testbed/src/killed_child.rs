//! Processes that end with their test.

use std::ops::{Deref, DerefMut};
use std::process::Child;

/// A process that is killed when this is dropped, unless it has ended.
#[derive(Debug)]
pub struct KilledChild(pub Child);

impl Deref for KilledChild {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for KilledChild {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for KilledChild {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _gone = self.0.wait();
    }
}

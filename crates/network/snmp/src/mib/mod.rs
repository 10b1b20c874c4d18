//! CUTLINE-QOS-MIB: its tables, made from the records of the monitor, and its text.
//!
//! A column is added behind the others of its table, with the next arc. Arcs of columns never change: managers keep them.

mod buckets;
mod host;
mod queues;
mod sockets;
mod text;

pub use crate::names::{NOTIFICATIONS, OBJECTS, ROOT};
pub use text::text;

use crate::object::{Object, Syntax};
use crate::table::Module;

/// Returns the objects of the module.
pub fn module() -> Module {
    Module {
        root: [ROOT, &[OBJECTS]].concat(),
        groups: vec![
            Box::new(host::scalars()),
            Box::new(sockets::sockets()),
            Box::new(sockets::directions()),
            Box::new(sockets::limits()),
            Box::new(sockets::violations()),
            Box::new(sockets::delays()),
            Box::new(host::programs()),
            Box::new(queues::queues()),
            Box::new(queues::drops()),
            Box::new(queues::hints()),
            Box::new(queues::waits()),
            Box::new(queues::flows()),
            Box::new(queues::hosts()),
        ],
    }
}

/// Returns an object of an index.
fn index(arc: u32, name: &str, syntax: Syntax, description: &str) -> Object {
    Object { arc, name: name.to_owned(), syntax, units: "", description: description.to_owned() }
}

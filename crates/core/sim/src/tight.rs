//! Growth of long lists by a quarter. A vector that doubles leaves a third of its memory unused on average, and a long list of packets is
//! a large part of a simulation's memory.

/// Appends to a list. Makes room for a quarter more where a vector makes room for as much again.
#[inline]
pub(crate) fn push_tightly<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        make_room(list);
    }
    list.push(item);
}

/// Makes room in a list that is full.
#[cold]
#[inline(never)]
fn make_room<T>(list: &mut Vec<T>) {
    const LEAST: usize = 8;
    list.reserve_exact((list.len() / 4).max(LEAST));
}

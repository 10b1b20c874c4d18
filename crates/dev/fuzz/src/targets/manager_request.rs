//! Requests of managers, as the monitor sends them to a process: the same are found however the bytes are cut, and each is written as it was
//! read.

use cutline_publish::RequestLines;

pub fn parse(bytes: &[u8]) -> bool {
    let whole = RequestLines::default().add(bytes);
    let mut lines = RequestLines::default();
    let in_pieces: Vec<_> = bytes.chunks(3).flat_map(|piece| lines.add(piece)).collect();
    assert_eq!(whole, in_pieces, "however they are cut");
    for request in &whole {
        let again = RequestLines::default().add(request.line().as_bytes());
        assert_eq!(again, std::slice::from_ref(request), "as it was read");
    }
    !whole.is_empty()
}

//! Lines that applications send to `cutlined`: `cutline_provision::protocol::Request`.
//!
//! - Requests read back the same after they were written; each is one line, which is no longer than allowed.
//! - A list of senders has 1 to 64.
//! - An error gives the reason.

use cutline_provision::protocol::{LONGEST_LINE, MOST_SENDERS, Request, Senders};

pub fn parse(bytes: &[u8]) -> bool {
    let request = match Request::parse(bytes) {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    if let Request::Reserve { senders: Senders::Fixed { senders } | Senders::Shared { senders }, .. } =
        &request
    {
        assert!((1..=MOST_SENDERS).contains(&senders.len()));
    }
    let line = request.line();
    let line = line.strip_suffix('\n').expect("a line has an end");
    assert!(!line.contains('\n') && line.len() <= LONGEST_LINE, "{line:?}");
    assert_eq!(Request::parse(line.as_bytes()).expect("it was written by us"), request);
    true
}

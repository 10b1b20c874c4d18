//! Requests to a router at work: `cutline_router_service::Request`.
//!
//! - Requests read back the same after they were written, and each is one line.
//! - A time is within its range.
//! - An error names the allowed values.

use cutline_router_service::RouterRequest;

pub fn parse(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let request: RouterRequest = match text.parse() {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    if let RouterRequest::Watch(time) = request {
        assert!(RouterRequest::WATCH.contains(&time), "{time}");
    }
    let line = request.to_string();
    assert!(!line.contains('\n'), "{line:?}");
    assert_eq!(line.parse(), Ok(request));
    true
}

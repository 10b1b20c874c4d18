//! Requests that reserve in a router at work: `cutline_router_service::ReservationRequest`.
//!
//! - Requests read back the same after they were written, and each is one line.
//! - Every number is within its range, and no filter mixes versions of IP.
//! - An error gives the reason.

use cutline_flow::FlowSelector;
use cutline_router_service::{ReservationAction, ReservationRequest};

pub fn parse(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let request: ReservationRequest = match text.parse() {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    match &request.action {
        ReservationAction::Reserve(_, filters) => {
            assert!((1..=ReservationRequest::MAX_FILTERS).contains(&filters.len()));
            assert!(filters.iter().all(is_possible));
        }
        ReservationAction::AddFilter(filter) | ReservationAction::RemoveFilter(filter) => {
            assert!(is_possible(filter));
        }
        ReservationAction::Change(_) | ReservationAction::Release => {}
    }
    assert!(request.number < 1 << 53, "{request}");
    let line = request.to_string();
    assert!(!line.contains('\n'), "{line:?}");
    assert_eq!(line.parse(), Ok(request));
    true
}

fn is_possible(filter: &FlowSelector) -> bool {
    filter.check().is_ok()
}

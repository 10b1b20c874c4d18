//! Lines that clients send to the resource manager: `cutline_allocation::protocol::AllocationRequest`.
//!
//! - Requests read back the same after they were written; each is one line, which is no longer than allowed.
//! - A report is the same after it was converted for the manager and back.
//! - An error gives the reason.

use cutline_allocation::protocol::{AllocationRequest, LONGEST_LINE, ReportLine};

pub fn parse(bytes: &[u8]) -> bool {
    let request = match AllocationRequest::parse(bytes) {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    if let AllocationRequest::Report { report, .. } = &request {
        assert_eq!(ReportLine::from(&report.report()), *report);
    }
    let line = request.line();
    assert!(!line.contains('\n') && line.len() <= LONGEST_LINE, "{line:?}");
    assert_eq!(AllocationRequest::parse(line.as_bytes()).expect("it was written by us"), request);
    true
}

//! Validity of a table on a host at a time.

use crate::{BaselineDocument, HostFingerprint};
use cutline_text::Printable;

/// The age up to which a table is valid, seconds: 90 days. Drivers and networks change.
pub const LONGEST_AGE: u64 = 90 * 86_400;

/// Reason why a table is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// The table was measured on another host, or on this one with another kernel.
    #[error("it was measured on another host: its {property} is {}, this host's is {}", Printable(.theirs), Printable(.ours))]
    Host {
        /// The property in which both differ.
        property: &'static str,
        /// The value in the table.
        theirs: String,
        /// The value of this host.
        ours: String,
    },
    /// The table is too old.
    #[error("it was measured {days} days ago, and is valid for {} days", LONGEST_AGE / 86_400)]
    Old {
        /// The age of the table.
        days: u64,
    },
    /// The measurements are not complete.
    #[error("its measurements are not complete: run the same command again to continue")]
    Incomplete,
}

impl BaselineDocument {
    /// Checks that the table holds for `host` at `now_s`, seconds since 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    /// The first reason why the table is not valid.
    pub fn check(&self, host: &HostFingerprint, now_s: u64) -> Result<(), Invalid> {
        if let Some((property, theirs, ours)) = self.host.difference(host) {
            return Err(Invalid::Host { property, theirs, ours });
        }
        // A run that was continued has measurements since its beginning.
        let oldest_s = if self.began_s == 0 { self.ended_s } else { self.began_s.min(self.ended_s) };
        let age = now_s.saturating_sub(oldest_s);
        if age > LONGEST_AGE {
            return Err(Invalid::Old { days: age / 86_400 });
        }
        if self.complete { Ok(()) } else { Err(Invalid::Incomplete) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_holds_for_its_host_and_its_time() {
        let host =
            HostFingerprint { name: "a".into(), kernel: "6.1".into(), processor: "x".into(), processors: 2 };
        let table = BaselineDocument {
            host: host.clone(),
            ended_s: 1000,
            complete: true,
            ..BaselineDocument::default()
        };
        assert_eq!(table.check(&host, 1000 + LONGEST_AGE), Ok(()));
        assert_eq!(table.check(&host, 1001 + LONGEST_AGE), Err(Invalid::Old { days: 90 }));
        assert_eq!(table.check(&host, 0), Ok(()), "the clock was set back");
        let continued = BaselineDocument { began_s: 900, ended_s: 2000, ..table.clone() };
        assert_eq!(continued.check(&host, 900 + LONGEST_AGE), Ok(()));
        assert_eq!(continued.check(&host, 901 + LONGEST_AGE), Err(Invalid::Old { days: 90 }));
        let updated = HostFingerprint { kernel: "6.2".into(), ..host.clone() };
        let error = table.check(&updated, 1000).unwrap_err().to_string();
        assert_eq!(error, "it was measured on another host: its kernel is 6.1, this host's is 6.2");
        let partial = BaselineDocument { complete: false, ..table };
        assert_eq!(partial.check(&host, 1000), Err(Invalid::Incomplete));
    }
}

//! The summary of stored results: `cutline_results::Store::read_summary`.
//!
//! - Summaries read back the same after they were written. Each gets the digest of its content, because no other text would
//!   be looked into.
//! - An error names the file.

use super::folder::Folder;
use cutline_results::{Store, seal};

pub fn parse(bytes: &[u8]) -> bool {
    let sealed = str::from_utf8(bytes).map(seal);
    let bytes = sealed.as_ref().map_or(bytes, |text| text.as_bytes());
    Folder::with("summary.json", bytes, |root| {
        let store = Store::open(root);
        let mut summary = match store.read_summary() {
            Ok(summary) => summary,
            Err(error) => {
                assert!(error.to_string().contains("summary.json"), "{error}");
                return false;
            }
        };
        let text = seal(&serde_json::to_string_pretty(&summary).expect("what was read can be written"));
        std::fs::write(root.join("summary.json"), text).expect("the folder is ours");
        let mut again = store.read_summary().expect("what we write can be read");
        // The digest is that of another text.
        (summary.digest, again.digest) = Default::default();
        assert_eq!(again, summary);
        true
    })
}

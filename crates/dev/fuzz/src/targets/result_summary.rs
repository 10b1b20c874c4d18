//! The summary of stored results: `cutline_results::Store::read_summary`.
//!
//! - Summaries, without digests, read back the same after they were written.
//! - An error names the file.

use super::folder::Folder;
use cutline_results::Store;

pub fn parse(bytes: &[u8]) -> bool {
    Folder::with("summary.json", bytes, |root| {
        let store = Store::open(root);
        let mut summary = match store.read_summary() {
            Ok(summary) => summary,
            Err(error) => {
                assert!(error.to_string().contains("summary.json"), "{error}");
                return false;
            }
        };
        // The digest is that of another text.
        (summary.files, summary.digest) = Default::default();
        let text = serde_json::to_string(&summary).expect("what was read can be written");
        std::fs::write(root.join("summary.json"), text).expect("the folder is ours");
        assert_eq!(store.read_summary().expect("what we write can be read"), summary);
        true
    })
}

//! Changes of a user to the experiments: their length, keys, whole scenario files.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

/// Changes to the experiments. Results of changed experiments have folders of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExperimentChanges {
    /// Shorter runs and fewer seeds. The figures keep their shapes; the numbers are less exact.
    pub quick: bool,
    /// Paths of keys and their values, for every experiment, after the settings of its variant.
    pub set: Vec<(String, String)>,
    /// Texts of scenario files that are used instead of those in the program, by their names in `experiments/`.
    pub files: BTreeMap<String, String>,
}

impl ExperimentChanges {
    /// Nothing but the length is changed.
    pub fn quick(quick: bool) -> Self {
        Self { quick, ..Self::default() }
    }

    /// Replaces scenario files of the program by those of a folder that have the same names and other texts. Returns the names of the
    /// replaced files.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn take_files<'t>(
        &mut self,
        texts: impl IntoIterator<Item = (&'t str, &'t str)>,
        folder: &Path,
    ) -> Result<Vec<String>, (String, std::io::Error)> {
        let mut taken = Vec::new();
        for (file, text) in texts {
            if self.files.contains_key(file) {
                continue;
            }
            match std::fs::read_to_string(folder.join(file)) {
                Ok(other) if other != text => {
                    self.files.insert(file.to_owned(), other);
                    taken.push(file.to_owned());
                }
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err((file.to_owned(), error));
                }
                _ => {}
            }
        }
        Ok(taken)
    }

    /// Returns whether the experiments are others than the program's.
    pub fn is_other(&self) -> bool {
        !self.set.is_empty() || !self.files.is_empty()
    }

    /// Returns the suffix of the name of the folder of results.
    pub(crate) fn folder_end(&self) -> String {
        let ends = [(self.quick, "-quick"), (self.is_other(), "-changed")];
        ends.into_iter().filter(|(is_so, _)| *is_so).map(|(_, end)| end).collect()
    }

    /// Returns the changes in words, for the head of a report; empty if nothing but the length is changed.
    pub(crate) fn in_words(&self) -> String {
        let set = self.set.iter().map(|(path, value)| format!("{path} = {value}"));
        set.chain(self.files.keys().map(|name| format!("experiments/{name} as it was on disk")))
            .collect::<Vec<_>>()
            .join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_experiments_have_folders_of_their_own() {
        let set = vec![("seeds".to_owned(), "3".to_owned())];
        let ends = [
            ExperimentChanges::default(),
            ExperimentChanges::quick(true),
            ExperimentChanges { set: set.clone(), ..ExperimentChanges::default() },
            ExperimentChanges { set, ..ExperimentChanges::quick(true) },
        ]
        .map(|changes| changes.folder_end());
        assert_eq!(ends, ["", "-quick", "-changed", "-quick-changed"]);
    }
}

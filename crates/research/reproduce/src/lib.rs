//! The studies that Cutline comes with: the papers' evaluations, and our own.
//!
//! A study is a folder of `experiments/`, whose files are built into this crate, so that the command works without them.
//! `cutline_study` runs and reports it. Here are the platforms that are not the simulator, and the code of irregular
//! claims: measures and charts that the tables of figures do not describe.

mod adaptive;
mod bits;
mod cascade;
mod cheaters;
mod connections;
mod hosts;
mod lab_qos;
mod managed_hosts;
mod modern;
mod platforms;
mod qos;
mod qsock;
mod quanta_lab;
mod redw;
mod testbed;
mod tsq;

pub use platforms::PLATFORMS;

use cutline_study::{Code, FigureText, Study, Texts};
use std::path::{Component, Path};
use std::sync::LazyLock;

include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// The studies, in the order of lists.
static STUDIES: LazyLock<Vec<Study>> = LazyLock::new(|| {
    let data_alone = Code::NONE;
    [
        ("tsq", Code { sections: tsq::sections, ..data_alone }),
        ("redw", redw::CODE),
        ("choices", data_alone),
        ("bits", bits::CODE),
        ("rivals", data_alone),
        ("cheaters", cheaters::CODE),
        ("modern", modern::CODE),
        ("adaptive", adaptive::CODE),
        ("cascade", Code { own: |_: &FigureText, id| cascade::own(id), ..data_alone }),
        ("qos", qos::CODE),
        ("sieve", data_alone),
        ("quanta", data_alone),
        ("lab", data_alone),
        ("lab-qos", lab_qos::CODE),
        ("qsock", qsock::CODE),
        ("quanta-lab", quanta_lab::CODE),
    ]
    .map(|(id, code)| built_in(id, code))
    .into()
});

/// The bottleneck link of a dumbbell.
const BOTTLENECK: &str = "r1->r2";

/// All studies.
pub fn studies() -> &'static [Study] {
    &STUDIES
}

/// The study with this name.
pub fn study(id: &str) -> Option<&'static Study> {
    STUDIES.iter().find(|study| study.id == id)
}

/// Returns whether a study needs real time and root, because some of its experiments are not simulated.
pub fn is_real_time(study: &Study) -> bool {
    study.experiments.iter().any(|experiment| experiment.platform.is_real_time())
}

fn built_in(id: &str, code: Code) -> Study {
    let text = |name: &str| {
        let found = FILES.iter().find(|(file, _)| *file == name);
        found.map(|(_, text)| *text).ok_or_else(|| format!("there is no experiments/{name}"))
    };
    let of_study = |name| text(&format!("{id}/{name}")).unwrap_or_else(|error| panic!("{error}"));
    let texts = Texts {
        folder: id,
        study: of_study("study.toml"),
        figures: of_study("figures.toml"),
        scenario: &|file| {
            let name = name_within(id, file);
            text(&name).map(|text| (name.clone(), text.to_owned()))
        },
    };
    Study::parse(id, &texts, PLATFORMS, code).unwrap_or_else(|error| panic!("studies are tested: {error}"))
}

/// The name of a file of a study, or beside it (`../tsq/video.toml`), within `experiments/`.
fn name_within(study: &str, file: &str) -> String {
    let mut parts = vec![study];
    for component in Path::new(file).components() {
        match component {
            Component::ParentDir => drop(parts.pop()),
            other => parts.extend(other.as_os_str().to_str()),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_and_panel_of_every_study_can_be_measured() {
        for study in studies() {
            assert_eq!(study.check(), Ok(()), "{}", study.id);
        }
    }

    #[test]
    fn files_of_other_studies_have_their_names() {
        assert_eq!(name_within("choices", "../tsq/video.toml"), "tsq/video.toml");
        assert_eq!(name_within("tsq", "audio.toml"), "tsq/audio.toml");
    }
}

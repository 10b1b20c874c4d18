//! The papers that Cutline makes real, as citations.

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Its short name, as in the documents and in `papers` of `study.toml`.
    pub name: &'static str,
    /// Its authors.
    pub authors: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Place of publication.
    pub published: &'static str,
    /// The year.
    pub year: u16,
}

/// The four papers.
pub const PAPERS: [Paper; 4] = [
    Paper {
        name: "TSQ",
        authors: "Mark Claypool, Robert Kinicki, Abhishek Kumar",
        title: "Traffic Sensitive Active Queue Management",
        published: "Proceedings of the 8th IEEE Global Internet Symposium",
        year: 2005,
    },
    Paper {
        name: "RED-Worcester",
        authors: "Vishal Phirke, Mark Claypool, Robert Kinicki",
        title: "RED-Worcester - Traffic Sensitive Active Queue Management",
        published: "Worcester Polytechnic Institute",
        year: 2002,
    },
    Paper {
        name: "QoSockets",
        authors: "Ping Y. Wang, Yechiam Yemini, Danilo Florissi, John Zinky, Patricia Florissi",
        title: "Experimental QoS Performances of Multimedia Applications",
        published: "Proceedings of IEEE INFOCOM, pages 970-979, doi:10.1109/INFCOM.2000.832272",
        year: 2000,
    },
    Paper {
        name: "QUANTA",
        authors: "Sudheer Dharanikota, Kurt Maly",
        title: "QUANTA: Quality of Service Architecture for Native TCP/IP over ATM Networks",
        published: "Proceedings of the 5th IEEE International Symposium on High Performance Distributed Computing, pages 585-594",
        year: 1996,
    },
];

impl Paper {
    /// The paper as a sentence: authors, title, publication, year.
    pub fn citation(&self) -> String {
        let Self { authors, title, published, year, .. } = self;
        format!("{authors}: {title}. {published}, {year}.")
    }
}

/// The citation of one of the four papers by its name; any other text is a citation itself.
pub(crate) fn citation(text: &str) -> String {
    PAPERS.iter().find(|paper| paper.name == text).map_or_else(|| text.to_owned(), Paper::citation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn read(file: &str) -> String {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let text = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Readers who cite Cutline find the papers, and every page about one of them names it.
    #[test]
    fn papers_are_cited_in_readme_and_citation_file() {
        let (readme, citation_file) = (read("README.md"), read("CITATION.cff"));
        for paper in PAPERS {
            assert!(readme.contains(&paper.citation()), "README.md lacks {}", paper.citation());
            assert!(citation_file.contains(paper.title), "CITATION.cff lacks {}", paper.title);
            assert!(citation_file.contains(&format!("year: {}", paper.year)), "{}", paper.name);
            for author in paper.authors.split(", ") {
                let family = author.rsplit(' ').next().unwrap();
                assert!(
                    citation_file.contains(&format!("family-names: {family}")),
                    "CITATION.cff lacks {author}"
                );
            }
        }
        for (page, name) in
            [("tsq", "TSQ"), ("redw", "RED-Worcester"), ("qsock", "QoSockets"), ("qos", "QUANTA")]
        {
            let paper = PAPERS.into_iter().find(|paper| paper.name == name).unwrap();
            assert!(read(&format!("docs/studies/{page}.md")).contains(&paper.citation()), "{page}.md");
        }
    }

    #[test]
    fn other_papers_are_cited_as_they_are_written() {
        assert!(citation("QUANTA").starts_with("Sudheer Dharanikota, Kurt Maly: QUANTA"));
        assert_eq!(citation("A. Author: A Title. 2020."), "A. Author: A Title. 2020.");
    }
}

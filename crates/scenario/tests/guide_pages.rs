//! The pages of the guide that are generated from the code: docs/guide/transports.md lists the parameters of transports and
//! of adaptive hints, and docs/guide/applications.md lists the parameters of applications.
//!
//! `make bless` regenerates them; review the diff.

use cutline_params::{Parameter, Parameters};
use cutline_quality::HintParams;
use cutline_transport::app;
use cutline_transport::endpoint::{Defaults, TransportParams};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const WRITTEN_BY: &str =
    "<!-- Written by crates/scenario/tests/guide_pages.rs from the parameters in the code. -->\n";

const TRANSPORTS: &str = "# Transports

`transport = { protocol = \"tcp\", ... }` accepts the keys below. With `defaults = \"ns-2\"`, keys that are not set have the values
of ns-2.35. `\"off\"` (or `\"none\"`) turns off parameters that can be turned off. TCP's `congestion-control` may also be `\"bbr\"`, in
the laboratory only.
";

const APPLICATIONS: &str = "# Applications

`app = { kind = \"cbr\", ... }` accepts the keys below. Required keys have no default. A value that may be a distribution is a
fixed quantity (`\"58 KB\"`, `\"2 s\"`, `3`) or one of

- `{ distribution = \"exponential\", mean = \"58 KB\" }`,
- `{ distribution = \"lognormal\", median = \"12 KB\", sigma = 1.3 }`: sigma is the standard deviation of the logarithm, up to 10,
- `{ distribution = \"pareto\", minimum = \"4 KB\", shape = 1.2, maximum = \"1 MB\" }`: without `maximum` the values are unbounded,
- `{ distribution = \"fixed\", value = \"58 KB\" }`.

Random times are at most one day.
";

fn transports() -> String {
    let mut page = format!("{WRITTEN_BY}{TRANSPORTS}");
    for name in TransportParams::NAMES {
        let transport = TransportParams::from_values(name, Defaults::Rfc, []).unwrap();
        let _ = write!(page, "\n## {} (`{name}`)\n\n", transport.title());
        table(&mut page, &TransportParams::describe(name).unwrap());
    }
    page += "\n## Adaptive hints\n\n`hint = { adaptive = { ... } }` accepts the keys below, and `report`, the interval between two reports of the receiver.\n\n";
    table(&mut page, &HintParams::describe());
    page
}

fn applications() -> String {
    let mut page = format!("{WRITTEN_BY}{APPLICATIONS}");
    for about in app::describe() {
        let _ = write!(page, "\n## {} (`{}`)\n\nSource: {}.", about.title, about.name, about.source);
        if about.waits_for_delivery {
            page += " It waits for every byte to arrive, so it needs a reliable transport.";
        }
        if about.endless {
            page += " It needs a transport that adapts its rate.";
        }
        page += "\n\n";
        if about.parameters.is_empty() {
            page += "It has no parameters.\n";
        } else {
            table(&mut page, &about.parameters);
        }
    }
    page
}

fn table(page: &mut String, parameters: &[&Parameter]) {
    *page += "| key | meaning | allowed | default | default from |\n| --- | --- | --- | --- | --- |\n";
    for parameter in parameters {
        let Parameter { name, doc, source, .. } = parameter;
        let (allowed, default) = (parameter.allowed(), parameter.default_text());
        let _ = writeln!(page, "| `{name}` | {doc} | {allowed} | {default} | {source} |");
    }
}

fn check(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide").join(name);
    if std::env::var_os("CUTLINE_BLESS").is_some() {
        fs::write(&path, page).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), page, "run `make bless`");
}

#[test]
fn the_page_of_transports_matches_the_parameters() {
    check("transports.md", &transports());
}

#[test]
fn the_page_of_applications_matches_the_parameters() {
    check("applications.md", &applications());
}

#[test]
fn the_defaults_of_every_transport_are_allowed() {
    for name in TransportParams::NAMES {
        for parameter in TransportParams::describe(name).unwrap() {
            assert_eq!(parameter.check(&parameter.default), Ok(()), "{name}: {}", parameter.name);
            assert!(!parameter.doc.is_empty() && !parameter.source.is_empty(), "{name}: {}", parameter.name);
        }
    }
}

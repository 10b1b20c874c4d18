//! The page docs/guide/transports.md: what can be set of each transport, and of a hint that adapts.
//!
//! `make bless` writes it anew; the diff is the review.

use cutline_params::{Parameter, Parameters};
use cutline_quality::HintParams;
use cutline_transport::endpoint::{Defaults, TransportParams};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const HEAD: &str = "<!-- Written by crates/scenario/tests/transports_page.rs from the parameters in the code. -->
# Transports

`transport = { protocol = \"tcp\", ... }` takes the keys below. With `defaults = \"ns-2\"` what is not set has ns-2.35's value
instead. `\"off\"` (or `\"none\"`) switches off what can be switched off. TCP's `congestion-control` may also be `\"bbr\"`, in the laboratory alone.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for name in TransportParams::NAMES {
        let transport = TransportParams::from_values(name, Defaults::Rfc, []).unwrap();
        let _ = write!(page, "\n## {} (`{name}`)\n\n", transport.title());
        table(&mut page, &TransportParams::describe(name).unwrap());
    }
    page += "\n## A hint that adapts\n\n`hint = { adaptive = { ... } }` takes these, and `report`: how often the receiver reports.\n\n";
    table(&mut page, &HintParams::describe());
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

#[test]
fn the_page_is_what_the_parameters_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/transports.md");
    if std::env::var_os("CUTLINE_BLESS").is_some() {
        fs::write(&path, page()).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), page(), "run `make bless`");
}

#[test]
fn every_transport_has_keys_that_are_allowed_by_default() {
    for name in TransportParams::NAMES {
        for parameter in TransportParams::describe(name).unwrap() {
            assert_eq!(parameter.check(&parameter.default), Ok(()), "{name}: {}", parameter.name);
            assert!(!parameter.doc.is_empty() && !parameter.source.is_empty(), "{name}: {}", parameter.name);
        }
    }
}

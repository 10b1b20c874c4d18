//! The guide and the manual list the parameters of the manager.

use cutline_manager::feedback::FeedbackParams;
use cutline_manager::resources::ResourceParams;
use cutline_params::{Parameter, Parameters as _};
use cutline_testbed::repository::root;

#[test]
fn the_guide_and_the_manual_have_every_parameter() {
    let read = |page: &str| std::fs::read_to_string(root().join("docs").join(page)).unwrap();
    let (guide, manual) = (read("guide/manager.md"), read("man/cutlined.toml.5").replace("\\-", "-"));
    for parameter in [ResourceParams::describe(), FeedbackParams::describe()].concat() {
        let Parameter { name, doc, source, .. } = parameter;
        let (allowed, default) = (parameter.allowed(), parameter.default_text());
        let row = format!("| `{name}` | {doc} | {allowed} | {default} | {source} |");
        assert!(guide.lines().any(|line| line == row), "docs/guide/manager.md lacks: {row}");
        let is_named = manual.lines().any(|line| line.strip_prefix(".B ") == Some(*name));
        assert!(is_named && manual.contains(&default), "docs/man/cutlined.toml.5 lacks {name} ({default})");
    }
}

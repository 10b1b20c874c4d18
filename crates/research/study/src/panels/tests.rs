use super::read::panel;
use super::{Draw, Panel};
use crate::claims::Names;
use cutline_config::{Document, read};
use std::collections::BTreeMap;

fn panel_of(text: &str) -> Result<Panel, String> {
    let document = Document::parse(text, "figures.toml").unwrap();
    let (points, rows) = (BTreeMap::new(), BTreeMap::new());
    let names = Names { points: &points, rows: &rows, experiments: &[] };
    read(&document, |root| Some(panel(root, names))).map_err(|errors| errors.to_string())
}

#[test]
fn a_distribution_has_usual_axes() {
    let series = "series = [{ name = 's', of = 'audio', at = { a = '5' } }]";
    let panel = panel_of(&format!("title = 't'\ncdf = 'queuing_ms'\n{series}")).unwrap();
    assert_eq!((panel.x.label.as_str(), panel.y.label.as_str()), ("Queuing delay, ms", "Share"));
    assert_eq!(panel.y.range, Some([0.0, 1.0]));
    let own =
        panel_of(&format!("title = 't'\ny = {{ label = 'CDF' }}\ncdf = 'goodput_kbps'\n{series}")).unwrap();
    assert_eq!((own.x.label.as_str(), own.y.label.as_str()), ("Goodput, kbit/s", "CDF"));
    let bare = panel_of(&format!("title = 't'\nmeasure = 'q'\nalong = [{{ name = 'five' }}]\n{series}"));
    assert_eq!(
        bare.unwrap_err(),
        "figures.toml: key \"y\" is missing: expected an axis such as { label = \"Queuing delay, ms\" }"
    );
}

#[test]
fn series_may_have_places_of_their_own() {
    const PANEL: &str = "title = 't'\ny = { label = 'y' }\nmeasure = 'q'\nof = 'audio'\n";
    const NO_PLACES: &str = "figures.toml: key \"along\" is missing: expected places along the horizontal axis, or \"cdf\" or \
                             \"course\" instead";
    let numbers =
        "series = [{ name = 's', along = [{ x = 5, at = { a = '5' } }, { x = 9, at = { a = '9' } }] }]";
    let panel = panel_of(&format!("{PANEL}{numbers}")).unwrap();
    assert!(panel.categories.is_none() && panel.draw == Draw::Line, "{:?}", panel.draw);
    assert_eq!(panel.series[0].values.len(), 2);
    let names = "series = [{ name = 's', along = [{ name = 'five', at = { a = '5' } }] }]";
    assert_eq!(panel_of(&format!("{PANEL}{names}")).unwrap_err(), NO_PLACES);
    assert_eq!(panel_of(&format!("{PANEL}series = [{{ name = 's' }}]")).unwrap_err(), NO_PLACES);
    let both = panel_of(&format!("{PANEL}along = [{{ name = 'five' }}]\n{numbers}"));
    assert!(both.is_ok(), "its series have all the places: {both:?}");
    let mixed = numbers.replace("series = [", "series = [{ name = 'other' }, ");
    assert_eq!(
        panel_of(&format!("{PANEL}along = [{{ name = 'five' }}]\n{mixed}")).unwrap_err(),
        "figures.toml:6:10: key \"series\": value [...] is not allowed: either all series have numbers along the horizontal axis, or none"
    );
}

#[test]
fn all_errors_of_a_panel_are_reported() {
    let text = "title = 't'\ny = { label = 'y', lgo = true }\nmeasure = 'q'\nof = 'audio'\ndraw = 'lines'\n\
                along = [{ name = 'five' }]\nseries = [{ nam = 's', line = 'bold', seed = 0 }]\n\
                references = [{ label = 'r', x = 1, y = 2 }]\n";
    assert_eq!(
        panel_of(text).unwrap_err().lines().collect::<Vec<_>>(),
        [
            "figures.toml:2:20: key \"y.lgo\" is not known here: did you mean \"log\"?",
            "figures.toml:5:8: key \"draw\": value 'lines' is not allowed: expected a kind of chart: \"bars\", \"dots\", \"line\"; \
             did you mean \"line\"?",
            "figures.toml:7:13: key \"series[1].nam\" is not known here: did you mean \"name\"?",
            "figures.toml:7:31: key \"series[1].line\": value 'bold' is not allowed: expected the emphasis of a line: \"markers\", \
             \"band\", \"thin\"",
            "figures.toml:7:46: key \"series[1].seed\": value 0 is not allowed: expected a whole number of at least 1",
            "figures.toml:8:41: key \"references[1].y\": value 2 is not allowed: \"x\" and \"y\" exclude each other",
        ]
    );
}

#[test]
fn keys_that_exclude_each_other_are_named() {
    const PANEL: &str = "title = 't'\ny = { label = 'y', log = true }\nmeasure = 'q'\nof = 'audio'\nseries = [{ name = 's' }]\n";
    assert_eq!(
        panel_of(&format!("{PANEL}cdf = 'queuing'")).unwrap_err(),
        "figures.toml:6:7: key \"cdf\": value 'queuing' is not allowed: expected a distribution: \"queuing_ms\", \
         \"goodput_kbps\"; did you mean \"queuing_ms\"?"
    );
    assert_eq!(
        panel_of(&format!("{PANEL}cdf = 'queuing_ms'\ndraw = 'dots'")).unwrap_err(),
        "figures.toml:7:8: key \"draw\": value 'dots' is not allowed: \"cdf\" and \"draw\" exclude each other"
    );
    assert_eq!(
        panel_of(&format!("{PANEL}along = [{{ name = 'five' }}, {{ name = 'six', x = 6 }}]")).unwrap_err(),
        "figures.toml:6:9: key \"along\": value [...] is not allowed: either every place has an \"x\", or none"
    );
}

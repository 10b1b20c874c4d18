//! The picture of `cutline top`.

use super::rows::{Row, Tab, digits, rate};
use super::state::{State, View};
use cutline_text::Printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{
    Axis, Block, Cell, Chart, Dataset, GraphType, Paragraph, Row as TableRow, Table, Wrap,
};

const KEYS: &str =
    "Tab/1-6 table  arrows select  Enter history  s sort  r reverse  / filter  p pause  ? help  q quit";
const HELP: &str = "\
Tab, 1 to 6    links, QoS sockets, programs, reservations, flows, hosts
arrows, j, k   select a row; PgUp, PgDn, Home, End as well
Enter          history of the selected flow or link; Esc goes back
s              sort by the next column; r reverses the order
/              filter: rows that contain the text; Enter ends it, Esc clears it
p, space       pause: the picture stays, the history grows
q, Ctrl-C      quit

Waiting times of links are those of the last second. Delays of sockets: p50 is the median since the
beginning, p99 the quantile of the last interval that is compared with the limit. A value in red needs attention.
docs/guide/monitor.md describes every value.";

/// Style of what needs attention.
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Draws the picture.
pub fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let areas = Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]);
    let [head, body, foot] = areas.areas(frame.area());
    frame.render_widget(head_line(state), head);
    let rows = state.rows();
    let selected = state.table.selected().unwrap_or_default().min(rows.len().saturating_sub(1));
    state.table.select(Some(selected));
    if state.view == View::Help {
        frame.render_widget(Paragraph::new(HELP).block(Block::bordered().title("Help")), body);
    } else if rows.is_empty() {
        frame.render_widget(nothing(state), body);
    } else if state.view == View::History {
        draw_history(frame, body, state, &rows[selected]);
    } else {
        draw_table(frame, body, state, &rows);
    }
    frame.render_widget(foot_line(state), foot);
}

fn head_line(state: &State) -> Line<'static> {
    let mut spans = vec![Span::styled("cutline top  ", TITLE)];
    for (number, tab) in Tab::ALL.into_iter().enumerate() {
        let style = if tab == state.tab { SELECTED } else { Style::new() };
        spans.push(Span::styled(format!(" {} {} ", number + 1, tab.title()), style));
    }
    let document = &state.document;
    spans.push(Span::raw(format!("  {} processes publish", document.publishers)));
    if document.hidden_rows > 0 {
        spans.push(Span::raw(format!(", {} rows of other users are hidden", document.hidden_rows)));
    }
    if state.is_paused {
        spans.push(Span::styled("  paused", BAD));
    }
    spans.into()
}

fn foot_line(state: &State) -> Line<'static> {
    if let Some(problem) = &state.problem {
        return Line::styled(Printable(problem).to_string(), BAD);
    }
    if state.is_typing {
        return Line::raw(format!("filter: {}_", Printable(&state.filter)));
    }
    let filter = if state.filter.is_empty() {
        String::new()
    } else {
        format!("filter: {}  ", Printable(&state.filter))
    };
    Line::raw(format!("{filter}{KEYS}"))
}

fn nothing(state: &State) -> Paragraph<'static> {
    let text = if state.filter.is_empty() {
        state.tab.advice().to_owned()
    } else {
        format!("no row contains \"{}\"; Esc clears the filter", Printable(&state.filter))
    };
    Paragraph::new(text).wrap(Wrap { trim: true }).block(Block::bordered().title(state.tab.title()))
}

/// Text of others, without control characters.
fn harmless(text: &str) -> String {
    Printable(text).to_string()
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, state: &mut State, rows: &[Row]) {
    let columns = state.tab.columns();
    let texts: Vec<Vec<String>> =
        rows.iter().map(|row| row.cells.iter().map(|cell| harmless(&cell.text)).collect()).collect();
    let arrow = if state.descending { "v" } else { "^" };
    let title = |number: usize| {
        let mark = if state.sort == Some(number) { arrow } else { "" };
        format!("{}{mark}", columns[number].title)
    };
    let width = |column: usize| {
        let longest = texts.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let most = if columns[column].is_number { longest } else { longest.min(36) };
        Constraint::Length(most.max(title(column).chars().count()) as u16)
    };
    let aligned = |column: usize, text: String| {
        if columns[column].is_number { Text::raw(text).right_aligned() } else { Text::raw(text) }
    };
    let head = (0..columns.len()).map(|column| Cell::new(aligned(column, title(column))));
    let lines = rows.iter().zip(&texts).map(|(row, texts)| {
        let cells = texts.iter().enumerate().map(|(column, text)| {
            let style = if row.cells[column].is_bad { BAD } else { Style::new() };
            Cell::new(aligned(column, text.clone())).style(style)
        });
        TableRow::new(cells.collect::<Vec<_>>())
    });
    let table = Table::new(lines, (0..columns.len()).map(width))
        .header(TableRow::new(head.collect::<Vec<_>>()).style(TITLE))
        .row_highlight_style(SELECTED)
        .block(Block::bordered().title(state.tab.title()));
    frame.render_stateful_widget(table, area, &mut state.table);
}

/// Draws three charts of a row, and its facts.
fn draw_history(frame: &mut Frame<'_>, area: Rect, state: &State, row: &Row) {
    let points = state.history_of(&row.key);
    let facts: Vec<Line<'_>> = row.facts.iter().map(|fact| Line::raw(harmless(fact))).collect();
    let facts_height = (facts.len() as u16 + 2).min(area.height / 3);
    let areas =
        Layout::vertical([Constraint::Length(facts_height), Constraint::Fill(1), Constraint::Fill(1)]);
    let [top, middle, bottom] = areas.areas(area);
    let title =
        harmless(&row.cells.iter().take(3).map(|cell| cell.text.as_str()).collect::<Vec<_>>().join("  "));
    let facts = Paragraph::new(facts).wrap(Wrap { trim: false }).block(Block::bordered().title(title));
    frame.render_widget(facts, top);
    chart(frame, middle, "throughput", &points, 0, rate);
    let [left, right] = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(bottom);
    let ms = |value| format!("{} ms", digits(value));
    let has_loss = points.iter().any(|point| point[2].is_some());
    chart(frame, if has_loss { left } else { bottom }, "delay, 99th percentile", &points, 1, ms);
    if has_loss {
        chart(frame, right, "loss", &points, 2, |value| format!("{} %", digits(value)));
    }
}

fn chart(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    points: &[[Option<f64>; 3]],
    of: usize,
    format: impl Fn(f64) -> String,
) {
    let shown = points.len().min(180);
    let recent = &points[points.len() - shown..];
    let known = recent
        .iter()
        .enumerate()
        .filter_map(|(at, point)| Some((at as f64 - shown as f64 + 1.0, point[of]?)));
    let known: Vec<(f64, f64)> = known.collect();
    let most = known.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let top = if most > 0.0 { most } else { 1.0 };
    let last = known.last().map_or_else(|| "-".to_owned(), |(_, value)| format(*value));
    let data = Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).data(&known);
    let width = (shown.max(2) - 1) as f64;
    let chart = Chart::new(vec![data])
        .block(Block::bordered().title(format!("{title}: {last} (most {})", format(most))))
        .x_axis(Axis::default().bounds([-width, 0.0]).labels([format!("{shown} s ago"), "now".to_owned()]))
        .y_axis(Axis::default().bounds([0.0, top]).labels(["0".to_owned(), format(top)]));
    frame.render_widget(chart, area);
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_monitor::{HostDocument, SocketEntry};
    use cutline_publish::SocketRow;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    fn picture(state: &mut State) -> String {
        let mut terminal = Terminal::new(TestBackend::new(150, 30)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    fn press(state: &mut State, code: KeyCode) {
        state.on_key(KeyEvent::new(code, KeyModifiers::NONE));
    }

    #[test]
    fn every_screen_shows_what_it_is_about() {
        let mut socket = SocketRow { peer: "192.0.2.1:5004".to_owned(), ..SocketRow::default() };
        socket.send.sent_bytes = 1;
        socket.send.effective = "min-rate = 60 messages/s".to_owned();
        socket.send.throughput_bps = Some(2_000_000);
        let (program, socket) = ("vi\x1b[31mdeo".to_owned(), socket.into());
        let entry = SocketEntry { pid: 42, program, socket, ..SocketEntry::default() };
        let mut state = State::new(HostDocument { sockets: vec![entry], ..HostDocument::default() });
        let table = picture(&mut state);
        for text in ["QoS sockets", "192.0.2.1:5004", "2.00 Mbit/s", "(42)", "q quit"] {
            assert!(table.contains(text), "no {text} in\n{table}");
        }
        assert!(!table.contains('\x1b'), "a control character of a program's name");
        press(&mut state, KeyCode::Enter);
        let history = picture(&mut state);
        for text in ["throughput: 2.00 Mbit/s", "min-rate = 60 messages/s", "delay, 99th percentile: -"] {
            assert!(history.contains(text), "no {text} in\n{history}");
        }
        press(&mut state, KeyCode::Char('1'));
        assert!(picture(&mut state).contains("cutline router up"), "what brings a link is said");
        press(&mut state, KeyCode::Char('?'));
        assert!(picture(&mut state).contains("filter: rows that contain the text"));
    }
}

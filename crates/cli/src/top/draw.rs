//! The picture of `cutline top`.

use super::numbers::{digits, rate};
use super::rows::Row;
use super::state::{State, View};
use super::tab::Tab;
use cutline_text::Printable;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{
    Axis, Block, Cell, Chart, Dataset, GraphType, Paragraph, Row as TableRow, Table, Wrap,
};

/// Keys in the last line: the longest that fits.
const KEYS: [&str; 3] = [
    "Tab/1-6 table  arrows select  Enter history  s sort  r reverse  / filter  p pause  ? help  q quit",
    "Enter history  s sort  / filter  p pause  ? help  q quit",
    "? help  q quit",
];
const HELP: &str = "\
Tab, 1 to 6    links, QoS sockets, programs, reservations, flows, hosts
up, down, j, k select a row; PgUp, PgDn, Home, End as well
left, right    other columns, where not all fit
Enter          history of the selected row; Esc goes back
s              sort by the next column; r reverses the order
/              filter: rows that contain the text; Enter ends it, Esc clears it
p, space       pause: the picture stays, the history grows
q, Ctrl-C      quit

Waiting times of links are those of the last second, those of flows of about the last two. Delays of sockets: p50 is the median since the
beginning, p99 the quantile of the last interval that is compared with the limit. A value in red needs attention.
docs/guide/monitor.md describes every value.";

/// Style of values that need attention.
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const TITLE: Style = Style::new().add_modifier(Modifier::BOLD);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// Draws the picture.
pub fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let areas = Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)]);
    let [head, body, foot] = areas.areas(frame.area());
    frame.render_widget(head_line(state, head.width), head);
    let rows = state.rows();
    let selected = state.settle(&rows);
    if state.view == View::Help {
        let help = Paragraph::new(HELP).wrap(Wrap { trim: false }).block(Block::bordered().title("Help"));
        frame.render_widget(help, body);
    } else if rows.is_empty() {
        frame.render_widget(nothing(state), body);
    } else if state.view == View::History {
        draw_history(frame, body, state, &rows[selected]);
    } else {
        draw_table(frame, body, state, &rows);
    }
    frame.render_widget(foot_line(state, foot.width), foot);
}

/// Returns the first line: all tables, or the present one where there is no room for all.
fn head_line(state: &State, width: u16) -> Line<'static> {
    let document = &state.document;
    let mut facts = match document.publishers {
        1 => "1 process publishes".to_owned(),
        publishers => format!("{publishers} processes publish"),
    };
    if document.hidden_rows > 0 {
        facts = format!("{facts}, {} rows of other users are hidden", document.hidden_rows);
    }
    let paused = if state.is_paused { "paused " } else { "" };
    let mut tabs = vec![Span::styled(paused, BAD)];
    for (number, tab) in Tab::ALL.into_iter().enumerate() {
        let style = if tab == state.tab { SELECTED } else { Style::new() };
        tabs.push(Span::styled(format!(" {} {} ", number + 1, tab.title()), style));
    }
    let number = Tab::ALL.iter().position(|tab| *tab == state.tab).unwrap_or_default() + 1;
    let one = Span::styled(format!(" {number} {} ", state.tab.title()), SELECTED);
    let name = Span::styled("cutline top  ", TITLE);
    let named = [std::slice::from_ref(&name), &tabs].concat();
    let lines = [
        [&named[..], &[Span::raw(format!("  {facts}"))]].concat(),
        named,
        tabs,
        vec![Span::styled(paused, BAD), one, Span::raw(format!(" of {}", Tab::ALL.len()))],
    ];
    longest_that_fits(lines.map(Line::from), width)
}

/// Returns the first of these lines, which become shorter, that fits; the last one if none does.
fn longest_that_fits<const N: usize>(lines: [Line<'static>; N], width: u16) -> Line<'static> {
    let fits = lines.iter().position(|line| line.width() <= usize::from(width)).unwrap_or(N - 1);
    lines.into_iter().nth(fits).unwrap_or_default()
}

fn foot_line(state: &State, width: u16) -> Line<'static> {
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
    longest_that_fits(KEYS.map(|keys| Line::raw(format!("{filter}{keys}"))), width)
}

fn nothing(state: &State) -> Paragraph<'static> {
    let text = if state.filter.is_empty() {
        let note = state.tab.note(&state.document).map(|note| format!("\n{}", harmless(&note)));
        format!("{}{}", state.tab.advice(), note.unwrap_or_default())
    } else {
        format!("no row contains \"{}\"; Esc clears the filter", Printable(&state.filter))
    };
    Paragraph::new(text).wrap(Wrap { trim: true }).block(Block::bordered().title(state.tab.title()))
}

/// Text of others, without control characters.
fn harmless(text: &str) -> String {
    Printable(text).to_string()
}

/// Returns text that is cut to a width.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
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
    let wanted: Vec<Width> = (0..columns.len())
        .map(|column| {
            let longest = texts.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
            let of_title = title(column).chars().count();
            if columns[column].is_number {
                Width { least: longest.max(of_title), most: longest.max(of_title) }
            } else {
                let most = longest.min(36).max(of_title);
                Width { least: most.min(LEAST_WORD), most }
            }
        })
        .collect();
    let within = usize::from(area.width.saturating_sub(2));
    let shows_last =
        |from: &usize| fit(&wanted, *from, within).last().is_some_and(|it| it.0 == columns.len() - 1);
    // Further on nothing else would be shown.
    let farthest = (1..columns.len()).find(shows_last).unwrap_or(columns.len() - 1);
    state.first_column = state.first_column.min(farthest);
    let shown = fit(&wanted, state.first_column, within);
    let aligned = |column: usize, text: String| {
        if columns[column].is_number { Text::raw(text).right_aligned() } else { Text::raw(text) }
    };
    let head = shown.iter().map(|(column, width)| Cell::new(aligned(*column, cut(&title(*column), *width))));
    let lines = rows.iter().zip(&texts).map(|(row, texts)| {
        let cells = shown.iter().map(|&(column, width)| {
            let style = if row.cells[column].is_bad { BAD } else { Style::new() };
            Cell::new(aligned(column, cut(&texts[column], width))).style(style)
        });
        TableRow::new(cells.collect::<Vec<_>>())
    });
    let hidden = columns.len() - shown.len();
    let block = Block::bordered().title(state.tab.title());
    let block = if hidden > 0 {
        block.title_bottom(Line::raw(format!("{hidden} more: <- ->")).right_aligned())
    } else {
        block
    };
    let block = match state.tab.note(&state.document) {
        Some(note) => block.title_bottom(harmless(&note)),
        None => block,
    };
    let widths = shown.iter().map(|(_, width)| Constraint::Length(*width as u16));
    let table = Table::new(lines, widths)
        .header(TableRow::new(head.collect::<Vec<_>>()).style(TITLE))
        .row_highlight_style(SELECTED)
        .block(block);
    frame.render_stateful_widget(table, area, &mut state.table);
}

/// The least width of a column of words that are longer.
const LEAST_WORD: usize = 8;

/// Width of a column. Numbers have one width: a number that is cut is another number.
struct Width {
    least: usize,
    most: usize,
}

/// Returns the columns that fit into a width, with their widths: the first one, and others from `from` on. Words are cut first, those of
/// the widest column before others; then columns at the end are left out.
fn fit(wanted: &[Width], from: usize, width: usize) -> Vec<(usize, usize)> {
    let mut shown: Vec<(usize, usize)> = Vec::new();
    let mut taken = 0;
    for column in std::iter::once(0).chain(from.max(1)..wanted.len()) {
        let gap = usize::from(!shown.is_empty());
        if taken + gap + wanted[column].least > width && !shown.is_empty() {
            break;
        }
        taken += gap + wanted[column].least;
        shown.push((column, wanted[column].least));
    }
    // The rest goes to the columns of words, a character at a time to the narrowest that needs more.
    while taken < width {
        let wants = shown.iter_mut().filter(|(column, width)| *width < wanted[*column].most);
        let Some((_, narrowest)) = wants.min_by_key(|(_, width)| *width) else { break };
        *narrowest += 1;
        taken += 1;
    }
    shown
}

/// Returns the number of lines of text that is wrapped at spaces.
fn wrapped_lines(text: &str, width: usize) -> usize {
    let (mut lines, mut taken) = (1, 0);
    for word in text.split(' ') {
        let length = word.chars().count();
        if taken > 0 && taken + 1 + length > width {
            (lines, taken) = (lines + 1, length);
        } else {
            taken += usize::from(taken > 0) + length;
        }
    }
    lines
}

/// The least height of a chart with its frame.
const LEAST_CHART: u16 = 5;

/// Draws three charts of a row, and its facts, as far as there is room for them.
fn draw_history(frame: &mut Frame<'_>, area: Rect, state: &State, row: &Row) {
    let points = state.history_of(&row.key);
    let facts: Vec<String> = row.facts.iter().map(|fact| harmless(fact)).collect();
    let title =
        harmless(&row.cells.iter().take(3).map(|cell| cell.text.as_str()).collect::<Vec<_>>().join("  "));
    let width = usize::from(area.width.saturating_sub(2));
    let lines = facts.iter().map(|fact| wrapped_lines(fact, width)).sum::<usize>() as u16 + 2;
    let facts: Vec<Line<'_>> = facts.into_iter().map(Line::raw).collect();
    let facts = Paragraph::new(facts).wrap(Wrap { trim: false });
    let for_facts = lines.min(area.height.saturating_sub(2 * LEAST_CHART)).max(lines.min(area.height / 3));
    let [first, second, third] = state.tab.charts();
    let has_both = area.height >= 2 * LEAST_CHART && second.is_some();
    let for_facts = if area.height >= 3 * LEAST_CHART { for_facts } else { 0 };
    let for_second = if has_both { Constraint::Fill(1) } else { Constraint::Length(0) };
    let [top, middle, bottom] =
        Layout::vertical([Constraint::Length(for_facts), Constraint::Fill(1), for_second]).areas(area);
    frame.render_widget(facts.block(Block::bordered().title(title)), top);
    chart(frame, middle, first, &points, 0, rate);
    let ms = |value| format!("{} ms", digits(value));
    let has_loss = third.is_some() && points.iter().any(|point| point[2].is_some()) && bottom.width >= 60;
    let halves = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas(bottom);
    let [left, right] = if has_loss { halves } else { [bottom, Rect::ZERO] };
    chart(frame, left, second, &points, 1, ms);
    chart(frame, right, third, &points, 2, |value| format!("{} %", digits(value)));
}

fn chart(
    frame: &mut Frame<'_>,
    area: Rect,
    title: Option<&str>,
    points: &[[Option<f64>; 3]],
    of: usize,
    format: impl Fn(f64) -> String,
) {
    let Some(title) = title.filter(|_| !area.is_empty()) else { return };
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
    use crate::top::rows::tests::BUCKET;
    use cutline_monitor::{HostDocument, ProgramEntry, ReservationState, RouterEntry, SocketEntry};
    use cutline_provision::status::{ReservationStatus, SessionStatus, Status};
    use cutline_publish::SocketRow;
    use cutline_router_service::{FlowStatistics, HostStatistics, Statistics};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    fn picture(state: &mut State) -> String {
        picture_of(state, 150, 30)
    }

    fn picture_of(state: &mut State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    fn press(state: &mut State, code: KeyCode) {
        state.on_key(KeyEvent::new(code, KeyModifiers::NONE));
    }

    #[test]
    fn every_screen_shows_its_subject() {
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
        assert!(
            picture(&mut state).contains("qdisc add dev eth0"),
            "what brings a queue in the kernel is said"
        );
        press(&mut state, KeyCode::Char('?'));
        assert!(picture(&mut state).contains("filter: rows that contain the text"));
    }

    /// The title of a chart fits its values: the waits of a flow are no delays, and a reserved rate is no throughput.
    #[test]
    fn charts_of_each_table_have_titles_of_their_own() {
        let mut router = Statistics::default();
        router.forward.flows.push(FlowStatistics { wait_p99_ms: Some(7.0), ..FlowStatistics::default() });
        router.forward.hosts.push(HostStatistics { mean_wait_ms: 5.0, ..HostStatistics::default() });
        let session = SessionStatus {
            number: 1,
            protocol: 17,
            destination: "192.0.2.1:5000".parse().unwrap(),
            senders: Vec::new(),
            reservations: vec![ReservationStatus {
                interface: Some("eth0".to_owned()),
                next: None,
                style: "WF".to_owned(),
                senders: Vec::new(),
                bucket: BUCKET,
            }],
        };
        let status = Status { sessions: vec![session], ..Status::default() };
        let reservations = ReservationState { status, ..ReservationState::default() };
        let document = HostDocument {
            routers: vec![RouterEntry { router: router.into(), ..RouterEntry::default() }],
            programs: vec![ProgramEntry::default()],
            sockets: vec![SocketEntry::default()],
            reservations: Some(reservations.into()),
            ..HostDocument::default()
        };
        for (number, titles) in [
            ('1', &["sent: -", "wait, 99th percentile: -"][..]),
            ('2', &["throughput: -", "delay, 99th percentile: -"]),
            ('3', &["payload sent: -"]),
            ('4', &["reserved rate: 64.0 kbit/s"]),
            ('5', &["arriving: 0 bit/s", "wait, 99th percentile: 7.00 ms"]),
            (
                '6',
                &["arriving: 0 bit/s", "mean wait since its flows were listed: 5.00 ms", "dropped since its"],
            ),
        ] {
            let mut state = State::new(document.clone());
            press(&mut state, KeyCode::Char(number));
            press(&mut state, KeyCode::Enter);
            let history = picture(&mut state);
            for title in titles {
                assert!(history.contains(title), "{number}: no {title} in\n{history}");
            }
            for wrong in ["throughput", "delay,"] {
                assert_eq!(history.contains(wrong), number == '2', "{number}: {wrong} in\n{history}");
            }
        }
    }

    #[test]
    fn hidden_queues_in_the_kernel_are_reported_with_and_without_other_links() {
        let problem = Some("not permitted".to_owned());
        for routers in [Vec::new(), vec![RouterEntry::default()]] {
            let kernel_queues_problem = problem.clone();
            let mut state =
                State::new(HostDocument { routers, kernel_queues_problem, ..HostDocument::default() });
            let links = picture(&mut state);
            assert!(links.contains("queues in the kernel are not shown: not permitted"), "{links}");
            press(&mut state, KeyCode::Char('2'));
            assert!(!picture(&mut state).contains("not permitted"));
        }
    }

    fn of_sockets() -> State {
        let entry = |pid: u32| {
            let peer = format!("192.0.2.1:{}", 50_000 + pid);
            let mut socket = SocketRow { peer, transport: "udp".to_owned(), ..SocketRow::default() };
            socket.state = "agreed".to_owned();
            socket.send.sent_bytes = 1;
            socket.send.throughput_bps = Some(u64::from(pid) * 111_000_000);
            socket.send.loss_percent = Some(1.25);
            let (program, socket) = ("videoconference".to_owned(), socket.into());
            SocketEntry { pid, program, socket, ..SocketEntry::default() }
        };
        State::new(HostDocument { sockets: vec![entry(1), entry(7)], ..HostDocument::default() })
    }

    /// A number without its first digits would be another number.
    #[test]
    fn numbers_are_whole_or_not_there_on_a_narrow_terminal() {
        let mut state = of_sockets();
        for width in [1, 20, 40, 60, 80, 100, 150] {
            state.first_column = 0;
            let mut seen = 0;
            for _ in 0..state.tab.columns().len() {
                let table = picture_of(&mut state, width, 10);
                let whole = table.matches("111 Mbit/s").count() + table.matches("777 Mbit/s").count();
                assert_eq!(table.matches("bit/s").count(), whole, "{width}\n{table}");
                seen += whole;
                press(&mut state, KeyCode::Right);
            }
            assert!(seen > 0 || width < 25, "{width}: no column shows the rates");
        }
        let table = picture_of(&mut state, 80, 10);
        assert!(table.contains("videoc") && table.contains("…") && table.contains("more: <- ->"), "{table}");
    }

    #[test]
    fn every_size_of_a_terminal_has_the_keys_and_the_table_in_words() {
        for (width, least) in [(20, 0), (80, 6), (150, 6)] {
            let mut state = of_sockets();
            press(&mut state, KeyCode::Char('p'));
            let first = picture_of(&mut state, width, 6);
            assert!(first.contains("QoS sockets") && first.contains("q quit"), "{first}");
            assert!(first.contains("paused"), "{first}");
            let tabs = Tab::ALL.iter().filter(|tab| first.contains(&format!(" {} ", tab.title())));
            assert!(tabs.count() >= least, "{first}");
        }
        for (width, height) in [(1, 1), (2, 40), (20, 3), (300, 2), (20, 10), (80, 24)] {
            for key in [KeyCode::Null, KeyCode::Enter, KeyCode::Char('?')] {
                let mut state = of_sockets();
                press(&mut state, key);
                picture_of(&mut state, width, height);
            }
        }
        let mut state = of_sockets();
        press(&mut state, KeyCode::Enter);
        assert!(picture_of(&mut state, 20, 7).contains("throughput"));
        let history = picture_of(&mut state, 80, 24);
        for text in ["videoconference (1)", "throughput: 111 Mbit/s", "delay, 99th", "loss: 1.25 %"] {
            assert!(history.contains(text), "no {text} in\n{history}");
        }
    }
}

//! State of the picture: the table, the selection, the history, and the effect of keys. No IO.

use super::rows::{Row, rows};
use super::tab::Tab;
use cutline_monitor::HostDocument;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::TableState;
use std::collections::{BTreeMap, VecDeque};

/// Length of the history of a row, s.
pub const HISTORY: usize = 600;

/// Consequence of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Stay,
    Quit,
}

/// Part of the state that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Table,
    /// The history of the selected row.
    History,
    Help,
}

/// The present picture.
pub struct State {
    pub document: HostDocument,
    before: Option<HostDocument>,
    /// The last document, if the picture is paused at an earlier one.
    unseen: Option<HostDocument>,
    pub tab: Tab,
    /// Column by which rows are sorted; `None` for the monitor's order.
    pub sort: Option<usize>,
    pub descending: bool,
    pub filter: String,
    pub is_typing: bool,
    pub is_paused: bool,
    pub view: View,
    pub table: TableState,
    /// Key of the selected row, which may change its place; `None` to select a place.
    selected: Option<String>,
    /// The first column that is shown behind that of the names, where not all fit.
    pub first_column: usize,
    /// Reason why the last document has not come.
    pub problem: Option<String>,
    /// The last points of each row, by table and row.
    history: BTreeMap<(usize, String), VecDeque<[Option<f64>; 3]>>,
}

impl State {
    pub fn new(document: HostDocument) -> Self {
        let mut state = Self {
            document: HostDocument::default(),
            before: None,
            unseen: None,
            tab: Tab::Links,
            sort: None,
            descending: true,
            filter: String::new(),
            is_typing: false,
            is_paused: false,
            view: View::Table,
            table: TableState::default().with_selected(0),
            selected: None,
            first_column: 1,
            problem: None,
            history: BTreeMap::new(),
        };
        if document.links().next().is_none() && !document.sockets.is_empty() {
            state.tab = Tab::Sockets;
        }
        state.take(document);
        state
    }

    /// Takes a new document. While the picture is paused only the history grows.
    pub fn take(&mut self, document: HostDocument) {
        self.problem = None;
        for (number, tab) in Tab::ALL.into_iter().enumerate() {
            let last = self.unseen.as_ref().unwrap_or(&self.document);
            let found = rows(tab, &document, Some(last));
            self.history.retain(|(of, key), _| *of != number || found.iter().any(|row| row.key == *key));
            for row in found {
                let points = self.history.entry((number, row.key)).or_default();
                if points.len() == HISTORY {
                    points.pop_front();
                }
                points.push_back(row.point);
            }
        }
        if self.is_paused {
            self.unseen = Some(document);
        } else {
            let last = std::mem::replace(&mut self.document, document);
            self.before = Some(self.unseen.take().unwrap_or(last));
        }
    }

    /// Notes that the monitor does not answer.
    pub fn fail(&mut self, why: String) {
        self.problem = Some(why);
    }

    /// Returns the rows that are shown, in their order.
    pub fn rows(&self) -> Vec<Row> {
        let filter = self.filter.to_lowercase();
        let matches = |row: &Row| row.cells.iter().any(|cell| cell.text.to_lowercase().contains(&filter));
        let all = rows(self.tab, &self.document, self.before.as_ref());
        let mut shown: Vec<Row> = all.into_iter().filter(|row| filter.is_empty() || matches(row)).collect();
        if let Some(column) = self.sort {
            shown.sort_by(|one, other| {
                let (one, other) = (&one.cells[column], &other.cells[column]);
                let by_value = one.value.unwrap_or(-1.0).total_cmp(&other.value.unwrap_or(-1.0));
                by_value.then_with(|| other.text.cmp(&one.text))
            });
            if self.descending {
                shown.reverse();
            }
        }
        shown
    }

    /// Finds the place of the selected row among the rows that are shown. Returns it, or the nearest place if the row has gone.
    pub fn settle(&mut self, rows: &[Row]) -> usize {
        let place = self.selected.as_ref().and_then(|key| rows.iter().position(|row| row.key == *key));
        let old = self.table.selected().unwrap_or_default();
        let place = place.unwrap_or_else(|| old.min(rows.len().saturating_sub(1)));
        self.table.select(Some(place));
        self.selected = rows.get(place).map(|row| row.key.clone());
        place
    }

    fn select_place(&mut self, place: usize) {
        self.table.select(Some(place));
        self.selected = None;
    }

    /// Returns the history of a row of the present table, oldest first.
    pub fn history_of(&self, key: &str) -> Vec<[Option<f64>; 3]> {
        let number = Tab::ALL.iter().position(|tab| *tab == self.tab).unwrap_or_default();
        let points = self.history.get(&(number, key.to_owned()));
        points.map(|points| points.iter().copied().collect()).unwrap_or_default()
    }

    /// Handles a key.
    pub fn on_key(&mut self, key: KeyEvent) -> Action {
        let is_ctrl_c = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
        if is_ctrl_c {
            return Action::Quit;
        }
        if self.is_typing {
            self.type_filter(key.code);
            return Action::Stay;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc if self.view != View::Table => self.view = View::Table,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('?' | 'h') => self.toggle(View::Help),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('s') => self.sort_by_next(),
            KeyCode::Char('r') => self.descending = !self.descending,
            KeyCode::Char(digit @ '1'..='6') => self.show(Tab::ALL[digit as usize - '1' as usize]),
            KeyCode::Tab => self.change_tab(1),
            KeyCode::BackTab => self.change_tab(Tab::ALL.len() - 1),
            KeyCode::Enter => self.toggle(View::History),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::PageDown => self.select(20),
            KeyCode::PageUp => self.select(-20),
            KeyCode::Left => self.first_column = self.first_column.saturating_sub(1).max(1),
            KeyCode::Right => {
                self.first_column = (self.first_column + 1).min(self.tab.columns().len() - 1);
            }
            KeyCode::Home => self.select_place(0),
            KeyCode::End => self.select(isize::MAX),
            _ => {}
        }
        Action::Stay
    }

    /// Shows a view, or the table again.
    fn toggle(&mut self, view: View) {
        self.view = if self.view == view { View::Table } else { view };
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.select_place(0);
    }

    fn sort_by_next(&mut self) {
        let columns = self.tab.columns().len();
        self.sort = match self.sort {
            None => Some(0),
            Some(column) if column + 1 < columns => Some(column + 1),
            Some(_) => None,
        };
    }

    fn change_tab(&mut self, by: usize) {
        let now = Tab::ALL.iter().position(|tab| *tab == self.tab).unwrap_or_default();
        self.show(Tab::ALL[(now + by) % Tab::ALL.len()]);
    }

    fn show(&mut self, tab: Tab) {
        if self.tab != tab {
            (self.tab, self.sort, self.view, self.first_column) = (tab, None, View::Table, 1);
            self.select_place(0);
        }
    }

    fn select(&mut self, by: isize) {
        let rows = self.rows();
        let now = self.settle(&rows);
        self.select_place(now.saturating_add_signed(by).min(rows.len().saturating_sub(1)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_monitor::{RouterEntry, SocketEntry};
    use cutline_publish::SocketRow;
    use cutline_router_service::Statistics;

    fn document(seconds: u64) -> HostDocument {
        let entry = |pid: u32, program: &str, bps: u64| {
            let mut socket = SocketRow::default();
            socket.send.throughput_bps = Some(bps * seconds);
            socket.send.sent_bytes = 1;
            let (program, socket) = (program.to_owned(), socket.into());
            SocketEntry { pid, program, socket, ..SocketEntry::default() }
        };
        let sockets = vec![entry(1, "video", 10), entry(2, "call", 30), entry(3, "backup", 20)];
        HostDocument { sockets, ..HostDocument::default() }
    }

    fn press(state: &mut State, keys: &str) {
        for letter in keys.chars() {
            let code = match letter {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                letter => KeyCode::Char(letter),
            };
            state.on_key(KeyEvent::new(code, KeyModifiers::NONE));
        }
    }

    fn programs(state: &State) -> Vec<String> {
        state.rows().into_iter().map(|row| row.cells[0].text.clone()).collect()
    }

    #[test]
    fn rows_are_sorted_filtered_and_selected_by_keys() {
        let mut state = State::new(document(1));
        assert_eq!((state.tab, programs(&state).len()), (Tab::Sockets, 3));
        // The seventh column is the rate of sending.
        press(&mut state, "sssssss");
        assert_eq!(programs(&state), ["call (2)", "backup (3)", "video (1)"]);
        press(&mut state, "r");
        assert_eq!(programs(&state), ["video (1)", "backup (3)", "call (2)"]);
        press(&mut state, "/BACK\n");
        assert_eq!(programs(&state), ["backup (3)"]);
        press(&mut state, "jj");
        assert_eq!(state.table.selected(), Some(0));
        assert_eq!(state.on_key(KeyEvent::new(KeyCode::Char('q'), KeyModifiers::NONE)), Action::Quit);
    }

    #[test]
    fn the_selected_row_is_followed_to_its_new_place() {
        let mut state = State::new(document(1));
        let selected = |state: &mut State| {
            let rows = state.rows();
            let place = state.settle(&rows);
            rows.get(place).map(|row| row.cells[0].text.clone())
        };
        press(&mut state, "j");
        assert_eq!(selected(&mut state).unwrap(), "call (2)");
        press(&mut state, "sssssssr");
        assert_eq!((selected(&mut state).unwrap().as_str(), state.table.selected()), ("call (2)", Some(2)));
        let mut later = document(2);
        later.sockets.remove(0);
        state.take(later.clone());
        assert_eq!((selected(&mut state).unwrap().as_str(), state.table.selected()), ("call (2)", Some(1)));
        // The place of a row that has gone is taken by the next one.
        later.sockets.remove(0);
        state.take(later);
        assert_eq!(selected(&mut state).unwrap(), "backup (3)");
        state.take(HostDocument::default());
        assert_eq!(selected(&mut state), None);
    }

    /// Rates are those of each second, also while the picture stays at an earlier one, and after it.
    #[test]
    fn a_pause_does_not_average_the_history() {
        let at = |seconds: u64, bytes: u64| {
            let mut router = Statistics { elapsed_s: seconds as f64, ..Statistics::default() };
            router.forward.sent.bytes = bytes;
            let routers = vec![RouterEntry { pid: 5, uid: 0, router: router.into() }];
            HostDocument { routers, ..HostDocument::default() }
        };
        let mut state = State::new(at(1, 1000));
        press(&mut state, "p");
        state.take(at(2, 2000));
        state.take(at(3, 5000));
        press(&mut state, "p");
        state.take(at(4, 7000));
        let sent: Vec<_> = state.history_of("5/false").into_iter().filter_map(|point| point[0]).collect();
        assert_eq!(sent, [8000.0, 24_000.0, 16_000.0]);
        assert_eq!(state.rows()[0].point[0], Some(16_000.0));
    }

    #[test]
    fn a_paused_picture_stays_and_its_history_grows() {
        let mut state = State::new(document(1));
        press(&mut state, "p");
        for seconds in 2..=5 {
            state.take(document(seconds));
        }
        assert_eq!(state.document, document(1));
        assert_eq!(state.history_of("2/0").iter().map(|point| point[0].unwrap()).sum::<f64>(), 450.0);
        press(&mut state, "p");
        state.take(document(6));
        assert_eq!(state.document, document(6));
        // A row that has gone leaves no history.
        state.take(HostDocument::default());
        assert!(state.history_of("2/0").is_empty());
    }
}

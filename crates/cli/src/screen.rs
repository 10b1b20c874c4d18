//! Filter of text for a terminal.
//!
//! All output goes through [`crate::output`], [`crate::message`] or the output of services ([`crate::service_output`]): clippy refuses other ways
//! (clippy.toml). Control characters of terminals are escaped, other than line ends and [`STYLES`]. A foreign text on a
//! line is a [`Printable`](cutline_text::Printable) in addition, because line ends stay here.

use cutline_text::Screen;
use std::borrow::Cow;

/// The escape sequences of our styles and of clap's: none, bold, underlined, red, green, yellow, cyan.
const STYLES: [&str; 7] = ["\x1b[0m", "\x1b[1m", "\x1b[4m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"];

/// Filter of this command's output to a terminal.
pub const SCREEN: Screen = Screen { styles: &STYLES };

/// Returns an output without control characters of terminals.
pub fn harmless(text: &str) -> Cow<'_, str> {
    SCREEN.escaped(text)
}

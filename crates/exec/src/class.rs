//! The hint of a class of application.
//!
//! | class | hint | as the standard code points |
//! | --- | --- | --- |
//! | `game` | 4 | `CS4` |
//! | `audio`, `video` | 6 | `EF`, `AF41` |
//! | `telemetry` | 8 | `CS5` |
//! | `web` | 10 | `AF21` |
//! | `file` | 16 | `default` |
//!
//! The table is that of the standard code points (`cutline_units::HintTable`), so that unchanged programs and marked ones of
//! the same class get the same treatment.

use cutline_quality::spec::Preset;
use cutline_units::{Dscp, Hint, HintTable};

/// Returns the hint of a class: that of the standard code point for such an application.
pub fn hint_of(class: Preset) -> Hint {
    let code_point = match class {
        Preset::Game => 32,
        Preset::Audio => 46,
        Preset::Video => 34,
        Preset::Telemetry => 40,
        Preset::Web => 18,
        Preset::File => 0,
    };
    HintTable::standard().hint(Dscp::new(code_point).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_params::Choice as _;

    #[test]
    fn hints_are_those_of_the_table_above() {
        let mut hints = Preset::ALL.map(|class| (hint_of(class).level(), class.name()));
        hints.sort_unstable();
        let expected = [(4, "game"), (6, "audio"), (6, "video"), (8, "telemetry"), (10, "web"), (16, "file")];
        assert_eq!(hints, expected);
    }
}

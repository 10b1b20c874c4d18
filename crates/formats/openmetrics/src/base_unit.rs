//! Names and values in base units.

/// A unit of fields, the word in the name of a field, and its base unit.
struct Unit {
    /// The unit as fields state it.
    of_field: &'static str,
    /// Endings of names with the unit.
    endings: &'static [&'static str],
    /// The ending of a metric's name.
    base: &'static str,
    /// Divisor of a value in the field's unit. A division by a power of ten is exact where a multiplication is not.
    divisor: f64,
}

const UNITS: [Unit; 7] = [
    Unit { of_field: "s", endings: &["_s"], base: "_seconds", divisor: 1.0 },
    Unit { of_field: "ms", endings: &["_ms"], base: "_seconds", divisor: 1e3 },
    Unit { of_field: "us", endings: &["_us"], base: "_seconds", divisor: 1e6 },
    Unit { of_field: "bit/s", endings: &["_bps"], base: "_bytes_per_second", divisor: 8.0 },
    Unit { of_field: "%", endings: &["_percent"], base: "_ratio", divisor: 1e2 },
    Unit { of_field: "B", endings: &["_bytes", "bytes"], base: "_bytes", divisor: 1.0 },
    Unit { of_field: "0..1", endings: &[], base: "_ratio", divisor: 1.0 },
];

/// A name in base units, and the factor that converts values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BaseUnit {
    /// The word at the end of the name, or nothing.
    pub ending: &'static str,
    pub divisor: f64,
}

/// Returns the name of a field without its unit, and its base unit.
pub fn base_unit<'n>(name: &'n str, unit: &str) -> (&'n str, BaseUnit) {
    let Some(found) = UNITS.iter().find(|known| known.of_field == unit) else {
        return (name, BaseUnit { ending: "", divisor: 1.0 });
    };
    let stem = found.endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    (stem, BaseUnit { ending: found.base, divisor: found.divisor })
}

impl BaseUnit {
    /// Returns a value of the field in the base unit.
    pub fn value(self, of_field: f64) -> f64 {
        of_field / self.divisor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_its_base_unit() {
        let name = |name, unit| {
            let (stem, base) = base_unit(name, unit);
            (format!("{stem}{}", base.ending), base.value(50.0))
        };
        assert_eq!(name("wait_ms", "ms"), ("wait_seconds".to_owned(), 0.05));
        assert_eq!(name("elapsed_s", "s"), ("elapsed_seconds".to_owned(), 50.0));
        assert_eq!(name("loss_percent", "%"), ("loss_ratio".to_owned(), 0.5));
        assert_eq!(name("rate_bps", "bit/s"), ("rate_bytes_per_second".to_owned(), 6.25));
        assert_eq!(name("bytes", "B"), ("_bytes".to_owned(), 50.0));
        assert_eq!(name("sent", "packets, B"), ("sent".to_owned(), 50.0));
        assert_eq!(name("probability", "0..1"), ("probability_ratio".to_owned(), 50.0));
    }
}

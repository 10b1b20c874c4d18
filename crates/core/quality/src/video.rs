//! Video conference (H.323): TSQ section 2.2, figure 4.
//!
//! Delay: as an audio conference, since people talk to each other in both (section 2.2.1).
//!
//! Throughput, from MOS after Cor 2000 (4 of 5 is 0.8, 3 of 5 is 0.6):
//!
//! | T, kbit/s | 160 | 384 | 512 | 768 | 1500 |
//! | --- | --- | --- | --- | --- | --- |
//! | Qt | 0.6 | 0.8 | 0.85 | 0.9 | 1 |
//!
//! **Departure.** The printed formulas are lost in the text that reached us. We draw straight lines between those
//! points, and from (160, 0.6) to (0, 0), where the text says that quality falls off sharply. Worked: 0.8 at
//! 384 kbit/s, 0.845 at 500 kbit/s (the rate of the paper's video source).

use crate::curve::lines_through;
use cutline_units::Rate;

pub(crate) use crate::audio::delay_quality;

/// (kbit/s, quality) of figure 4.
const POINTS: [(f64, f64); 6] =
    [(0.0, 0.0), (160.0, 0.6), (384.0, 0.8), (512.0, 0.85), (768.0, 0.9), (1500.0, 1.0)];

/// TSQ section 2.2.2, figure 4.
pub(crate) fn throughput_quality(throughput: Rate) -> f64 {
    lines_through(&POINTS, throughput.as_kbps_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_4() {
        // TSQ section 2.2.2.
        let worked = [
            (0, 0.0),
            (80, 0.3),
            (160, 0.6),
            (384, 0.8),
            (500, 0.845_312_5),
            (512, 0.85),
            (768, 0.9),
            (1500, 1.0),
            (4000, 1.0),
        ];
        for (kbps, q) in worked {
            let got = throughput_quality(Rate::from_kbps(kbps));
            assert!((got - q).abs() < 1e-12, "{kbps} kbit/s gives {got}, not {q}");
        }
    }
}

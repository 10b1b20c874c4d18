//! The slope from average to probability.

/// Thresholds, and the drop probability above the second one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slope {
    pub(crate) min_th: f64,
    pub(crate) max_th: f64,
    pub(super) gentle: bool,
    /// The `max_p` from which the gentle slope begins, if it is not the present one: ns-2 computes that slope once.
    pub(super) gentle_from: Option<f64>,
}

impl Slope {
    /// p_b (Floyd and Jacobson 1993 eq. 3; gentle: Floyd 2000).
    #[inline]
    pub(crate) fn probability(self, avg: f64, max_p: f64) -> f64 {
        let Self { min_th, max_th, gentle, gentle_from } = self;
        if avg < min_th {
            0.0
        } else if avg < max_th {
            max_p * (avg - min_th) / (max_th - min_th)
        } else if gentle && avg < 2.0 * max_th {
            let from = gentle_from.unwrap_or(max_p);
            from + (1.0 - from) * (avg - max_th) / max_th
        } else {
            1.0
        }
    }
}

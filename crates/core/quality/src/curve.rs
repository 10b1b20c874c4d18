//! The shapes that quality curves are made of.

/// The straight line between the two points that enclose `x`; level beyond the first and the last.
///
/// The points' x must rise.
pub(crate) fn lines_through(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.partition_point(|&(px, _)| px <= x);
    if after == 0 {
        return points[0].1;
    }
    let (x0, y0) = points[after - 1];
    match points.get(after) {
        Some(&(x1, y1)) => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        None => y0,
    }
}

/// Falls from 1 at `best` to 0 at `worst`, evenly in the logarithm of `x`.
pub(crate) fn falling_log(x: f64, best: f64, worst: f64) -> f64 {
    (1.0 - (x / best).ln() / (worst / best).ln()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_pass_their_points_and_stay_level_outside() {
        let points = [(1.0, 0.0), (2.0, 10.0), (4.0, 20.0)];
        let at = |x| lines_through(&points, x);
        assert_eq!([0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 9.0].map(at), [0.0, 0.0, 5.0, 10.0, 15.0, 20.0, 20.0]);
    }

    #[test]
    fn the_logarithm_falls_equally_per_factor() {
        let at = |x| falling_log(x, 0.1, 10.0);
        for (x, q) in [(0.0, 1.0), (0.01, 1.0), (0.1, 1.0), (1.0, 0.5), (10.0, 0.0), (1e9, 0.0)] {
            assert!((at(x) - q).abs() < 1e-12, "{x} gives {}", at(x));
        }
        assert_eq!(at(f64::INFINITY), 0.0);
    }
}

//! Holm's correction: bounds of p-values when many hypotheses are tested at once.
//!
//! With `m` tests at the level `a`, the smallest p-value must be at most `a / m`, the next `a / (m - 1)`, and so on; from the first
//! that is larger, none is significant (Holm 1979, A simple sequentially rejective multiple test procedure). Then the probability of
//! a single wrong rejection among all of them is at most `a`, whatever the dependence between the tests.
//!
//! Worked: 0.01, 0.04, 0.03 at `a` = 0.05. 0.01 is at most 0.05 / 3; 0.03 is more than 0.05 / 2. So only the first is significant.

/// Returns for each p-value whether it is significant at `level` together with all others.
pub fn holm(p_values: &[f64], level: f64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&one, &other| p_values[one].total_cmp(&p_values[other]));
    let mut significant = vec![false; p_values.len()];
    for (rank, &at) in order.iter().enumerate() {
        let left = p_values.len() - rank;
        // A p-value that is not a number is not significant either.
        if !p_values[at].le(&(level / left as f64)) {
            break;
        }
        significant[at] = true;
    }
    significant
}

#[cfg(test)]
mod tests {
    use super::holm;

    #[test]
    fn the_worked_numbers() {
        assert_eq!(holm(&[0.01, 0.04, 0.03], 0.05), [true, false, false]);
        assert_eq!(holm(&[0.01, 0.024, 0.04], 0.05), [true, true, true]);
        // The second fails, so the third is not looked at, although it would pass alone.
        assert_eq!(holm(&[0.001, 0.03, 0.04], 0.05), [true, false, false]);
        assert_eq!(holm(&[], 0.05), [false; 0]);
        assert_eq!(holm(&[f64::NAN], 0.05), [false]);
    }
}

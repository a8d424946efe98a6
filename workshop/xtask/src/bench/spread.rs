//! Median, least and greatest of a few runs.

/// The spread of one figure over the runs of a case.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Spread {
    /// Of at least one value; the median of an even number is the mean of the two in the middle.
    pub(super) fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Spread { median, min: values[0], max: values[values.len() - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_even_and_single() {
        assert_eq!(Spread::of(vec![3.0, 1.0, 8.0]), Spread { median: 3.0, min: 1.0, max: 8.0 });
        assert_eq!(Spread::of(vec![4.0, 1.0, 8.0, 2.0]), Spread { median: 3.0, min: 1.0, max: 8.0 });
        assert_eq!(Spread::of(vec![5.0]), Spread { median: 5.0, min: 5.0, max: 5.0 });
    }
}

//! The values of repeated runs, and what is told of them.

/// Measured values in ascending order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    sorted: Vec<f64>,
}

impl Samples {
    /// Takes the values of all runs.
    pub(crate) fn new(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        Self { sorted: values }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The middle value, NaN if there is none.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The value below which the share `part` (0 to 1) of all lies, interpolated between its
    /// neighbours; NaN if there are no values.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let Some(last) = self.sorted.len().checked_sub(1) else { return f64::NAN };
        let place = part.clamp(0.0, 1.0) * last as f64;
        let (below, above) = (place.floor(), place.ceil());
        let (low, high) = (self.sorted[below as usize], self.sorted[above as usize]);
        low + (high - low) * (place - below)
    }

    /// How far the values lie apart: the distance of the quartiles as a share of the median.
    pub(crate) fn spread(&self) -> f64 {
        let median = self.median();
        if median == 0.0 { 0.0 } else { (self.quantile(0.75) - self.quantile(0.25)) / median }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        Samples::new(values.to_vec())
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        assert_eq!(samples(&[9.0, 1.0, 5.0]).median(), 5.0);
        assert_eq!(samples(&[4.0, 1.0, 2.0, 9.0]).median(), 3.0);
        assert_eq!(samples(&[7.0]).median(), 7.0);
        assert!(samples(&[]).median().is_nan());
    }

    #[test]
    fn one_outlier_does_not_make_the_spread() {
        let steady = samples(&[10.0, 10.0, 10.0, 10.0, 500.0]);
        assert_eq!((steady.median(), steady.spread()), (10.0, 0.0));
        assert_eq!(samples(&[8.0, 9.0, 10.0, 11.0, 12.0]).spread(), 0.2);
        assert_eq!(samples(&[0.0, 0.0]).spread(), 0.0);
    }
}

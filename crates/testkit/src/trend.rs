//! Whether a figure that is measured again and again grows: a line by least squares, with how sure its slope is.

/// A slope for each unit of x, with the interval in which it lies with a probability of 95 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    pub slope: f64,
    pub low: f64,
    pub high: f64,
    /// The mean of the figures.
    pub mean: f64,
}

/// The least number of groups that say something.
const LEAST: usize = 8;

/// Neighbouring figures depend on each other, which would make the slope look surer than it is. So the line is laid through the means
/// of this many groups.
const GROUPS: usize = 24;

/// Of the normal distribution; the groups are few, so a little more than 1.96.
const STANDARD_ERRORS: f64 = 2.1;

/// The line through these points of x and y; `None` if there are too few.
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let points = grouped(points);
    if points.len() < LEAST {
        return None;
    }
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    if spread == 0.0 {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean)).sum::<f64>() / spread;
    let residual = |(x, y): &(f64, f64)| (y - mean - slope * (x - mean_x)).powi(2);
    let error = (points.iter().map(residual).sum::<f64>() / (count - 2.0) / spread).sqrt();
    let (low, high) = (slope - STANDARD_ERRORS * error, slope + STANDARD_ERRORS * error);
    Some(Trend { slope, low, high, mean })
}

/// The means of consecutive points, in at most `GROUPS` groups.
fn grouped(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(GROUPS).max(1);
    let mean = |group: &[(f64, f64)]| {
        let count = group.len() as f64;
        let sum = group.iter().fold((0.0, 0.0), |sum, (x, y)| (sum.0 + x, sum.1 + y));
        (sum.0 / count, sum.1 / count)
    };
    points.chunks(size).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_slope_and_no_doubt() {
        let points: Vec<(f64, f64)> = (0..100).map(|x| (f64::from(x), 3.0 + 2.0 * f64::from(x))).collect();
        let trend = trend(&points).expect("enough points");
        for slope in [trend.slope, trend.low, trend.high] {
            assert!((slope - 2.0).abs() < 1e-9, "{trend:?}");
        }
    }

    #[test]
    fn noise_without_growth_includes_zero() {
        // A saw without a trend.
        let points: Vec<(f64, f64)> = (0..720).map(|x| (f64::from(x), f64::from(x * 37 % 101))).collect();
        let trend = trend(&points).expect("enough points");
        assert!(trend.low < 0.0 && trend.high > 0.0, "{trend:?}");
    }

    #[test]
    fn growth_under_noise_is_found() {
        let value = |x: i32| f64::from(x * 37 % 101) + f64::from(x);
        let points: Vec<(f64, f64)> = (0..720).map(|x| (f64::from(x), value(x))).collect();
        let trend = trend(&points).expect("enough points");
        assert!(trend.low > 0.9 && trend.high < 1.1, "{trend:?}");
    }

    #[test]
    fn few_points_say_nothing() {
        assert_eq!(trend(&[]), None);
        assert_eq!(trend(&[(1.0, 1.0); 7]), None);
        assert_eq!(trend(&[(1.0, 1.0); 100]), None, "all at one time");
    }
}

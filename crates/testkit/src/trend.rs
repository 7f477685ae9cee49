//! Whether a figure that is measured again and again grows: a line by least squares, with how sure its slope is. What grows to its
//! limit and stays there, such as a cache or a set of threads, has stopped growing.

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

/// A growth over less than half an hour counts as that of half an hour. Without this, one more thread in the last minutes of a short
/// run would be dozens of threads in an hour.
const SHORTEST_HOURS: f64 = 0.5;

/// Whether a figure surely grows by more than `bound` in an hour, and still does so in the second half of the time. The points are
/// hours and values.
pub fn keeps_growing(points: &[(f64, f64)], bound: f64) -> bool {
    let (_, second_half) = points.split_at(points.len() / 2);
    [points, second_half].iter().all(|part| sure_growth(part).is_some_and(|growth| growth > bound))
}

/// By how much the figure surely grows in an hour.
fn sure_growth(points: &[(f64, f64)]) -> Option<f64> {
    let hours = points.last()?.0 - points.first()?.0;
    Some(trend(points)?.low * (hours / SHORTEST_HOURS).min(1.0))
}

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

    /// A figure every ten seconds for some minutes, by the share of the time that is over.
    fn samples(minutes: u32, value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let count = minutes * 6;
        let share = |number: u32| f64::from(number) / f64::from(count);
        (0..count).map(|number| (f64::from(number) / 360.0, value(share(number)))).collect()
    }

    #[test]
    fn a_leak_keeps_growing() {
        assert!(keeps_growing(&samples(90, |share| 125.0 + 15.0 * share), 8.0), "10 MiB in an hour");
        assert!(!keeps_growing(&samples(90, |share| 125.0 + 9.0 * share), 8.0), "6 MiB in an hour");
        assert!(keeps_growing(&samples(5, |share| 42.0 + 20.0 * share), 4.0), "20 threads in five minutes");
    }

    #[test]
    fn what_has_reached_its_limit_does_not_grow() {
        for minutes in [5, 90] {
            let filled = samples(minutes, |share| 23.0 + 39.0 * (2.0 * share).min(1.0));
            assert!(trend(&filled).expect("enough points").low > 4.0, "its slope alone says that it grows");
            assert!(!keeps_growing(&filled, 4.0), "{minutes} minutes");
        }
    }

    #[test]
    fn one_step_in_a_short_run_is_no_growth() {
        let step = samples(5, |share| if share < 0.75 { 40.0 } else { 41.0 });
        assert!(trend(&step[step.len() / 2..]).expect("enough points").low > 4.0, "an hour would have many");
        assert!(!keeps_growing(&step, 4.0));
    }

    #[test]
    fn few_points_say_nothing() {
        assert!(!keeps_growing(&samples(2, |share| 1000.0 * share), 1.0));
        assert_eq!(trend(&[]), None);
        assert_eq!(trend(&[(1.0, 1.0); 7]), None);
        assert_eq!(trend(&[(1.0, 1.0); 100]), None, "all at one time");
    }
}

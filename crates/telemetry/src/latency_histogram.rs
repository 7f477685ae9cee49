//! Counts durations in buckets, for percentiles. Knows no database.
//!
//! There are fifteen buckets for every doubling. A percentile is the middle of its bucket, so it differs by at most 2.5 % from
//! the exact value.

use std::time::Duration;

const PER_DOUBLING: f64 = 15.0;

/// Bytes of an encoded bucket: its number and its count, little endian.
const ENCODED: usize = size_of::<u16>() + size_of::<u32>();

/// The bucket of a duration; 0 is for those too short to measure.
fn bucket(microseconds: i64) -> u16 {
    if microseconds < 1 { 0 } else { 1 + (PER_DOUBLING * (microseconds as f64).log2()) as u16 }
}

/// The geometric middle of a bucket.
fn middle(bucket: u16) -> Duration {
    if bucket == 0 {
        return Duration::ZERO;
    }
    let width = (1.0 / PER_DOUBLING).exp2();
    let lower = (f64::from(bucket - 1) / PER_DOUBLING).exp2();
    Duration::try_from_secs_f64(lower * 2.0 * width / (1.0 + width) / 1e6).unwrap_or(Duration::MAX)
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LatencyHistogram {
    /// By bucket, up to the last one with calls.
    calls: Vec<u64>,
}

impl LatencyHistogram {
    pub(crate) fn count(&mut self, microseconds: i64) {
        self.add(bucket(microseconds), 1);
    }

    fn add(&mut self, bucket: u16, calls: u64) {
        let bucket = usize::from(bucket);
        if self.calls.len() <= bucket {
            self.calls.resize(bucket + 1, 0);
        }
        self.calls[bucket] = self.calls[bucket].saturating_add(calls);
    }

    pub(crate) fn merge(&mut self, other: &LatencyHistogram) {
        if self.calls.len() < other.calls.len() {
            self.calls.resize(other.calls.len(), 0);
        }
        for (calls, more) in self.calls.iter_mut().zip(&other.calls) {
            *calls = calls.saturating_add(*more);
        }
    }

    /// Adds a histogram in the form of [`Self::encode`].
    pub(crate) fn add_encoded(&mut self, bytes: &[u8]) {
        for &[low, high, ref calls @ ..] in bytes.as_chunks::<ENCODED>().0 {
            self.add(u16::from_le_bytes([low, high]), u64::from(u32::from_le_bytes(*calls)));
        }
    }

    /// Encodes the buckets with calls.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (bucket, calls) in (0..=u16::MAX).zip(&self.calls).filter(|(_, calls)| **calls > 0) {
            bytes.extend(bucket.to_le_bytes());
            // More would be fifty thousand calls a second for a day.
            bytes.extend(u32::try_from(*calls).unwrap_or(u32::MAX).to_le_bytes());
        }
        bytes
    }

    /// The duration that `percent` of all calls did not exceed.
    pub(crate) fn percentile(&self, percent: u64) -> Option<Duration> {
        let all: u64 = self.calls.iter().sum();
        let rank = all.saturating_mul(percent).div_ceil(100).max(1);
        let mut passed = 0;
        let found = (0..=u16::MAX).zip(&self.calls).find(|(_, calls)| {
            passed += **calls;
            passed >= rank
        });
        found.map(|(bucket, _)| middle(bucket))
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Durations {
    pub(crate) latency: LatencyHistogram,
    pub(crate) first_token: LatencyHistogram,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_calls_there_is_no_percentile() {
        assert_eq!(LatencyHistogram::default().percentile(50), None);
    }

    #[test]
    fn the_longest_and_the_shortest_durations_have_a_bucket() {
        assert_eq!(middle(bucket(0)), Duration::ZERO);
        assert_eq!(bucket(-5), 0);
        assert_eq!(middle(bucket(1)).as_micros(), 1);
        let longest = middle(bucket(i64::MAX)).as_secs_f64();
        assert!((longest * 1e6 / i64::MAX as f64 - 1.0).abs() < 0.025, "{longest}");
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_the_promised_error(
            // Powers, so that microseconds are as likely as hours.
            durations in prop::collection::vec((0.0..36.0f64).prop_map(|power| power.exp2() as i64), 1..300),
            percent in 1u64..=100,
        ) {
            let mut histogram = LatencyHistogram::default();
            durations.iter().for_each(|duration| histogram.count(*duration));
            let mut sorted = durations;
            sorted.sort_unstable();
            let rank = (percent as usize * sorted.len()).div_ceil(100).max(1);
            let exact = sorted[rank - 1] as f64;
            let told = histogram.percentile(percent).expect("there are calls").as_secs_f64() * 1e6;
            prop_assert!((told / exact - 1.0).abs() <= 0.025, "{} for {}", told, exact);
        }

        #[test]
        fn encoded_histograms_can_be_added(
            first in prop::collection::vec(any::<i64>(), 0..50),
            second in prop::collection::vec(0..5_000_000i64, 0..50),
        ) {
            let of = |durations: &[i64]| {
                let mut histogram = LatencyHistogram::default();
                durations.iter().for_each(|duration| histogram.count(*duration));
                histogram
            };
            let mut sum = LatencyHistogram::default();
            sum.add_encoded(&of(&first).encode());
            sum.add_encoded(&of(&second).encode());
            let mut merged = of(&first);
            merged.merge(&of(&second));
            prop_assert_eq!(&merged, &sum);
            prop_assert_eq!(sum, of(&[first, second].concat()));
        }
    }

    #[test]
    fn a_damaged_encoding_is_read_as_far_as_possible() {
        let mut histogram = LatencyHistogram::default();
        histogram.add_encoded(&[0xff, 0xff, 1, 0, 0, 0, 7, 7]);
        assert_eq!(histogram.percentile(50), Some(Duration::MAX));
    }
}

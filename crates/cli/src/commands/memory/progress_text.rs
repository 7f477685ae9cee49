//! The progress of indexing as text. Knows nothing of terminals.

use std::time::Duration;

use hob_memory::IndexProgress;
use indicatif::{HumanCount, HumanDuration};

/// The minimum time before an estimate of the remaining time.
const EVIDENCE: Duration = Duration::from_secs(2);

/// The progress so far.
#[derive(Debug, Default)]
pub struct IndexProgressState {
    files: u64,
    chunks: u64,
    total: Option<Total>,
    vectors: Option<Vectors>,
}

/// The number of files, as far as they are counted.
#[derive(Debug, Clone, Copy)]
struct Total {
    files: u64,
    is_final: bool,
}

#[derive(Debug, Clone, Copy)]
struct Vectors {
    done: u64,
    of: u64,
    /// When the first was begun.
    since: Duration,
}

impl IndexProgressState {
    /// Records progress at `elapsed` since the start.
    pub fn update(&mut self, progress: &IndexProgress<'_>, elapsed: Duration) {
        match progress {
            IndexProgress::Files(report) => (self.files, self.chunks) = (report.files, report.chunks),
            IndexProgress::Total { files, is_final } => {
                self.total = Some(Total { files: *files, is_final: *is_final });
            }
            IndexProgress::Vectors { done, of } => {
                let since = self.vectors.map_or(elapsed, |vectors| vectors.since);
                self.vectors = Some(Vectors { done: *done, of: *of, since });
            }
            IndexProgress::Warning(_) | IndexProgress::Skipped(_) => {}
        }
    }

    /// The progress of the current step: done and total. The total may still grow.
    pub fn position(&self) -> (u64, Option<u64>) {
        match (self.vectors, self.total) {
            (Some(vectors), _) => (vectors.done, Some(vectors.of)),
            // A file that came after the count is one more.
            (None, Some(total)) => (self.files, Some(total.files.max(self.files))),
            (None, None) => (self.files, None),
        }
    }

    /// The progress as text, with the rate and the remaining time.
    pub fn line(&self, elapsed: Duration) -> String {
        let (done, of) = self.position();
        let is_counted = self.vectors.is_some() || self.total.is_some_and(|total| total.is_final);
        let share = match of {
            Some(of) if is_counted => format!("{} of {}", HumanCount(done), HumanCount(of)),
            Some(of) => format!("{} of {} or more", HumanCount(done), HumanCount(of)),
            None => HumanCount(done).to_string(),
        };
        let (mut line, spent) = match self.vectors {
            Some(vectors) => {
                let spent = elapsed.saturating_sub(vectors.since);
                (format!("{share} vectors, {}/s", rate(done, spent)), spent)
            }
            None => {
                let (chunks, rate) = (HumanCount(self.chunks), rate(self.chunks, elapsed));
                let plural = |count| if count == 1 { "" } else { "s" };
                let (files, passages) = (plural(of.unwrap_or(done)), plural(self.chunks));
                (format!("{share} file{files}, {chunks} passage{passages}, {rate} passages/s"), elapsed)
            }
        };
        if let Some(left) = of.filter(|_| is_counted).and_then(|of| left(done, of, spent)) {
            line += &format!(", {} left", HumanDuration(left));
        }
        line
    }
}

fn rate(count: u64, spent: Duration) -> HumanCount {
    HumanCount((count as f64 / spent.as_secs_f64().max(0.001)) as u64)
}

/// The remaining time at the current rate.
fn left(done: u64, of: u64, spent: Duration) -> Option<Duration> {
    if done == 0 || done >= of || spent < EVIDENCE {
        return None;
    }
    let seconds = spent.as_secs_f64() * (of - done) as f64 / done as f64;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use hob_memory::IndexReport;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn heard(all: &[(IndexProgress<'_>, Duration)]) -> IndexProgressState {
        let mut progress_state = IndexProgressState::default();
        for (progress, elapsed) in all {
            progress_state.update(progress, *elapsed);
        }
        progress_state
    }

    #[test]
    fn the_remaining_time_is_shown_only_when_everything_is_counted() {
        let report = IndexReport { files: 1_500, chunks: 6_000, ..IndexReport::default() };
        let files = (IndexProgress::Files(&report), 3 * SECOND);
        let progress_state = heard(&[files]);
        assert_eq!(progress_state.line(3 * SECOND), "1,500 files, 6,000 passages, 2,000 passages/s");
        assert_eq!(progress_state.position(), (1_500, None));

        let counted = |is_final| (IndexProgress::Total { files: 6_000, is_final }, SECOND);
        let progress_state = heard(&[(IndexProgress::Files(&report), SECOND), counted(false)]);
        assert_eq!(
            progress_state.line(3 * SECOND),
            "1,500 of 6,000 or more files, 6,000 passages, 2,000 passages/s"
        );
        let progress_state = heard(&[counted(true), (IndexProgress::Files(&report), SECOND)]);
        assert_eq!(
            progress_state.line(3 * SECOND),
            "1,500 of 6,000 files, 6,000 passages, 2,000 passages/s, 9 seconds left"
        );
        assert_eq!(
            progress_state.line(SECOND),
            "1,500 of 6,000 files, 6,000 passages, 6,000 passages/s",
            "too early to tell"
        );
    }

    #[test]
    fn files_that_come_after_the_count_do_not_run_over_it() {
        let report = IndexReport { files: 12, ..IndexReport::default() };
        let progress_state = heard(&[
            (IndexProgress::Total { files: 10, is_final: true }, SECOND),
            (IndexProgress::Files(&report), 5 * SECOND),
        ]);
        assert_eq!(progress_state.position(), (12, Some(12)));
        assert_eq!(progress_state.line(5 * SECOND), "12 of 12 files, 0 passages, 0 passages/s");
    }

    #[test]
    fn vectors_have_their_own_clock() {
        let report = IndexReport { files: 9, chunks: 900, ..IndexReport::default() };
        let progress_state = heard(&[
            (IndexProgress::Files(&report), 60 * SECOND),
            (IndexProgress::Vectors { done: 0, of: 900 }, 60 * SECOND),
            (IndexProgress::Vectors { done: 300, of: 900 }, 70 * SECOND),
        ]);
        assert_eq!(progress_state.position(), (300, Some(900)));
        assert_eq!(progress_state.line(70 * SECOND), "300 of 900 vectors, 30/s, 20 seconds left");
    }
}

//! How far indexing is: a line that moves on a terminal; piped, only what went wrong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hob_system::documents::Progress;
use indicatif::{ProgressBar, ProgressStyle};

use crate::output;
use crate::output::number::memory;
use crate::output::text::one_line;

const TICK: Duration = Duration::from_millis(100);

/// How often the figures change; more often nobody can read them.
const REFRESH: Duration = Duration::from_millis(50);

pub struct Bar {
    bar: ProgressBar,
    began: Instant,
    /// When the figures last changed, in milliseconds since the beginning.
    changed: AtomicU64,
}

impl Bar {
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Bar { bar, began: Instant::now(), changed: AtomicU64::new(0) }
    }

    pub fn show(&self, progress: Progress<'_>) {
        match progress {
            Progress::Warning(warning) => {
                let text = format!("{}: {}", warning.path.display(), warning.reason);
                self.bar.suspend(|| output::warning(one_line(&text)));
            }
            Progress::Files(report) if self.is_due() => {
                let seconds = self.began.elapsed().as_secs_f64().max(0.001);
                self.bar.set_message(format!(
                    "{} files, {} passages, {} ({:.0} passages/s, {}/s)",
                    report.files,
                    report.chunks,
                    memory(report.bytes),
                    report.chunks as f64 / seconds,
                    memory((report.bytes as f64 / seconds) as u64),
                ));
            }
            Progress::Vectors { done } if self.is_due() => {
                self.bar.set_message(format!("{done} passages have got vectors"));
            }
            Progress::Files(_) | Progress::Vectors { .. } => {}
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn is_due(&self) -> bool {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let last = self.changed.load(Ordering::Relaxed);
        let refresh = REFRESH.as_millis() as u64;
        let is_due = last == 0 || now >= last + refresh;
        if is_due {
            self.changed.store(now.max(1), Ordering::Relaxed);
        }
        is_due
    }
}

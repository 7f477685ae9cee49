//! Shows the progress of indexing: a bar on a terminal, elsewhere an occasional line. Problems are printed immediately.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hob_memory::IndexProgress;
use indicatif::{ProgressBar, ProgressStyle};

use super::progress_text::IndexProgressState;
use crate::output;
use crate::output::screen::ActiveBar;
use crate::output::text::one_line;

const TICK: Duration = Duration::from_millis(100);

/// How often the numbers change on a terminal. Faster changes are unreadable.
const REFRESH: Duration = Duration::from_millis(50);

/// How often a line is printed elsewhere, such as in a log. Shorter work prints none.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// How many skipped files the summary names.
const MAX_SKIPPED_NAMES: usize = 3;

/// Follows the names if there are more.
const MORE_SKIPPED: &str = "…; 'hob memory list --skipped' shows all";

/// Which files are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedFiles {
    /// Files that could not be read.
    Broken,
    /// Skipped files, too.
    Skipped,
}

impl From<u8> for NamedFiles {
    /// From the number of `-v` flags.
    fn from(verbose: u8) -> Self {
        if verbose == 0 { NamedFiles::Broken } else { NamedFiles::Skipped }
    }
}

pub struct IndexBar {
    named: NamedFiles,
    /// How often it changes.
    every: Duration,
    began: Instant,
    state: Mutex<IndexBarState>,
}

#[derive(Default)]
struct IndexBarState {
    /// `None` where there is no terminal, and at the end.
    bar: Option<ActiveBar>,
    progress_state: IndexProgressState,
    /// When the figures were last shown, since the beginning.
    shown: Duration,
    /// Skipped files and why, as many as the summary shows.
    skipped: Vec<String>,
    is_over: bool,
}

impl IndexBar {
    pub fn new(named: NamedFiles) -> Self {
        let (bar, every) =
            if io::stderr().is_terminal() { (Some(bar()), REFRESH) } else { (None, LINE_EVERY) };
        IndexBar {
            named,
            every,
            began: Instant::now(),
            state: Mutex::new(IndexBarState { bar, ..IndexBarState::default() }),
        }
    }

    pub fn show(&self, progress: IndexProgress<'_>) {
        match progress {
            IndexProgress::Warning(warning) => {
                return output::warning(one_line(&format!("{}: {}", warning.path.display(), warning.reason)));
            }
            IndexProgress::Skipped(skipped) => {
                self.remember_skipped(&skipped.path, &skipped.reason);
                if self.named == NamedFiles::Skipped {
                    let text = format!("skipped {}: {}", skipped.path.display(), skipped.reason);
                    output::note(one_line(&text));
                }
                return;
            }
            _ => {}
        }
        let elapsed = self.began.elapsed();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.progress_state.update(&progress, elapsed);
        if state.is_over || elapsed < state.shown + self.every {
            return;
        }
        state.shown = elapsed;
        let line = state.progress_state.line(elapsed);
        let (done, of) = state.progress_state.position();
        let Some(bar) = &state.bar else {
            output::note(line);
            return;
        };
        if let Some(of) = of {
            bar.set_length(of);
        }
        bar.set_position(done);
        bar.set_message(line);
    }

    fn remember_skipped(&self, path: &Path, reason: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.skipped.len() {
            MAX_SKIPPED_NAMES => state.skipped.push(MORE_SKIPPED.to_owned()),
            count if count > MAX_SKIPPED_NAMES => {}
            _ => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                state.skipped.push(one_line(&format!("{} ({reason})", name.to_string_lossy())));
            }
        }
    }

    /// Returns some skipped files for the summary of a round, and starts the next round.
    pub fn take_skipped(&self) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.skipped).join(", ")
    }

    /// Removes the bar permanently.
    pub fn clear(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_over = true;
        state.bar = None;
    }
}

fn bar() -> ActiveBar {
    let bar = ActiveBar::new(ProgressBar::no_length());
    if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} [{bar:24}] {wide_msg}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.enable_steady_tick(TICK);
    bar
}

//! The progress of a download.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output;
use crate::output::screen::ActiveBar;

/// A download: a bar with bytes, rate and time left on a terminal, a line for each step elsewhere.
#[derive(Clone)]
pub struct Download {
    name: Cow<'static, str>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// The step that was printed last.
    printed: &'static str,
    /// Created by the first report: before it, there may be nothing to download.
    bar: Option<ActiveBar>,
}

impl Download {
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Download { name: name.into(), state: Arc::default() }
    }

    /// Shows the progress of a step.
    pub fn show(&self, step: &'static str, done: u64, total: Option<u64>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = std::mem::replace(&mut state.printed, step) != step;
        if !io::stderr().is_terminal() {
            if is_new {
                output::note(format_args!("{}: {step}", self.name));
            }
            return;
        }
        // A finished step removes its bar.
        if total.is_some_and(|total| done >= total) {
            state.bar = None;
            return;
        }
        let bar = state.bar.get_or_insert_with(|| bar(self.name.clone()));
        bar.set_message(step);
        if let Some(total) = total {
            bar.set_length(total);
        }
        bar.set_position(done);
    }

    /// Removes the bar.
    pub fn clear(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).bar = None;
    }
}

fn bar(name: Cow<'static, str>) -> ActiveBar {
    let bar = ActiveBar::new(ProgressBar::no_length().with_prefix(name));
    let template = "{prefix:.cyan} {msg} [{bar:24}] {bytes}/{total_bytes} {bytes_per_sec:.dim} {eta:.dim}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

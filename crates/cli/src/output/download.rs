//! How far a download is.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// A download: a bar with bytes, rate and time left on a terminal, a line for each step elsewhere.
#[derive(Clone)]
pub struct Download {
    bar: ProgressBar,
    /// The step that was told last, where there is no terminal.
    told: Arc<Mutex<&'static str>>,
}

impl Download {
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        // Drawn from the first report on: until then it is not known whether there is anything to do.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_prefix(name);
        let template =
            "{prefix:.cyan} {msg} [{bar:24}] {bytes}/{total_bytes} {bytes_per_sec:.dim} {eta:.dim}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        Download { bar, told: Arc::default() }
    }

    /// Shows how far a step is.
    pub fn show(&self, step: &'static str, done: u64, total: Option<u64>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = std::mem::replace(&mut *told, step) != step;
        if !io::stderr().is_terminal() {
            if is_new {
                output::note(format_args!("{}: {step}", self.bar.prefix()));
            }
            return;
        }
        if is_new {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.bar.set_message(step);
        }
        if let Some(total) = total {
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
        let is_complete = total.is_some_and(|total| done >= total);
        if is_complete {
            self.bar.set_draw_target(ProgressDrawTarget::hidden());
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

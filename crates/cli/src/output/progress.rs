//! A sign of life while something takes its time. Only on a terminal; piped, there is nothing to see.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const TICK: Duration = Duration::from_millis(100);

/// A spinner on stderr. It goes away with its value.
pub struct Spinner(ProgressBar);

impl Spinner {
    pub fn start(message: impl Into<Cow<'static, str>>) -> Self {
        let bar = ProgressBar::new_spinner().with_message(message);
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg:.dim}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Spinner(bar)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

//! A spinner while something takes time. Shown on a terminal only.

use std::borrow::Cow;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::screen::ActiveBar;
use crate::output::text::one_line;

const TICK: Duration = Duration::from_millis(100);

/// A spinner on stderr. Dropping it removes it.
pub struct Spinner {
    _bar: ActiveBar,
}

impl Spinner {
    pub fn start(message: impl Into<Cow<'static, str>>) -> Self {
        let message = one_line(&message.into());
        let bar = ActiveBar::new(ProgressBar::new_spinner().with_message(message));
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg:.dim}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Spinner { _bar: bar }
    }
}

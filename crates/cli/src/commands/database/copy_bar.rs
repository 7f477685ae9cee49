//! The progress of a copy: a bar on a terminal, nothing elsewhere.

use hob_db::copy::{CopyProgress, CopyStep};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::screen::ActiveBar;

pub struct CopyBar {
    bar: ActiveBar,
}

impl CopyBar {
    pub fn start() -> Self {
        let bar = ActiveBar::new(ProgressBar::new(0));
        if let Ok(style) =
            ProgressStyle::with_template("{msg:.dim} {wide_bar:.cyan/dim} {human_pos}/{human_len} rows {eta}")
        {
            bar.set_style(style);
        }
        CopyBar { bar }
    }

    pub fn show(&self, progress: &CopyProgress<'_>) {
        let CopyProgress { table, rows, total, step } = progress;
        let step = match step {
            CopyStep::Copying => "copying",
            CopyStep::Comparing => "comparing",
        };
        self.bar.set_length(*total);
        self.bar.set_position(*rows);
        self.bar.set_message(format!("{step} {table}"));
    }
}

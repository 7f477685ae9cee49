//! The progress of a copy: a bar on a terminal, nothing elsewhere.

use std::cell::RefCell;

use hob_db::copy::{CopyProgress, CopyStep};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::screen::ActiveBar;

/// Dropping it removes the bar.
#[derive(Default)]
pub struct CopyBar {
    /// Created by the first rows.
    bar: RefCell<Option<ActiveBar>>,
}

impl CopyBar {
    pub fn show(&self, progress: &CopyProgress<'_>) {
        let CopyProgress { table, rows, total, step } = progress;
        let step = match step {
            CopyStep::Copying => "copying",
            CopyStep::Comparing => "comparing",
        };
        let mut bar = self.bar.borrow_mut();
        let bar = bar.get_or_insert_with(new_bar);
        bar.set_length(*total);
        bar.set_position(*rows);
        bar.set_message(format!("{step} {table}"));
    }
}

fn new_bar() -> ActiveBar {
    let bar = ActiveBar::new(ProgressBar::new(0));
    if let Ok(style) =
        ProgressStyle::with_template("{msg:.dim} {wide_bar:.cyan/dim} {human_pos}/{human_len} rows {eta}")
    {
        bar.set_style(style);
    }
    bar
}

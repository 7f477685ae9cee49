//! A download on a terminal: a bar for every layer.

use std::collections::HashMap;
use std::time::Duration;

use hob_engines::ollama::OllamaPullProgress;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::display::{MAX_LAYERS, PullDisplay, short};
use crate::output::text::one_line;

const BAR: &str = "{prefix:.cyan} {bar:30.green/dim} {binary_bytes:>11} of {binary_total_bytes:<11} \
                   {binary_bytes_per_sec:.dim} {eta:.dim}";
const STATUS: &str = "{spinner:.cyan} {msg:.dim}";

pub struct LayerBars {
    all: MultiProgress,
    status: ProgressBar,
    layers: HashMap<String, ProgressBar>,
}

impl Default for LayerBars {
    fn default() -> Self {
        let all = MultiProgress::new();
        let status = all.add(ProgressBar::new_spinner().with_style(style(STATUS)));
        status.enable_steady_tick(Duration::from_millis(100));
        LayerBars { all, status, layers: HashMap::new() }
    }
}

/// Falls back to the default style if the template is invalid.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("━━─")
}

impl PullDisplay for LayerBars {
    fn step(&mut self, step: &OllamaPullProgress) {
        self.status.set_message(one_line(&step.status));
        let (Some(digest), Some(total)) = (&step.digest, step.total) else { return };
        if !self.layers.contains_key(digest) {
            if self.layers.len() >= MAX_LAYERS {
                return;
            }
            let bar = ProgressBar::new(total).with_style(style(BAR)).with_prefix(short(digest));
            let bar = self.all.insert_before(&self.status, bar);
            // Bytes from an earlier attempt do not count for the speed.
            bar.set_position(step.completed.unwrap_or(0));
            bar.reset_eta();
            self.layers.insert(digest.clone(), bar);
        }
        if let Some(bar) = self.layers.get(digest) {
            bar.set_length(total);
            bar.set_position(step.completed.unwrap_or(0).min(total));
            if step.completed == Some(total) {
                bar.abandon();
            }
        }
    }

    fn clear(&mut self) {
        self.status.finish_and_clear();
        for bar in self.layers.values() {
            bar.abandon();
        }
    }
}

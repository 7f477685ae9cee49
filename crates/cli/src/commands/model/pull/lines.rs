//! A download whose progress is piped: a line for every quarter of a layer.

use std::collections::HashMap;

use hob_engines::ollama::OllamaPullProgress;

use super::display::{MAX_LAYERS, PullDisplay, short};
use crate::output;
use crate::output::number::memory;
use crate::output::text::one_line;

#[derive(Default)]
pub struct LayerLines {
    last_status: String,
    /// How many quarters of each layer were printed.
    layers: HashMap<String, u64>,
}

impl LayerLines {
    /// The line for a step; `None` if the progress is too small.
    fn news(&mut self, step: &OllamaPullProgress) -> Option<String> {
        let (Some(digest), Some(total)) = (&step.digest, step.total) else {
            let status = one_line(&step.status);
            let is_new = status != self.last_status;
            self.last_status.clone_from(&status);
            return is_new.then_some(status);
        };
        let quarters = step.completed.unwrap_or(0).saturating_mul(4).checked_div(total).unwrap_or(4).min(4);
        let has_room = self.layers.len() < MAX_LAYERS;
        match self.layers.get_mut(digest) {
            Some(printed) if *printed >= quarters => return None,
            Some(printed) => *printed = quarters,
            None if !has_room => return None,
            None => {
                self.layers.insert(digest.clone(), quarters);
            }
        }
        Some(format!("{}: {} % of {}", short(digest), quarters * 25, memory(total)))
    }
}

impl PullDisplay for LayerLines {
    fn step(&mut self, step: &OllamaPullProgress) {
        if let Some(line) = self.news(step) {
            output::stderr_line(line);
        }
    }

    fn clear(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(digest: &str, total: u64, completed: Option<u64>) -> OllamaPullProgress {
        OllamaPullProgress {
            status: "pulling".into(),
            digest: Some(digest.into()),
            total: Some(total),
            completed,
        }
    }

    fn status(status: &str) -> OllamaPullProgress {
        OllamaPullProgress { status: status.into(), digest: None, total: None, completed: None }
    }

    #[test]
    fn a_long_download_takes_few_lines() {
        let mut lines = LayerLines::default();
        let mut steps = vec![status("pulling manifest"), status("pulling manifest")];
        steps.extend((0..=1000).map(|done| layer("sha256:0123456789abcdef", 1000, Some(done))));
        steps.push(layer("sha256:ffff", 0, None));
        steps.push(status("success\u{1b}[2J"));
        let printed: Vec<String> = steps.iter().filter_map(|step| lines.news(step)).collect();
        let expected = [
            "pulling manifest",
            "0123456789ab: 0 % of 1 KB",
            "0123456789ab: 25 % of 1 KB",
            "0123456789ab: 50 % of 1 KB",
            "0123456789ab: 75 % of 1 KB",
            "0123456789ab: 100 % of 1 KB",
            "ffff: 100 % of 0 B",
            "success[2J",
        ];
        assert_eq!(printed, expected);
    }

    #[test]
    fn a_server_that_invents_layers_is_not_believed_for_ever() {
        let mut lines = LayerLines::default();
        let steps = (0..10_000).map(|number| layer(&number.to_string(), 1, None));
        assert_eq!(steps.filter_map(|step| lines.news(&step)).count(), MAX_LAYERS);
    }
}

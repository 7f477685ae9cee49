//! What shows a download of Ollama, on a terminal or in a pipe.

use hob_engines::ollama::OllamaPullProgress;

use crate::output::text::one_line;

/// Layers that are shown; a model has about five.
pub(super) const MAX_LAYERS: usize = 64;

/// Shows the steps of a download.
pub(super) trait PullDisplay {
    fn step(&mut self, step: &OllamaPullProgress);
    fn clear(&mut self);
}

/// The first characters of a layer's checksum, which are enough to tell it from others.
pub(super) fn short(digest: &str) -> String {
    one_line(digest.strip_prefix("sha256:").unwrap_or(digest)).chars().take(12).collect()
}

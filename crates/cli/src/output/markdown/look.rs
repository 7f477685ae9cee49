//! How a terminal shows text: its width, and whether it has colours.

use anstyle::Style;

/// Narrower than this, nothing is wrapped any further.
pub(super) const NARROWEST: usize = 20;

/// The terminal that shows the text.
#[derive(Debug, Clone, Copy)]
pub struct MarkdownLook {
    pub(super) width: usize,
    pub(super) has_colours: bool,
}

impl MarkdownLook {
    /// Columns of the terminal, and whether it has colours. Without colours, Markdown's own signs are
    /// shown.
    pub fn new(width: usize, has_colours: bool) -> Self {
        MarkdownLook { width: width.max(NARROWEST), has_colours }
    }

    pub(super) fn style(self, style: Style) -> Style {
        if self.has_colours { style } else { Style::new() }
    }
}

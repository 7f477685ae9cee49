//! Parses the kinds of Markdown that models write.

use pulldown_cmark::{Options, Parser};

/// Replaces the colon after a bracket. It does not occur in printable text.
pub(super) const COLON: &str = "\u{1}";

/// The text for the parser, with unchanged positions. Definitions of link addresses would be hidden and would change
/// text that was already shown, so they are disabled.
pub(super) fn parsable(source: &str) -> String {
    source.replace("]:", &format!("]{COLON}"))
}

/// Reads the kinds of Markdown that models write.
pub(super) fn parser(parsable: &str) -> Parser<'_> {
    Parser::new_ext(
        parsable,
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS,
    )
}

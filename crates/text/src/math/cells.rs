//! The alignment of cells in matrices and aligned lines.

/// How the cells of a table are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellAlignment {
    Center,
    Left,
    /// Right and left in turn, so that the signs between them are below each other.
    Alternating,
}

impl CellAlignment {
    /// The attribute of a cell.
    pub(super) fn class(self, column: usize) -> &'static str {
        match self {
            CellAlignment::Center => "",
            CellAlignment::Left => " class=\"left\"",
            CellAlignment::Alternating if column.is_multiple_of(2) => " class=\"right\"",
            CellAlignment::Alternating => " class=\"left\"",
        }
    }
}

//! Formulas: the subset of LaTeX that models write, as MathML. Knows nothing of Markdown.
//!
//! The MathML is safe by construction: names of elements and attributes are constants of this module, and every character of the
//! formula is escaped. A formula with anything unknown has no MathML, and its source is shown.

mod cells;
mod letters;
mod parser;
mod symbols;

use self::parser::FormulaParser;
pub(crate) use self::parser::FormulaPlace;
use crate::escape::escaped;

/// Bytes of a formula. A longer one is shown as its source.
const MAX_FORMULA: usize = 8 << 10;

/// The formula as MathML; `None` if a part of it is unknown or it is malformed.
pub(crate) fn math_ml(source: &str, place: FormulaPlace) -> Option<String> {
    if source.len() > MAX_FORMULA || source.trim().is_empty() {
        return None;
    }
    let content = FormulaParser::new(source, place).formula()?;
    let display = match place {
        FormulaPlace::Line => "",
        FormulaPlace::Block => " display=\"block\"",
    };
    Some(format!("<math{display} alttext=\"{}\">{content}</math>", escaped(source.trim())))
}

#[cfg(test)]
#[path = "math_tests.rs"]
mod tests;

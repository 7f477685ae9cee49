//! Formulas: the subset of LaTeX that models write, as MathML. Knows nothing of Markdown.
//!
//! The MathML is safe by construction: names of elements and attributes are constants of this module, and every character of the
//! formula is escaped. A formula with anything unknown has no MathML, and its source is shown.

mod letters;
mod parser;
mod symbols;

use self::parser::FormulaParser;

/// Bytes of a formula. A longer one is shown as its source.
const MAX_FORMULA: usize = 8 << 10;

/// Where a formula stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormulaPlace {
    /// In a line of text.
    Line,
    /// On its own.
    Block,
}

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

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
#[path = "math_tests.rs"]
mod tests;

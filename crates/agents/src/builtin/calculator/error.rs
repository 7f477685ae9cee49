//! The errors of the calculator.

use thiserror::Error;

pub(super) const MAX_CHARACTERS: usize = 1_000;

/// The names of all functions. A test compares them with the table of functions.
pub(super) const FUNCTION_NAMES: &str =
    "sqrt, abs, round, floor, ceil, min, max, log, ln, log10, exp, sin, cos, tan, factorial";

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CalculationError {
    #[error("the expression is empty")]
    Empty,
    #[error("the expression is longer than {MAX_CHARACTERS} characters")]
    TooLong,
    #[error("the expression is nested too deeply")]
    TooDeep,
    #[error("unexpected character '{0}'; use numbers, + - * / // % ** and parentheses")]
    Character(char),
    #[error("'{0}' is not a number")]
    Number(String),
    #[error("unknown name '{0}'; known are pi, e, {FUNCTION_NAMES}")]
    Name(String),
    #[error("'{0}' is a function: write {0}(...)")]
    FunctionWithoutArguments(String),
    #[error("{function} takes {expected}, not {given}")]
    ArgumentCount { function: &'static str, expected: &'static str, given: usize },
    #[error("expected {expected}, found {found}")]
    Unexpected { expected: &'static str, found: String },
    #[error("division by zero")]
    DivisionByZero,
    #[error("the result is too large")]
    TooLarge,
    #[error("{0}")]
    Undefined(&'static str),
}

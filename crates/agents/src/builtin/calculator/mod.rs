//! `calculator`: arithmetic that is exact if possible, and always bounded.
//!
//! Has no variables, no assignment and no loops, so everyone may use it.

mod error;
mod exact;
mod functions;
mod lexer;
mod parser;
mod value;

use std::sync::LazyLock;

use async_trait::async_trait;
use hob_core::{Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value as Json, json};

pub use error::CalculationError;
use error::{FUNCTION_NAMES, MAX_CHARACTERS};

/// The value of an expression as text, without rounding errors of binary fractions.
pub fn evaluate(expression: &str) -> Result<String, CalculationError> {
    if expression.chars().nth(MAX_CHARACTERS).is_some() {
        return Err(CalculationError::TooLong);
    }
    if expression.trim().is_empty() {
        return Err(CalculationError::Empty);
    }
    parser::evaluate(expression).map(|value| value.to_string())
}

#[derive(Debug, Default)]
pub struct Calculator;

#[derive(Deserialize)]
struct Arguments {
    expression: String,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec::new(
        "calculator",
        &format!(
            "Evaluates arithmetic. Whole numbers and decimals are exact. Operators: + - * / // (floor division) % (remainder) ** \
             or ^ (power), parentheses. Constants: pi, e. Functions: {FUNCTION_NAMES}. Angles are in radians."
        ),
        Reach::Pure,
        object_schema(
            json!({
                "expression": { "type": "string", "description": "Such as (3 + 4) * 2 ** 10 or sqrt(2) / 3" }
            }),
            &["expression"],
        ),
    )
});

#[async_trait]
impl Tool for Calculator {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    async fn call(&self, arguments: Json) -> Result<String, ToolError> {
        let Arguments { expression } = tool_arguments::read(arguments)?;
        evaluate(&expression).map_err(ToolError::new)
    }
}

#[cfg(test)]
#[path = "calculator_tests.rs"]
mod tests;

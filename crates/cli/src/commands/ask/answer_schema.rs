//! The JSON schema of an answer: read from a file, and checked against the answer.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use jsonschema::Validator;
use serde_json::Value;

use crate::output::text::{one_line, shortened};

/// Bytes of a schema.
const LARGEST: u64 = 1 << 20;

/// How many errors are named.
const MOST_ERRORS: usize = 5;

/// An error repeats the value, which may be long.
const LONGEST_ERROR: usize = 300;

pub struct AnswerSchema {
    value: Value,
    validator: Validator,
}

impl AnswerSchema {
    /// Reads a schema from a file.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let cannot_read = || format!("cannot read the schema {shown}");
        // Checked before opening, because opening a pipe blocks.
        if !fs::metadata(path).with_context(cannot_read)?.is_file() {
            bail!("the schema {shown} is not a file.");
        }
        let mut bytes = Vec::new();
        File::open(path)
            .with_context(cannot_read)?
            .take(LARGEST + 1)
            .read_to_end(&mut bytes)
            .with_context(cannot_read)?;
        if bytes.len() as u64 > LARGEST {
            bail!("the schema {shown} is larger than {} MiB.", LARGEST >> 20);
        }
        let value: Value = serde_json::from_slice(&bytes)
            .map_err(|error| anyhow!("the schema {shown} is not JSON: {error}."))?;
        AnswerSchema::new(value).with_context(|| format!("{shown} is not a JSON schema"))
    }

    fn new(value: Value) -> Result<Self> {
        if !value.is_object() {
            bail!("it must be an object.");
        }
        let validator = jsonschema::validator_for(&value).map_err(|error| anyhow!("{error}."))?;
        Ok(AnswerSchema { value, validator })
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Checks an answer. The error names what is wrong.
    pub fn check(&self, answer: &str) -> Result<()> {
        let answer: Value = serde_json::from_str(answer.trim()).map_err(|error| {
            anyhow!(
                "the answer is not JSON ({error}): {}. Ask again, or try another model with -m.",
                shortened(&one_line(answer), LONGEST_ERROR)
            )
        })?;
        let errors: Vec<String> = self
            .validator
            .iter_errors(&answer)
            .take(MOST_ERRORS)
            .map(|error| {
                let text = match error.instance_path().as_str().trim_start_matches('/') {
                    "" => error.to_string(),
                    field => format!("'{field}': {error}"),
                };
                shortened(&one_line(&text), LONGEST_ERROR)
            })
            .collect();
        match &errors[..] {
            [] => Ok(()),
            errors => bail!(
                "the answer does not follow the schema: {}. Ask again, or try another model with -m.",
                errors.join("; ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_answer_is_checked_against_its_schema() {
        let schema = AnswerSchema::new(json!({
            "type": "object",
            "properties": { "name": { "type": "string" } },
            "required": ["name"],
        }))
        .expect("a schema");
        assert!(schema.check(" {\"name\": \"Ada\"}\n").is_ok());
        for (answer, said) in [
            ("Ada", "the answer is not JSON"),
            ("{}", r#"does not follow the schema: "name" is a required property."#),
            (r#"{"name": 5}"#, r#"'name': 5 is not of type "string"."#),
        ] {
            let error = schema.check(answer).expect_err(answer).to_string();
            assert!(error.contains(said), "{answer}: {error}");
        }
    }

    #[test]
    fn a_schema_must_be_one() {
        for schema in [json!(true), json!({ "type": "sausage" })] {
            assert!(AnswerSchema::new(schema.clone()).is_err(), "{schema}");
        }
    }
}

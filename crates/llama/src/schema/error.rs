//! Why a schema cannot be enforced, and the limits of schemas.

use thiserror::Error;

/// The compiler recurses for every level and reference.
pub(super) const MAX_DEPTH: usize = 64;

/// Schemas within a schema.
pub(super) const MAX_NODES: usize = 10_000;

/// The schema as text, with the values of all enumerations.
pub(super) const MAX_BYTES: usize = 256 * 1024;

/// Chains of references.
pub(super) const MAX_REFERENCE_CHAIN: usize = 64;

/// Properties of one object. Each costs time at every token.
pub(super) const MAX_PROPERTIES: usize = 1_000;

/// The largest minimum length.
pub(super) const MAX_LEAST: u64 = 100_000;

/// Why a schema cannot be enforced.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum SchemaError {
    #[error("the schema is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
    #[error("the schema is larger than {MAX_BYTES} bytes or {MAX_NODES} schemas")]
    TooLarge,
    #[error("an object of the schema has more than {MAX_PROPERTIES} properties")]
    TooManyProperties,
    #[error("more than {MAX_REFERENCE_CHAIN} '$ref' of the schema form a chain")]
    ReferenceChain,
    #[error("no value matches the schema: it refers to itself endlessly")]
    Endless,
    #[error("no value matches the schema: {0}")]
    Unsatisfiable(String),
    #[error("the schema uses '{0}', which this engine does not support")]
    Unsupported(String),
    #[error("the schema has a '$ref' to '{0}', which is not in it")]
    Reference(String),
    #[error("'{keyword}' of the schema must be {expected}")]
    Malformed { keyword: String, expected: &'static str },
    #[error("the schema cannot be converted to a grammar: {0}")]
    Grammar(String),
}

pub(super) fn malformed(keyword: &str, expected: &'static str) -> SchemaError {
    SchemaError::Malformed { keyword: keyword.to_owned(), expected }
}

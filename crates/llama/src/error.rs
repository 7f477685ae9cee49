//! The errors of the engine.

use hob_core::{CONTEXT_LENGTH_EXCEEDED, EngineError};

use crate::schema::SchemaError;

/// The key under which the engine is configured.
pub(crate) const KEY: &str = "embedded";

/// An invalid request.
pub(crate) fn bad_request(message: impl Into<String>, param: Option<&str>) -> EngineError {
    EngineError::Refused {
        engine: KEY.into(),
        status: 400,
        message: message.into(),
        code: None,
        param: param.map(str::to_owned),
        retry_after: None,
    }
}

/// A request that exceeds the context.
pub(crate) fn context_exceeded(message: impl Into<String>, param: &str) -> EngineError {
    EngineError::Refused {
        engine: KEY.into(),
        status: 400,
        message: message.into(),
        code: Some(CONTEXT_LENGTH_EXCEEDED.into()),
        param: Some(param.into()),
        retry_after: None,
    }
}

/// A schema that cannot be enforced.
pub(crate) fn refused_schema(error: SchemaError, field: &str) -> EngineError {
    let code = matches!(error, SchemaError::Unsupported(_)).then(|| "unsupported_by_engine".to_owned());
    EngineError::Refused {
        engine: KEY.into(),
        status: 400,
        message: format!("'{field}': {error}"),
        code,
        param: Some(field.to_owned()),
        retry_after: None,
    }
}

/// Temporarily overloaded.
pub(crate) fn busy(message: impl Into<String>, retry_after: u64) -> EngineError {
    EngineError::Refused {
        engine: KEY.into(),
        status: 429,
        message: message.into(),
        code: None,
        param: None,
        retry_after: Some(retry_after),
    }
}

/// A model that cannot be used.
pub(crate) fn unusable(message: impl Into<String>) -> EngineError {
    EngineError::Refused {
        engine: KEY.into(),
        status: 500,
        message: message.into(),
        code: None,
        param: Some("model".into()),
        retry_after: None,
    }
}

pub(crate) fn unsupported(field: impl Into<String>, hint: Option<&str>) -> EngineError {
    EngineError::Unsupported { engine: KEY.into(), field: field.into(), hint: hint.map(str::to_owned) }
}

/// An answer that cannot continue.
pub(crate) fn interrupted(reason: impl Into<String>) -> EngineError {
    EngineError::Interrupted { engine: KEY.into(), reason: reason.into() }
}

/// The error without the name of the engine, which is added again.
pub(crate) fn plain_message(error: EngineError) -> String {
    match error {
        EngineError::Refused { message, .. } => message,
        other => other.to_string(),
    }
}

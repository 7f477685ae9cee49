//! Errors of the services behind the routes as HTTP errors: asking, routing, channels, model files, memory, ratings, tasks.

use std::error::Error;

use axum::http::StatusCode;
use hob_app::ModelManagementError;
use hob_channels::ChannelError;
use hob_config::SettingsError;
use hob_core::{AskError, CONTEXT_LENGTH_EXCEEDED, NoSuitableModel};
use hob_keys::KeyError;
use hob_memory::{DocumentLibraryError, MemoryError};
use hob_models::ModelFailureKind;
use hob_routing::RateError;
use hob_tasks::TaskError;

use super::ApiError;

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Engine(error) => error.into(),
            AskError::UnknownAgent { .. } => Self::invalid("agent", error.to_string()),
            AskError::NoAgent => Self::model_not_found(error.to_string()),
            AskError::NoAliasTarget { mapping, remedy } => {
                Self::model_not_found(format!("{mapping}, which no engine has")).with_owner_advice(&remedy)
            }
            AskError::UnknownTool { .. } | AskError::ToolNotAvailable { .. } => {
                Self::invalid("tools", error.to_string())
            }
            AskError::NoModel(error) => error.into(),
            AskError::CloudNotAllowed { .. } => ApiError {
                param: Some("model".into()),
                code: Some("cloud_not_allowed"),
                ..Self::new(StatusCode::FORBIDDEN, "permission_error", error.to_string())
            },
            AskError::ModelNotAllowed { .. } | AskError::EngineNotAllowed { .. } => {
                Self::model_not_allowed(error.to_string())
            }
            AskError::KeyNotValid { .. } => Self::key_not_valid(error.to_string()),
            AskError::Limit(limit) => Self::limit_reached(limit),
            AskError::Attachment { param, reason } => Self::invalid(param, reason),
        }
    }
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        let message = error.to_string();
        match error {
            KeyError::Invalid { field, .. } => Self::invalid(field.as_str(), message),
            KeyError::NoSuchKey { .. } => ApiError {
                code: Some("key_not_found"),
                ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
            },
            KeyError::NameTaken { .. } | KeyError::Revoked { .. } => ApiError {
                code: Some("key_conflict"),
                ..Self::new(StatusCode::CONFLICT, "invalid_request_error", message)
            },
            KeyError::Database(cause) => Self::of_store(&cause, Self::keys_failed(&message)),
            KeyError::Panicked => Self::keys_failed(&message),
        }
    }
}

impl ApiError {
    /// The reason can name files, so it is only logged.
    fn keys_failed(reason: &str) -> Self {
        tracing::error!(
            error = %reason,
            "the keys cannot be read or changed. 'hob doctor' checks the database"
        );
        let message = "the keys cannot be read or changed. The server's log has the reason";
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
        ApiError { code: Some("keys_unavailable"), ..error }
    }
}

impl From<SettingsError> for ApiError {
    fn from(error: SettingsError) -> Self {
        let message = error.to_string();
        match error {
            SettingsError::Unknown { key, .. } => Self::invalid(key, message),
            SettingsError::Invalid(bad) => Self::invalid(bad.key, message),
            SettingsError::TooMany | SettingsError::TooLarge => Self::invalid("settings", message),
            SettingsError::Cloud { key, .. } => ApiError {
                param: Some(key.to_owned()),
                code: Some("setting_read_only"),
                ..Self::new(StatusCode::FORBIDDEN, "permission_error", message)
            },
            SettingsError::Locked { key, .. } => ApiError {
                param: Some(key),
                code: Some("setting_read_only"),
                ..Self::new(StatusCode::FORBIDDEN, "permission_error", message)
            },
            SettingsError::FromEnvironment { key, .. } | SettingsError::Form { key, .. } => ApiError {
                param: Some(key),
                code: Some("setting_conflict"),
                ..Self::new(StatusCode::CONFLICT, "invalid_request_error", message)
            },
            // Only the owner gets these. They name the file and the line.
            SettingsError::Read(_) => {
                tracing::error!(
                    error = %message,
                    "the configuration cannot be read. Correct the line that the error names"
                );
                Self::settings_failed(message)
            }
            SettingsError::Write(cause) => {
                tracing::error!(
                    error = &cause as &(dyn Error + 'static),
                    "the configuration cannot be changed. Let Hob write to config.toml"
                );
                Self::of_store(&cause, Self::settings_failed(message))
            }
        }
    }
}

impl From<NoSuitableModel> for ApiError {
    fn from(error: NoSuitableModel) -> Self {
        let message = error.to_string();
        match error {
            NoSuitableModel::NoModel { .. } => ApiError {
                param: Some("model".into()),
                code: Some("model_not_found"),
                ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
            },
            NoSuitableModel::NothingFits { .. } => {
                ApiError { code: Some(CONTEXT_LENGTH_EXCEEDED), ..Self::invalid("messages", message) }
            }
        }
    }
}

impl From<ChannelError> for ApiError {
    fn from(error: ChannelError) -> Self {
        let message = error.to_string();
        let failed = |status, code| ApiError {
            code: Some(code),
            ..Self::new(status, "channel_error", message.clone())
        };
        match error {
            ChannelError::NotConfigured => failed(StatusCode::SERVICE_UNAVAILABLE, "channels_not_configured"),
            ChannelError::Invalid { .. } => Self::malformed(message),
            ChannelError::Undelivered { .. } => failed(StatusCode::BAD_GATEWAY, "delivery_failed"),
            ChannelError::Unlisted { .. } => failed(StatusCode::BAD_GATEWAY, "gateway_unreachable"),
        }
    }
}

impl From<ModelManagementError> for ApiError {
    fn from(error: ModelManagementError) -> Self {
        let message = error.to_string();
        let refused = |status, code| ApiError {
            param: Some("model".into()),
            code: Some(code),
            ..Self::new(status, "invalid_request_error", message.clone())
        };
        let failed = |status| ApiError {
            code: Some("library_failed"),
            ..Self::new(status, "server_error", message.clone())
        };
        match (error.reason(), error) {
            (_, ModelManagementError::Engine(error)) => error.into(),
            (_, ModelManagementError::Settings(error)) => (*error).into(),
            (ModelFailureKind::NotFound, _) => refused(StatusCode::NOT_FOUND, "model_not_found"),
            (ModelFailureKind::Impossible, _) => refused(StatusCode::BAD_REQUEST, "library_refused"),
            (ModelFailureKind::Busy, _) => refused(StatusCode::CONFLICT, "model_busy"),
            (ModelFailureKind::Source, _) => failed(StatusCode::BAD_GATEWAY),
            (ModelFailureKind::Disk, error) => {
                tracing::warn!(
                    error = %message,
                    "a model cannot be written, deleted or loaded. Check the disk with the models, and its \
                     permissions"
                );
                Self::of_store(&error, failed(StatusCode::INTERNAL_SERVER_ERROR))
            }
        }
    }
}

impl From<MemoryError> for ApiError {
    fn from(error: MemoryError) -> Self {
        let message = error.to_string();
        match error {
            MemoryError::Embed(error) => error.into(),
            MemoryError::NoVectors { .. } | MemoryError::NotEmbedded | MemoryError::NoEmbedder { .. } => {
                ApiError {
                    param: Some("backend".into()),
                    code: Some("no_vectors"),
                    ..Self::new(StatusCode::CONFLICT, "invalid_request_error", message)
                }
            }
            MemoryError::Empty
            | MemoryError::Path { .. }
            | MemoryError::NoFiles { .. }
            | MemoryError::EmptyNote => Self::malformed(message),
            MemoryError::Stopped => Self::memory_failed(message),
            MemoryError::Store(cause) => Self::of_store(cause.as_ref(), Self::memory_failed(message)),
        }
    }
}

impl From<DocumentLibraryError> for ApiError {
    fn from(error: DocumentLibraryError) -> Self {
        let message = error.to_string();
        let refused = |status, code| ApiError {
            code: Some(code),
            ..Self::new(status, "invalid_request_error", message.clone())
        };
        match error {
            DocumentLibraryError::Memory(error) => error.into(),
            DocumentLibraryError::Name(_) => Self::invalid("name", message),
            DocumentLibraryError::Folder(_) => Self::invalid("path", message),
            DocumentLibraryError::TooLarge { .. } => {
                refused(StatusCode::PAYLOAD_TOO_LARGE, "document_too_large")
            }
            DocumentLibraryError::Exists { .. } => refused(StatusCode::CONFLICT, "document_exists"),
            DocumentLibraryError::Full { .. } => refused(StatusCode::CONFLICT, "collection_full"),
            DocumentLibraryError::Watched { .. } => refused(StatusCode::CONFLICT, "watched_folder"),
            DocumentLibraryError::Indexing { .. } => refused(StatusCode::CONFLICT, "busy_folder"),
            DocumentLibraryError::NoFolder => refused(StatusCode::NOT_FOUND, "folder_not_found"),
            DocumentLibraryError::Busy => ApiError {
                code: Some("too_many_jobs"),
                retry_after: Some(5),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
            },
            DocumentLibraryError::Write { source, .. } => {
                Self::of_store(&source, Self::memory_failed(format!("{message}: {source}")))
            }
        }
    }
}

impl ApiError {
    fn memory_failed(message: String) -> Self {
        tracing::warn!(error = %message, "a request to the memory failed. 'hob doctor' checks the database");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message).coded("memory_failed")
    }
}

impl From<RateError> for ApiError {
    fn from(error: RateError) -> Self {
        let message = error.to_string();
        match error {
            RateError::NoSuchAnswer { .. } | RateError::NoAnswer => ApiError {
                param: Some("id".into()),
                code: Some("answer_not_found"),
                ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
            },
            RateError::Store(cause) => {
                // The reason can name files, so it is only logged.
                tracing::warn!(error = %message, "a rating was not saved. 'hob doctor' checks the database");
                let message = "the rating cannot be saved. The server's log has the reason";
                let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
                Self::of_store(&cause, ApiError { code: Some("rating_lost"), ..error })
            }
        }
    }
}

impl From<TaskError> for ApiError {
    fn from(error: TaskError) -> Self {
        let message = error.to_string();
        let refused = |status, code| ApiError {
            code: Some(code),
            ..Self::new(status, "invalid_request_error", message.clone())
        };
        match error {
            TaskError::Invalid { field, .. } => Self::invalid(field.as_str(), message),
            TaskError::NotFound { .. } => refused(StatusCode::NOT_FOUND, "task_not_found"),
            TaskError::Refused { .. } => refused(StatusCode::CONFLICT, "task_state"),
            TaskError::Running { .. } => refused(StatusCode::CONFLICT, "task_running"),
            TaskError::TooManyTasks { .. } => refused(StatusCode::CONFLICT, "too_many_tasks"),
            TaskError::TooManyRuns { .. } => ApiError {
                code: Some("too_many_runs"),
                retry_after: Some(5),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
            },
            TaskError::Unavailable(cause) => {
                // The reason can name files, so it is only logged.
                tracing::warn!(
                    error = %message,
                    %cause,
                    "a request to the tasks failed. 'hob doctor' checks the database"
                );
                let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
                Self::of_store(cause.as_ref(), ApiError { code: Some("tasks_unavailable"), ..error })
            }
        }
    }
}

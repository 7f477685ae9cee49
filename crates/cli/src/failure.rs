//! Errors as text for people: what happened, and what to do.

use std::io;
use std::process::ExitCode;

use anyhow::{Error, anyhow};
use hob_app::OpenError;
use hob_core::{AskError, EngineError};
use hob_engines::ManagedError;
use hob_engines::selection::{NoEngine, RejectionReason, has_bad_certificate};
use hob_tasks::TaskError;

use crate::engine_advice;
use crate::missing_model_hint;
use crate::output;
use crate::output::style::BAD;

/// Prints the error on stderr. The exit code is 1, or 0 if the reader of stdout closed the pipe.
pub fn report(error: &Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    output::labelled_line("error:", BAD, explain(error));
    ExitCode::FAILURE
}

/// Whether the reader of stdout closed the pipe, as `head` does. That is not a failure.
fn is_closed_pipe(error: &Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The error as text, with a hint where there is one.
pub fn explain(error: &Error) -> String {
    match error.downcast_ref() {
        Some(OpenError::NoEngine(none)) => return explain_no_engine(none),
        Some(OpenError::DownloadRefused(none)) => {
            return format!(
                "{}\nWithout --offline, Hob would download a small starter model and answer with it.",
                explain_no_engine(none)
            );
        }
        _ => {}
    }
    let engine = match error.downcast_ref() {
        Some(OpenError::Engine(engine)) => Some(engine),
        _ => match error.downcast_ref() {
            Some(AskError::Engine(engine)) => Some(engine),
            _ => error.downcast_ref::<EngineError>(),
        },
    };
    let happened = with_causes(error);
    let remedy = match error.downcast_ref() {
        Some(OpenError::Managed(managed)) => Some(remedy_of_managed(managed).to_owned()),
        Some(OpenError::FirstRun(_)) if is_unwritable(error) => Some(
            "Make Hob's directory writable, or set HOB_HOME to a directory that you own; or start an engine"
                .to_owned(),
        ),
        Some(OpenError::FirstRun(_)) => {
            Some("Or start an engine; 'hob doctor' shows where Hob looks for one".to_owned())
        }
        _ => engine.and_then(remedy),
    };
    match remedy {
        Some(remedy) => format!("{}. {remedy}.", happened.trim_end_matches('.')),
        None => happened,
    }
}

/// The error of a task with a hint, if one helps.
pub fn with_advice(error: TaskError) -> Error {
    let advice = match &error {
        TaskError::NotFound { .. } => Some("'hob scheduler list' lists the tasks"),
        TaskError::Running { .. } => Some("'hob scheduler logs ID' shows its progress"),
        TaskError::TooManyTasks { .. } => Some("'hob scheduler list' lists the tasks"),
        TaskError::Invalid { .. }
        | TaskError::Refused { .. }
        | TaskError::TooManyRuns { .. }
        | TaskError::Unavailable(_) => None,
    };
    match advice {
        Some(advice) => anyhow!("{error}; {advice}"),
        None => error.into(),
    }
}

/// The error and its causes, without causes that the error already contains.
pub fn with_causes(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    without_temporary_names(&text)
}

/// Whether a file or directory may not be written.
fn is_unwritable(error: &Error) -> bool {
    let mut kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    kinds.any(|kind| matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem))
}

/// The library for temporary files adds their names to errors. Users do not know these files.
fn without_temporary_names(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once(" at path \"") {
        plain.push_str(before);
        rest = behind.split_once('"').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

fn explain_no_engine(none: &NoEngine) -> String {
    match none {
        NoEngine::UnknownKey { key, known } => {
            format!("this build of hob has no engine '{key}'; it has {}.", known.join(", "))
        }
        NoEngine::Given(tried) => engine_advice::explain(tried),
        NoEngine::NoneHealthy { tried } => {
            let Some((first, others)) = tried.split_first() else {
                return none.to_string();
            };
            // Engines without an address, such as the cloud without a key, are not listed.
            let others: Vec<String> = others
                .iter()
                .filter(|tried| !tried.address.is_empty())
                .map(|tried| match tried.why_not {
                    RejectionReason::Unhealthy => format!("{} at {}", tried.key, tried.address),
                    RejectionReason::OwnAddress | RejectionReason::CloudNotAllowed => format!("({tried})"),
                })
                .collect();
            match others.as_slice() {
                [] => engine_advice::explain(first),
                others => format!("{}\nAlso tried: {}.", engine_advice::explain(first), others.join(", ")),
            }
        }
    }
}

/// The hint for an engine whose certificate is not accepted.
pub const CERTIFICATE_HINT: &str = "Check the address and the clock of this machine, renew the engine's certificate, or name its authority \
                                    in SSL_CERT_FILE";

/// The hint for an engine's failure, as a sentence without a full stop.
fn remedy(error: &EngineError) -> Option<String> {
    match error {
        error if has_bad_certificate(error) => {
            Some(format!("{CERTIFICATE_HINT}; 'hob doctor' checks the engine"))
        }
        EngineError::Unreachable { engine, address, .. } => {
            Some(format!("{}, or run 'hob doctor'", engine_advice::how_to_start(engine, address)))
        }
        EngineError::Timeout { engine, .. } => {
            Some(format!("It may still be loading the model: try again, or raise [engine.{engine}] timeout"))
        }
        EngineError::ModelNotFound { engine, model, available } => {
            Some(missing_model_hint::how_to_get(engine, model, available))
        }
        EngineError::Refused { engine, status: 401 | 403, .. } => Some(match engine.as_str() {
            cloud if cloud.starts_with("cloud") => "Check the provider's key in the environment".to_owned(),
            engine => format!("Check [engine.{engine}] api_key"),
        }),
        EngineError::Refused { status: 429, .. } => Some("Wait a moment, then try again".to_owned()),
        EngineError::Refused { engine, status: 500.., .. } => Some(format!("See the log of {engine}")),
        EngineError::Malformed { engine, .. } => {
            Some(format!("Check that {engine} listens there; 'hob doctor' shows the address"))
        }
        EngineError::Interrupted { engine, .. } => {
            Some(format!("Try again; the log of {engine} may show the reason"))
        }
        // Their messages already contain a hint.
        EngineError::Refused { .. }
        | EngineError::Unsupported { .. }
        | EngineError::NotConfigured { .. }
        | EngineError::Limit(_) => None,
    }
}

/// The hint for a failure of the server that Hob starts.
fn remedy_of_managed(error: &ManagedError) -> &'static str {
    match error {
        ManagedError::Address { .. } | ManagedError::AddressTaken { .. } => "Check [engine.llamacpp] host",
        ManagedError::Start(_) => {
            "Correct [engine.llamacpp] binary_path, or leave it empty and start the server yourself"
        }
        ManagedError::Ended { .. } => "Check [engine.llamacpp] model_path and args",
        ManagedError::NotReady { .. } => {
            "Set [engine.llamacpp] start_timeout to more seconds if the model is still loading, or check model_path and args"
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};
    use hob_core::UnreachableReason;
    use hob_engines::selection::RejectedEngine;
    use hob_models::PullError;

    use super::*;

    fn tried(key: &str, address: &str, why_not: RejectionReason) -> RejectedEngine {
        RejectedEngine { key: key.into(), address: address.into(), why_not }
    }

    #[test]
    fn without_any_engine_the_first_is_explained_and_the_others_are_named() {
        let none = NoEngine::NoneHealthy {
            tried: vec![
                tried("ollama", "http://localhost:11434", RejectionReason::Unhealthy),
                tried("vllm", "http://localhost:8000", RejectionReason::OwnAddress),
                tried("sglang", "http://localhost:30000", RejectionReason::Unhealthy),
                tried("cloud", "", RejectionReason::CloudNotAllowed),
            ],
        };
        insta::assert_snapshot!(explain(&OpenError::NoEngine(none).into()), @r"
        no engine answered on http://localhost:11434 (ollama). Start it with 'ollama serve', or run 'hob doctor'.
        Also tried: (vllm at http://localhost:8000 is Hob's own address), sglang at http://localhost:30000.
        ");
    }

    #[test]
    fn an_engine_on_hobs_own_port_is_explained() {
        let given = NoEngine::Given(tried("vllm", "http://localhost:8000", RejectionReason::OwnAddress));
        insta::assert_snapshot!(
            explain(&OpenError::NoEngine(given).into()),
            @"vllm is configured at http://localhost:8000, which is Hob's own address. Change one of the two ports: 'hob serve --port 8001', or [engine.vllm] host in the configuration."
        );
    }

    #[test]
    fn every_failure_of_an_engine_says_what_to_do() {
        let refused = |engine: &str, status| EngineError::Refused {
            engine: engine.into(),
            status,
            message: "no".into(),
            code: None,
            param: None,
            retry_after: None,
        };
        for (error, advice) in [
            (refused("vllm", 401), "vllm answered 401: no. Check [engine.vllm] api_key."),
            (
                refused("cloud (OpenAI)", 403),
                "cloud (OpenAI) answered 403: no. Check the provider's key in the environment.",
            ),
            (refused("vllm", 429), "vllm answered 429: no. Wait a moment, then try again."),
            (refused("vllm", 503), "vllm answered 503: no. See the log of vllm."),
            (refused("vllm", 400), "vllm answered 400: no"),
            (
                EngineError::Unreachable {
                    engine: "vllm".into(),
                    address: "https://gpu.lan".into(),
                    reason: UnreachableReason::BadCertificate("its certificate has expired".into()),
                },
                "cannot reach vllm at https://gpu.lan: its certificate has expired. Check the address and the clock of this machine, renew the engine's certificate, or name its authority in SSL_CERT_FILE; 'hob doctor' checks the engine.",
            ),
            (
                EngineError::Unreachable {
                    engine: "vllm".into(),
                    address: "http://127.0.0.1:8000".into(),
                    reason: "no tunnel to the proxy certificate.lan".into(),
                },
                "cannot reach vllm at http://127.0.0.1:8000: no tunnel to the proxy certificate.lan. Start it with 'vllm serve MODEL --port 8000', or run 'hob doctor'.",
            ),
            (
                EngineError::Malformed { engine: "vllm".into(), reason: "HTML".into() },
                "vllm gave an answer that cannot be read: HTML. Check that vllm listens there; 'hob doctor' shows the address.",
            ),
        ] {
            assert_eq!(explain(&error.into()), advice);
        }
    }

    #[test]
    fn a_server_that_is_not_ready_in_time_has_a_setting_for_it() {
        let error = ManagedError::NotReady {
            binary: "llama-server".into(),
            after: std::time::Duration::from_secs(120),
            stderr: String::new(),
        };
        assert!(remedy_of_managed(&error).contains("[engine.llamacpp] start_timeout"));
    }

    #[test]
    fn each_cause_appears_once() {
        let error = anyhow!("disk full").context("cannot write a.toml: disk full").context("no luck");
        assert_eq!(explain(&error), "no luck: cannot write a.toml: disk full");
    }

    #[test]
    fn names_of_temporary_files_are_not_shown() {
        let error = tempfile::tempdir_in("/nonexistent").expect_err("no directory");
        assert!(error.to_string().contains("at path"), "{error}");
        let error = Error::from(error).context("cannot write a.zip");
        assert_eq!(explain(&error), "cannot write a.zip: No such file or directory (os error 2)");
    }

    #[test]
    fn a_model_that_cannot_be_saved_says_which_directory_to_use() {
        let source = io::Error::from(io::ErrorKind::PermissionDenied);
        let unwritable = PullError::Io { path: "/srv/hob/models".into(), doing: "written", source };
        assert_eq!(
            explain(&OpenError::FirstRun(unwritable).into()),
            "no engine is running, and the starter model cannot be downloaded: /srv/hob/models cannot be written (permission \
             denied). Make Hob's directory writable, or set HOB_HOME to a directory that you own; or start an engine."
        );
    }

    #[test]
    fn a_closed_pipe_is_not_a_failure() {
        let closed = Error::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(is_closed_pipe(&closed));
        let other: Error = io::Error::from(io::ErrorKind::NotFound).into();
        assert!(!is_closed_pipe(&other));
        assert!(is_closed_pipe(&Err::<(), _>(closed).context("printing").expect_err("an error")));
    }
}

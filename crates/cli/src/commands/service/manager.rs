//! Calls of the service manager, within limits of time and output.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hob_process::{BoundedOutput, Need, bounded_output, command};

use super::definition::{CallFailure, ManagerCall};
use crate::output::text::one_line;

/// The time limit for a call. Stopping the service may take 40 s.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The part of the output that is read.
const MOST_OUTPUT: u64 = 64 << 10;

/// The variables with which `systemctl --user` finds the manager of the user.
const VARIABLES: [&str; 3] = ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "XDG_CONFIG_HOME"];

/// Runs calls in their order. The first failure that counts is an error.
pub async fn run_all(calls: &[ManagerCall]) -> Result<()> {
    for call in calls {
        run(call).await?;
    }
    Ok(())
}

/// Runs one call. A failure that counts is an error with what the program says.
pub async fn run(call: &ManagerCall) -> Result<()> {
    let answer = ask(call).await?;
    if answer.is_success || call.failure == CallFailure::Ignore {
        return Ok(());
    }
    bail!("'{}' failed: {}{}", call.shown(), answer.complaint, hint(&answer.complaint))
}

/// What a call prints, however it ends.
pub async fn output_of(call: &ManagerCall) -> Result<String> {
    Ok(ask(call).await?.output)
}

struct ManagerAnswer {
    is_success: bool,
    output: String,
    complaint: String,
}

async fn ask(call: &ManagerCall) -> Result<ManagerAnswer> {
    let mut command = command(call.program, &[Need::Basics]);
    command
        .args(&call.arguments)
        // The messages are searched for words.
        .env("LC_ALL", "C")
        .envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    let Ok(ended) = tokio::time::timeout(TIMEOUT, bounded_output(&mut command, MOST_OUTPUT)).await else {
        bail!("'{}' did not end within {} s", call.shown(), TIMEOUT.as_secs());
    };
    let BoundedOutput { status, stdout, stderr } = match ended {
        Ok(ended) => ended,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "this system has no {}, so Hob cannot install a service. Let its own service manager run 'hob serve'.",
            call.program
        ),
        Err(error) => return Err(error).with_context(|| format!("cannot run {}", call.program)),
    };
    let said = if stderr.trim().is_empty() { &stdout } else { &stderr };
    let complaint = if said.trim().is_empty() { status.to_string() } else { one_line(said) };
    Ok(ManagerAnswer { is_success: status.success(), output: stdout, complaint })
}

/// What to do about a failure, where that is known.
fn hint(complaint: &str) -> &'static str {
    let is_without_bus = ["connect to bus", "XDG_RUNTIME_DIR", "not been booted with systemd"]
        .iter()
        .any(|words| complaint.contains(words));
    if is_without_bus {
        ". This session has no service manager: log in as the user itself, not with su or sudo; in a container, run 'hob serve'"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_call_that_fails_repeats_what_the_program_says() {
        let call = ManagerCall::new("sh", &["-c", "echo 'no such unit' >&2; exit 5"]);
        let error = run(&call).await.expect_err("it fails").to_string();
        assert!(error.ends_with("failed: no such unit"), "{error}");
        assert!(run(&call.ignoring_failure()).await.is_ok());
        let silent = run(&ManagerCall::new("sh", &["-c", "exit 5"])).await.expect_err("it fails").to_string();
        assert!(silent.contains("exit status: 5"), "{silent}");
    }

    #[tokio::test]
    async fn a_system_without_the_manager_is_named() {
        let call = ManagerCall::new("hob-no-such-manager", &[]);
        let error = run(&call).await.expect_err("it is missing").to_string();
        assert!(error.starts_with("this system has no hob-no-such-manager"), "{error}");
    }

    #[tokio::test]
    async fn output_without_end_is_cut() {
        let call = ManagerCall::new("sh", &["-c", "exec yes"]);
        let output = output_of(&call).await.expect("it is ended");
        assert_eq!(output.len() as u64, MOST_OUTPUT);
    }

    #[test]
    fn a_session_without_a_manager_gets_a_hint() {
        assert!(hint("Failed to connect to bus: No medium found").contains("log in as the user itself"));
        assert_eq!(hint("Unit hob.service not found."), "");
    }
}

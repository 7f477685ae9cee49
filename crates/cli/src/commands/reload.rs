//! `hob reload`: makes the running servers of this home read their configuration, keys and certificate again.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::args::ReloadArgs;
use crate::commands::block_on;
use crate::output;
use crate::output::OutputFormat;
use crate::reload_socket::{ReloadOutcome, ReloadReport};
use crate::settings;

pub fn run(args: &ReloadArgs) -> Result<ExitCode> {
    let answers = block_on(reload_servers())?;
    if answers.is_empty() {
        bail!(
            "no Hob server of {} is running. Start it with 'hob serve', or set HOB_HOME to the home of the server.",
            settings::home()?.display()
        );
    }
    let has_failed = answers.iter().any(|answer| !matches!(answer, Ok(ReloadOutcome::Done(_))));
    match OutputFormat::from(args.json) {
        OutputFormat::Json => {
            let outcomes: Vec<ReloadOutcome> = answers
                .into_iter()
                .map(|answer| answer.unwrap_or_else(|error| ReloadOutcome::Failed { error }))
                .collect();
            output::json(&outcomes)?;
        }
        OutputFormat::Text => answers.iter().try_for_each(print)?,
    }
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What a server answered, or why it did not.
type ServerAnswer = Result<ReloadOutcome, String>;

fn print(answer: &ServerAnswer) -> Result<()> {
    match answer {
        Ok(ReloadOutcome::Done(report)) => {
            output::line(summary(report))?;
            if !report.after_restart.is_empty() {
                output::warning(format_args!(
                    "{}: takes effect after a restart",
                    report.after_restart.join(", ")
                ));
            }
        }
        Ok(ReloadOutcome::Failed { error }) => output::labelled_line(
            "error:",
            output::style::BAD,
            format_args!("the configuration was not reloaded; the old one stays in effect: {error}"),
        ),
        Err(error) => output::labelled_line("error:", output::style::BAD, error),
    }
    Ok(())
}

fn summary(report: &ReloadReport) -> String {
    let certificate = report.certificate_renewed.then_some("the certificate");
    let changed: Vec<&str> = report.applied.iter().map(String::as_str).chain(certificate).collect();
    match &changed[..] {
        [] => "Reloaded: nothing that can change at run time has changed.".to_owned(),
        changed => format!("Reloaded: {}.", changed.join(", ")),
    }
}

/// Makes the running servers of this home read a setting that was written to the file, and prints the outcome. The setting stays even if
/// one of them cannot.
pub async fn reload_running() {
    let answers = match reload_servers().await {
        Ok(answers) => answers,
        Err(error) => return output::note(format_args!("A running server uses it after a restart: {error}")),
    };
    for answer in answers {
        let failure = match answer {
            Ok(ReloadOutcome::Done(report)) if report.applied.is_empty() => continue,
            Ok(ReloadOutcome::Done(report)) => {
                output::note(format_args!("The running server has reloaded {}.", report.applied.join(", ")));
                continue;
            }
            Ok(ReloadOutcome::Failed { error }) | Err(error) => error,
        };
        output::warning(format_args!(
            "A running server does not use it: {}. Fix this, and run 'hob reload'.",
            failure.trim_end_matches('.')
        ));
    }
}

/// Makes all running servers of this home reload. Without one, the list is empty.
#[cfg(unix)]
async fn reload_servers() -> Result<Vec<ServerAnswer>> {
    unix::reload_all(&settings::home()?).await
}

#[cfg(not(unix))]
async fn reload_servers() -> Result<Vec<ServerAnswer>> {
    bail!("this system has no 'hob reload'. Stop the server and start it again.")
}

#[cfg(unix)]
mod unix {
    use std::io;
    use std::path::Path;
    use std::time::Duration;

    use anyhow::{Context, Result};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::ServerAnswer;
    use crate::reload_socket::{RELOAD, ReloadOutcome, is_abandoned, sockets};

    /// How long a server may take. It may have to wait for its database.
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// Far more than a report needs.
    const MAX_ANSWER: u64 = 1 << 20;

    /// Asks all servers of a home, also after one that fails. Servers that do not run any more are skipped.
    pub async fn reload_all(home: &Path) -> Result<Vec<ServerAnswer>> {
        let mut answers = Vec::new();
        for path in sockets(home).with_context(|| format!("cannot read {}", home.display()))? {
            let asked = async {
                match UnixStream::connect(&path).await {
                    Ok(socket) => ask(socket).await.map(Some),
                    Err(error) if is_abandoned(&error) => Ok(None),
                    Err(error) => Err(error),
                }
            };
            let answer = tokio::time::timeout(TIMEOUT, asked)
                .await
                .unwrap_or_else(|_| Err(io::Error::other("the server does not answer")))
                .map_err(|error| format!("cannot reload the server at {}: {error}", path.display()));
            answers.extend(answer.transpose());
        }
        Ok(answers)
    }

    async fn ask(mut socket: UnixStream) -> io::Result<ReloadOutcome> {
        socket.write_all(format!("{RELOAD}\n").as_bytes()).await?;
        let mut answer = Vec::new();
        socket.take(MAX_ANSWER).read_to_end(&mut answer).await?;
        if answer.is_empty() {
            return Err(io::Error::other("the server is stopping"));
        }
        serde_json::from_slice(&answer).map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_what_changed() {
        let report = |applied: &[&str], certificate_renewed| ReloadReport {
            applied: applied.iter().map(|key| (*key).to_owned()).collect(),
            after_restart: Vec::new(),
            certificate_renewed,
        };
        assert_eq!(
            summary(&report(&[], false)),
            "Reloaded: nothing that can change at run time has changed."
        );
        assert_eq!(summary(&report(&["server.api_key"], true)), "Reloaded: server.api_key, the certificate.");
    }
}

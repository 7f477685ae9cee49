//! Bubblewrap: kernel namespaces without a daemon and without an image. Programs of this machine are mounted read-only, and
//! nothing else.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_process::{Need, command};
use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::checked_job::CheckedJob;
use crate::error::SandboxError;
use crate::filter_pipe::{FilterPipe, SandboxCommand};
use crate::job::{ExitReason, JobResult, ScriptLanguage};
use crate::launch::{self, CODE_VARIABLE, MOUNT_CHANGED, MOUNT_CHANGED_TEXT};
use crate::memory_limit;
use crate::mounts::AllowedMount;
use crate::options::{OPEN_FILES, SandboxLimits};
use crate::process::{self, ProcessBounds};
use crate::python::{self, Python};
use crate::runtime_check::{last_error_line, run_probe};
use crate::syscall_filter::{self, SyscallTable};

/// The user `nobody`: inside and, if Hob runs as root, outside too.
const NOBODY: u32 = 65_534;

const SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// From util-linux, like `prlimit`. It starts a session and executes the given command.
const SESSION_LEADER: &str = "setsid";

/// For the limits of the trial run, which takes milliseconds.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// The first release that can forbid user namespaces inside, which are often used to attack the kernel.
const OLDEST: (u32, u32) = (0, 8);

/// Directories beside `/usr`. On most systems they are links to it.
const BESIDE_USR: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// The files of `/etc` that programs need. None of them is private.
const FROM_ETC: [&str; 3] = ["/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime"];

#[derive(Debug)]
pub struct Bwrap {
    program: PathBuf,
    limits: SandboxLimits,
    /// The system calls that it refuses, as bubblewrap reads them.
    filter: Vec<u8>,
    /// Found on first use.
    python: OnceCell<Python>,
}

impl Bwrap {
    /// Checks that bubblewrap is installed, new enough, and works on this machine.
    pub async fn find(program: &Path, limits: SandboxLimits) -> Result<Self, SandboxError> {
        let unusable = |reason| SandboxError::Unusable { program: program.to_owned(), reason };
        let table = SyscallTable::of_this_machine();
        let Some(filter) = table.map(syscall_filter::filter) else {
            return Err(unusable("the system calls of this processor are not known".to_owned()));
        };
        let runner = Bwrap { program: program.to_owned(), limits, filter, python: OnceCell::new() };
        let mut question = as_nobody(command(program, &[Need::Basics]));
        question.arg("--version");
        let answer = run_probe(question, program).await?;
        let version = version(&String::from_utf8_lossy(&answer.stdout));
        if version.is_none_or(|version| version < OLDEST) {
            return Err(unusable(format!("bubblewrap {}.{} or newer is needed", OLDEST.0, OLDEST.1)));
        }
        let limited = limited(limits, TRIAL_TIMEOUT);
        let inner = limited.iter().map(OsStr::new).chain([OsStr::new("true")]);
        let trial = run_probe(runner.command(&[], None, inner)?, Path::new(SESSION_LEADER)).await?;
        if !trial.status.success() {
            let reason = format!(
                "{}. It needs user namespaces, which some systems and most containers forbid",
                last_error_line(&trial)
            );
            return Err(unusable(reason));
        }
        Ok(runner)
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub async fn run(&self, run: CheckedJob<'_>) -> Result<JobResult, SandboxError> {
        let python = match run.job.language {
            ScriptLanguage::Python => Some(self.python().await?),
            ScriptLanguage::Sh => None,
        };
        let interpreter = python.map_or("", |python| python.program.as_str());
        let shell = launch::arguments(run.job.language, interpreter, run.mounts);
        let limited = limited(self.limits, run.timeout);
        let inner =
            limited.iter().map(OsStr::new).chain([OsStr::new("sh")]).chain(shell.iter().map(OsStr::new));
        let mut command = self.command(run.mounts, python, inner)?;
        command.command.env(CODE_VARIABLE, &run.job.code);
        let bounds =
            ProcessBounds { stdin: run.job.stdin.clone(), timeout: run.timeout, limits: self.limits };
        let limits = self.limits;
        let outcome = process::run(command, bounds, |pid| memory_limit::watch(pid, limits)).await;
        let outcome = outcome.map_err(|source| SandboxError::Io { program: self.program.clone(), source })?;
        self.judge(outcome, run.mounts)
    }

    /// Distinguishes a sandbox that could not be set up from a program that failed. A program can fake the former, with no gain.
    fn judge(&self, outcome: JobResult, mounts: &[AllowedMount]) -> Result<JobResult, SandboxError> {
        match outcome.exit_reason {
            ExitReason::Exited(MOUNT_CHANGED)
                if !mounts.is_empty() && outcome.stderr.trim() == MOUNT_CHANGED_TEXT =>
            {
                Err(SandboxError::MountChanged)
            }
            ExitReason::Exited(1) if outcome.stdout.is_empty() && outcome.stderr.starts_with("bwrap: ") => {
                Err(SandboxError::Unusable {
                    program: self.program.clone(),
                    reason: outcome.stderr.trim().to_owned(),
                })
            }
            _ => Ok(outcome),
        }
    }

    async fn python(&self) -> Result<&Python, SandboxError> {
        let find = || async {
            let mut reasons = Vec::new();
            for candidate in python::CANDIDATES {
                let found =
                    python::identify(as_nobody(command(candidate, &[Need::Basics, Need::Python])), candidate)
                        .await;
                match found {
                    Ok(python) => {
                        let trial = [OsStr::new(&python.program), OsStr::new("-c"), OsStr::new("")];
                        let trial =
                            run_probe(self.command(&[], Some(&python), trial)?, &self.program).await?;
                        if trial.status.success() {
                            return Ok(python);
                        }
                        reasons.push(format!("{candidate}: {}", last_error_line(&trial)));
                    }
                    Err(reason) => reasons.push(reason),
                }
            }
            Err(SandboxError::NoPython(reasons.join("; ")))
        };
        self.python.get_or_try_init(find).await
    }

    /// Runs a command in bubblewrap, in a new session without a terminal. So it leads a process group that contains all of
    /// bubblewrap's own processes from the start: killing the group kills the first process inside, and with it everything
    /// inside. The option `--new-session` would take that process out of the group, and `--die-with-parent` alone is too late for
    /// a bubblewrap that is killed while it starts.
    fn command<'a>(
        &self,
        mounts: &[AllowedMount],
        python: Option<&Python>,
        inner: impl IntoIterator<Item = &'a OsStr>,
    ) -> Result<SandboxCommand, SandboxError> {
        let filter = FilterPipe::holding(&self.filter)
            .map_err(|source| SandboxError::Io { program: self.program.clone(), source })?;
        let mut command = as_nobody(command(SESSION_LEADER, &[]));
        command
            .env("PATH", SEARCH_PATH)
            .env("HOME", "/tmp")
            .env("TMPDIR", "/tmp")
            .env("LANG", "C.UTF-8")
            .arg(&self.program)
            .args(arguments(&self.limits, mounts, python))
            .args(["--seccomp", &filter.number().to_string(), "--"])
            .args(inner);
        Ok(SandboxCommand { command, filter: Some(filter) })
    }
}

/// Root would also be root inside, with any user id: the kernel exempts it from limits, and it owns the mounted files. So the
/// command runs as nobody.
fn as_nobody(mut command: Command) -> Command {
    #[cfg(unix)]
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    // The user nobody may not be allowed to enter the current directory.
    command.current_dir("/");
    command
}

/// The restrictions.
fn arguments(limits: &SandboxLimits, mounts: &[AllowedMount], python: Option<&Python>) -> Vec<OsString> {
    let mut arguments = Arguments::default();
    // `--die-with-parent` is for the case that Hob is killed. It watches the thread that started it. That is a worker of a runtime,
    // which lives as long, as long as no task calls `block_in_place`: that makes a worker a blocking thread, which ends when it is
    // idle.
    arguments
        .words(&["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent"])
        .words(&["--uid", &NOBODY.to_string(), "--gid", &NOBODY.to_string()])
        .words(&["--hostname", "sandbox", "--cap-drop", "ALL"])
        .words(&["--ro-bind", "/usr", "/usr"]);
    for path in BESIDE_USR.map(Path::new) {
        match path.read_link() {
            Ok(target) => arguments.words(&["--symlink"]).path(&target).path(path),
            Err(_) if path.is_dir() => arguments.read_only(path, path),
            Err(_) => &mut arguments,
        };
    }
    for path in FROM_ETC {
        arguments.words(&["--ro-bind-try", path, path]);
    }
    if let Some(prefix) = python.and_then(|python| python.prefix.as_deref()) {
        arguments.read_only(prefix, prefix);
    }
    // The memory of a file system counts for no process, so each has a size, and those that need none are read-only.
    let scratch = limits.scratch.to_string();
    arguments
        .words(&["--proc", "/proc", "--dev", "/dev"])
        // A shared mapping of /dev/zero is memory of no process. /dev/full also reads as zeros, and cannot be mapped.
        .words(&["--dev-bind", "/dev/full", "/dev/zero"])
        .words(&["--perms", "1777", "--size", &scratch, "--tmpfs", "/tmp"])
        .words(&["--perms", "1777", "--size", &scratch, "--tmpfs", "/dev/shm"]);
    // After the scratch space, which would hide them.
    for mount in mounts {
        arguments.read_only(&mount.host, &mount.inside);
    }
    arguments.words(&["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]);
    arguments.0
}

/// Limits that each process inherits. They are set inside, so that they count only the processes of this sandbox.
fn limited(limits: SandboxLimits, timeout: Duration) -> Vec<String> {
    // Processor time runs out after the timeout, unless many processes share it.
    let seconds = timeout.as_secs() + 1;
    [
        "prlimit".to_owned(),
        format!("--as={}", limits.memory),
        format!("--nproc={}", limits.processes),
        format!("--fsize={}", limits.file_size),
        format!("--cpu={seconds}"),
        format!("--nofile={OPEN_FILES}"),
        "--core=0".to_owned(),
        "--".to_owned(),
    ]
    .into()
}

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn words(&mut self, words: &[&str]) -> &mut Self {
        self.0.extend(words.iter().map(OsString::from));
        self
    }

    fn path(&mut self, path: &Path) -> &mut Self {
        self.0.push(path.into());
        self
    }

    fn read_only(&mut self, host: &Path, inside: &Path) -> &mut Self {
        self.words(&["--ro-bind"]).path(host).path(inside)
    }
}

/// The major and minor number of `bubblewrap 0.8.0`.
fn version(words: &str) -> Option<(u32, u32)> {
    let mut numbers = words.trim().strip_prefix("bubblewrap ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("bubblewrap 0.8.0\n"), Some((0, 8)));
        assert!(version("bubblewrap 0.11.1").is_some_and(|version| version >= OLDEST));
        assert!(version("bubblewrap 0.6.1").is_some_and(|version| version < OLDEST));
        assert_eq!(version("something else"), None);
    }
}

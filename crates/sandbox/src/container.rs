//! Docker and Podman, which have the same options. Killing the client does not stop the container, so a run that does not end by
//! itself is ended by name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hob_process::{Need, command, std_command};
use tokio::process::Command;

use crate::checked_job::CheckedJob;
use crate::error::SandboxError;
use crate::job::{ExitReason, JobResult};
use crate::launch::{self, CODE_VARIABLE};
use crate::mounts::AllowedMount;
use crate::options::{OPEN_FILES, SandboxLimits};
use crate::owner::ContainerOwner;
use crate::process::{self, ProcessBounds};
use crate::runtime_check::{last_error_line, run_probe};

/// The environment of the client. The container gets only what its arguments name.
const CLIENT_NEEDS: [Need; 2] = [Need::Basics, Need::Containers];

/// The exit codes of the client if the container or its shell did not start. A program may return them too.
const NEVER_STARTED: std::ops::RangeInclusive<i32> = 125..=127;

/// Docker or Podman.
#[derive(Debug)]
pub struct Container {
    program: PathBuf,
    image: String,
    limits: SandboxLimits,
    owner: ContainerOwner,
}

impl Container {
    /// Checks the client, its daemon and the image, and removes containers of a process that was killed.
    pub async fn find(program: &Path, image: &str, limits: SandboxLimits) -> Result<Self, SandboxError> {
        let runner = Container {
            program: program.to_owned(),
            image: image.to_owned(),
            limits,
            owner: ContainerOwner::this_process(),
        };
        let answer =
            run_probe(runner.client(&["image", "inspect", "--format", "{{.Id}}", image]), program).await?;
        if !answer.status.success() {
            let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
            let reason =
                format!("{}. If the image is missing: {name} pull {image}", last_error_line(&answer));
            return Err(SandboxError::Unusable { program: program.to_owned(), reason });
        }
        runner.sweep().await;
        Ok(runner)
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn image(&self) -> &str {
        &self.image
    }

    pub async fn run(&self, run: CheckedJob<'_>) -> Result<JobResult, SandboxError> {
        let name = self.owner.new_name();
        let arguments = arguments(&name, &self.image, &self.limits, run)?;
        let mut command = command(&self.program, &CLIENT_NEEDS);
        command.args(arguments).env(CODE_VARIABLE, &run.job.code);
        #[cfg(unix)]
        command.process_group(0);
        let bounds =
            ProcessBounds { stdin: run.job.stdin.clone(), timeout: run.timeout, limits: self.limits };
        // Created before the client starts, and dropped after it has ended.
        let mut removal = ContainerRemoval { program: self.program.clone(), name: Some(name) };
        // The container limits the memory of all its processes, with what the kernel holds for them, such as full pipes.
        let outcome = process::run(command, bounds, |_| std::future::pending()).await;
        let outcome = outcome.map_err(|source| SandboxError::Io { program: self.program.clone(), source })?;
        match outcome.exit_reason {
            ExitReason::Exited(code) if NEVER_STARTED.contains(&code) && is_client_error(&outcome) => {
                removal.now().await;
                Err(SandboxError::Unusable {
                    program: self.program.clone(),
                    reason: outcome.stderr.trim().to_owned(),
                })
            }
            ExitReason::Exited(_) => {
                removal.name = None;
                Ok(outcome)
            }
            _ => {
                removal.now().await;
                Ok(outcome)
            }
        }
    }

    /// Removes containers of processes that have ended.
    async fn sweep(&self) {
        let Some(filter) = self.owner.filter() else { return };
        let list = self.client(&["ps", "--all", "--filter", &filter, "--format", "{{.Names}}"]);
        let Ok(answer) = run_probe(list, &self.program).await else { return };
        for name in String::from_utf8_lossy(&answer.stdout).lines().filter(|name| self.owner.is_orphan(name))
        {
            tracing::info!(name, "removing a container of an earlier run");
            ContainerRemoval { program: self.program.clone(), name: Some(name.to_owned()) }.now().await;
        }
    }

    fn client(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.program, &CLIENT_NEEDS);
        command.args(arguments);
        command
    }
}

/// Whether the output is an error of the client: Docker begins with `docker: `, Podman with `Error: `.
fn is_client_error(outcome: &JobResult) -> bool {
    outcome.stdout.is_empty() && ["docker: ", "Error: "].iter().any(|words| outcome.stderr.starts_with(words))
}

/// The restrictions.
fn arguments(
    name: &str,
    image: &str,
    limits: &SandboxLimits,
    run: CheckedJob<'_>,
) -> Result<Vec<OsString>, SandboxError> {
    let SandboxLimits { memory, processes, file_size, scratch, .. } = *limits;
    let seconds = run.timeout.as_secs() + 1;
    let mut words: Vec<String> = [
        "run --rm --interactive --pull never --network none --read-only --cap-drop ALL",
        "--security-opt no-new-privileges --user 65534:65534 --workdir /tmp --hostname sandbox",
        // A copy in the daemon's log would only fill its disk.
        "--log-driver none --env HOME=/tmp --env LANG=C.UTF-8",
    ]
    .iter()
    .flat_map(|line| line.split(' '))
    .map(str::to_owned)
    .collect();
    words.extend([
        format!("--env={CODE_VARIABLE}"),
        format!("--name={name}"),
        format!("--memory={memory}"),
        // The same number disables swap.
        format!("--memory-swap={memory}"),
        format!("--pids-limit={processes}"),
        format!("--ulimit=fsize={file_size}:{file_size}"),
        format!("--ulimit=cpu={seconds}:{seconds}"),
        "--ulimit=core=0:0".to_owned(),
        format!("--ulimit=nofile={OPEN_FILES}:{OPEN_FILES}"),
        // Podman's default may exceed its own limit. The limit above counts processes.
        "--ulimit=nproc=4096:4096".to_owned(),
        format!("--tmpfs=/tmp:rw,size={scratch},noexec,nosuid,nodev,mode=1777"),
    ]);
    let mut arguments: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    for mount in run.mounts {
        arguments.push(mount_argument(mount)?);
    }
    arguments.extend(["--entrypoint=sh".into(), image.into()]);
    // The daemon may run on another kernel, where mounts have other identities.
    arguments.extend(launch::arguments(run.job.language, "python3", &[]).into_iter().map(OsString::from));
    Ok(arguments)
}

fn mount_argument(mount: &AllowedMount) -> Result<OsString, SandboxError> {
    let refused =
        |reason: &str| SandboxError::MountNotAllowed { host: mount.host.clone(), reason: reason.to_owned() };
    let text = |path: &Path| path.to_str().map(str::to_owned).ok_or_else(|| refused("its path is not text"));
    let (host, inside) = (text(&mount.host)?, text(&mount.inside)?);
    // The value is a list of comma-separated fields, so a comma in a path would add a field.
    if [&host, &inside].iter().any(|path| path.contains([',', '"', '\n', '\r'])) {
        return Err(refused("its path contains a comma, a quote or a line break"));
    }
    Ok(format!("--mount=type=bind,source={host},target={inside},readonly").into())
}

/// Removes a container by its name, at the latest when this is dropped.
#[derive(Debug)]
struct ContainerRemoval {
    program: PathBuf,
    name: Option<String>,
}

impl ContainerRemoval {
    /// Kills and removes the container. If the client takes too long, which a busy machine may cause, this is tried again when the
    /// value is dropped.
    async fn now(&mut self) {
        let Some(name) = self.name.clone() else { return };
        let mut is_answered = true;
        for arguments in [&["kill", &name][..], &["rm", "--force", &name]] {
            let mut command = command(&self.program, &CLIENT_NEEDS);
            command.args(arguments);
            // Killing a container that has ended fails, which is fine.
            if let Err(error) = run_probe(command, &self.program).await {
                tracing::warn!(
                    name,
                    %error,
                    "a container cannot be removed. Remove it with 'docker rm -f' or 'podman rm -f'"
                );
                is_answered = false;
            }
        }
        if is_answered {
            self.name = None;
        }
    }
}

impl Drop for ContainerRemoval {
    /// `drop` cannot wait, so a separate process removes the container, and tries again later: the daemon may still be creating
    /// it.
    fn drop(&mut self) {
        let Some(name) = self.name.take() else { return };
        let script = "\"$0\" kill \"$1\"; \"$0\" rm --force \"$1\"; sleep 2; \"$0\" rm --force \"$1\"";
        let mut command = std_command("sh", &CLIENT_NEEDS);
        command.arg("-c").arg(script).arg(&self.program).arg(&name);
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        match command.spawn() {
            // Without a wait it would stay in the process table.
            Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
            Err(error) => tracing::warn!(
                name,
                %error,
                "a container cannot be removed. Remove it with 'docker rm -f' or 'podman rm -f'"
            ),
        }
    }
}

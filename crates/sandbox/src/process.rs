//! Runs a command to its end, or kills it: after its time limit, when it writes too much, or when its caller has gone.

use std::future::Future;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use hob_process::ProcessGroup;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};

use crate::filter_pipe::SandboxCommand;
use crate::job::{ExitReason, JobResult};
use crate::options::SandboxLimits;

/// How long a killed process may take to end.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The input and the limits of a run.
pub struct ProcessBounds {
    pub stdin: Vec<u8>,
    pub timeout: Duration,
    pub limits: SandboxLimits,
}

/// Runs `command`, which must lead its own process group. Dropping the future kills the whole group. `watch` gets the process id and
/// ends the run when it returns.
pub async fn run<Watch>(
    command: impl Into<SandboxCommand>,
    bounds: ProcessBounds,
    watch: impl FnOnce(u32) -> Watch,
) -> io::Result<JobResult>
where
    Watch: Future<Output = ExitReason>,
{
    let mut command = command.into();
    let streams = command.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    streams.kill_on_drop(true);
    let began = Instant::now();
    let mut program = RunningProgram::new(command.spawn()?);
    let child = &mut program.child;
    let pid = child.id().unwrap_or_default();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (OutputCapture::new(bounds.limits), OutputCapture::new(bounds.limits));

    let exit_reason = tokio::select! {
        ended = finish(child, feed(stdin, &bounds.stdin), out.drain(stdout), err.drain(stderr)) => ended?,
        exit_reason = watch(pid) => exit_reason,
        () = tokio::time::sleep(bounds.timeout) => ExitReason::TimedOut(bounds.timeout),
    };
    match exit_reason {
        // No process is left, and the system may give the group's number to another one.
        ExitReason::Exited(_) => program.forget(),
        _ => program.kill().await,
    }
    let output_cut = out.is_cut || err.is_cut;
    Ok(JobResult {
        stdout: out.text(),
        stderr: err.text(),
        exit_reason,
        output_cut,
        duration: began.elapsed(),
    })
}

/// Waits until everything is written and read and the child has ended.
async fn finish(
    child: &mut Child,
    feeding: impl Future<Output = Result<(), OutputOverflow>>,
    stdout: impl Future<Output = Result<(), OutputOverflow>>,
    stderr: impl Future<Output = Result<(), OutputOverflow>>,
) -> io::Result<ExitReason> {
    match tokio::try_join!(feeding, stdout, stderr) {
        Ok(_) => child.wait().await.map(exit_reason_of),
        Err(OutputOverflow) => Ok(ExitReason::TooMuchOutput),
    }
}

#[cfg(unix)]
fn exit_reason_of(status: ExitStatus) -> ExitReason {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitReason::Exited(code),
        (None, signal) => ExitReason::Signalled(signal.unwrap_or_default()),
    }
}

#[cfg(not(unix))]
fn exit_reason_of(status: ExitStatus) -> ExitReason {
    ExitReason::Exited(status.code().unwrap_or(-1))
}

struct OutputOverflow;

/// Writes the input and closes it. A program need not read it, so failures are ignored.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> Result<(), OutputOverflow> {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input).await;
    }
    Ok(())
}

/// The beginning of a stream.
struct OutputCapture {
    kept: Vec<u8>,
    limits: SandboxLimits,
    is_cut: bool,
}

impl OutputCapture {
    fn new(limits: SandboxLimits) -> Self {
        OutputCapture { kept: Vec::new(), limits, is_cut: false }
    }

    /// Reads to the end, so that the program never blocks on a full pipe, and keeps the beginning.
    async fn drain(&mut self, stream: Option<impl AsyncRead + Unpin>) -> Result<(), OutputOverflow> {
        let Some(mut stream) = stream else { return Ok(()) };
        let mut buffer = vec![0; 16 << 10];
        let mut dropped = 0;
        // A pipe that cannot be read has ended.
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let room = self.limits.output - self.kept.len();
            self.kept.extend_from_slice(&buffer[..count.min(room)]);
            dropped += count.saturating_sub(room);
            self.is_cut = dropped > 0;
            if dropped > self.limits.surplus {
                return Err(OutputOverflow);
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// A running program and its group. Dropping it kills both.
struct RunningProgram {
    /// `None` once no process is left, or all of them are killed. Dropped before the child, which keeps the number of the group.
    group: Option<ProcessGroup>,
    child: Child,
}

impl RunningProgram {
    fn new(child: Child) -> Self {
        RunningProgram { group: Some(ProcessGroup::led_by(child.id())), child }
    }

    /// For a program of which no process is left.
    fn forget(mut self) {
        if let Some(group) = self.group.take() {
            group.forget();
        }
    }

    /// Kills the whole group and waits until its leader has ended: the next program must not start beside it.
    async fn kill(mut self) {
        let _ = self.child.start_kill();
        self.group = None;
        if tokio::time::timeout(KILL_TIMEOUT, self.child.wait()).await.is_err() {
            tracing::warn!(
                pid = self.child.id(),
                "a sandboxed program was killed, but has not ended: it waits for the disk or the network. If it stays, \
                 restart the machine"
            );
        }
    }
}

impl Drop for RunningProgram {
    /// The leader is killed first, so that it starts nothing more. It may not even lead its group yet: a group that is killed before
    /// it exists is not killed at all.
    fn drop(&mut self) {
        if self.group.is_some() {
            let _ = self.child.start_kill();
        }
    }
}

//! Runs a command to its end, or makes an end of it: when time is up, when it floods its output, when nobody waits any more.

use std::future::Future;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

use crate::job::{ExitReason, JobResult};
use crate::options::SandboxLimits;

/// How long a killed process may take to be gone.
const DEATH_TIMEOUT: Duration = Duration::from_secs(5);

/// What goes in, and how much may come out.
pub struct ProcessBounds {
    pub stdin: Vec<u8>,
    pub timeout: Duration,
    pub limits: SandboxLimits,
}

/// Runs `command`, which has to lead a process group of its own. Dropping the future kills the whole group. `watch` is given the
/// process's number and may end the run by ending itself.
pub async fn run<Watch>(
    mut command: Command,
    bounds: ProcessBounds,
    watch: impl FnOnce(u32) -> Watch,
) -> io::Result<JobResult>
where
    Watch: Future<Output = ExitReason>,
{
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut leader = GroupLeader::new(command.spawn()?);
    let child = &mut leader.child;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (OutputCapture::new(bounds.limits), OutputCapture::new(bounds.limits));

    let exit_reason = tokio::select! {
        ended = finish(child, feed(stdin, &bounds.stdin), out.drain(stdout), err.drain(stderr)) => ended?,
        exit_reason = watch(leader.pid) => exit_reason,
        () = tokio::time::sleep(bounds.timeout) => ExitReason::TimedOut(bounds.timeout),
    };
    match exit_reason {
        // Then nobody is left, and the group's number may come to mean somebody else.
        ExitReason::Exited(_) => leader.is_gone = true,
        _ => leader.kill().await,
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

/// Waits until everything is written and read and the child is gone.
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

/// More output than anybody has use for.
struct OutputOverflow;

/// Writes the input and closes it. A program need not read it, so no failure counts.
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

    /// Reads to the end, so that the program never waits for a full pipe, and keeps the beginning.
    async fn drain(&mut self, stream: Option<impl AsyncRead + Unpin>) -> Result<(), OutputOverflow> {
        let Some(mut stream) = stream else { return Ok(()) };
        let mut buffer = vec![0; 16 << 10];
        let mut thrown_away = 0;
        // A pipe that cannot be read has ended, as far as anybody can tell.
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            let room = self.limits.output - self.kept.len();
            self.kept.extend_from_slice(&buffer[..count.min(room)]);
            thrown_away += count.saturating_sub(room);
            self.is_cut = thrown_away > 0;
            if thrown_away > self.limits.surplus {
                return Err(OutputOverflow);
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// A child and the process group that it leads. Both die with the value.
struct GroupLeader {
    child: Child,
    pid: u32,
    is_gone: bool,
}

impl GroupLeader {
    fn new(child: Child) -> Self {
        let pid = child.id().unwrap_or_default();
        GroupLeader { child, pid, is_gone: false }
    }

    /// Kills everybody and waits until the leader is gone: the next one should not start beside it.
    async fn kill(&mut self) {
        self.signal();
        if tokio::time::timeout(DEATH_TIMEOUT, self.child.wait()).await.is_err() {
            tracing::warn!(pid = self.pid, "a sandboxed program does not die");
        }
    }

    /// The leader first: once it is dying it starts nobody, so those who are in its group then are all there will be.
    fn signal(&mut self) {
        let _ = self.child.start_kill();
        #[cfg(unix)]
        if let Some(group) = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw) {
            // The only failure is that nobody is left.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        self.is_gone = true;
    }
}

impl Drop for GroupLeader {
    fn drop(&mut self) {
        if !self.is_gone {
            self.signal();
        }
    }
}

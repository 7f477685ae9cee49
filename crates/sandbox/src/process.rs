//! Runs a command to its end, or makes an end of it: when time is up, when it floods its output, when nobody waits any more.

use std::future::Future;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};

use crate::job::{Ending, Outcome};
use crate::options::Limits;

/// How long a killed process may take to be gone.
const DEATH_TIMEOUT: Duration = Duration::from_secs(5);

/// What goes in, and how much may come out.
pub struct Bounds {
    pub stdin: Vec<u8>,
    pub timeout: Duration,
    pub limits: Limits,
}

/// Runs `command`, which has to lead a process group of its own. Dropping the future kills the whole group. `watch` is given the
/// process's number and may end the run by ending itself.
pub async fn run<Watch>(
    mut command: Command,
    bounds: Bounds,
    watch: impl FnOnce(u32) -> Watch,
) -> io::Result<Outcome>
where
    Watch: Future<Output = Ending>,
{
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let began = Instant::now();
    let mut leader = Leader::new(command.spawn()?);
    let child = &mut leader.child;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut out, mut err) = (Capture::new(bounds.limits), Capture::new(bounds.limits));

    let ending = tokio::select! {
        ended = finish(child, feed(stdin, &bounds.stdin), out.drain(stdout), err.drain(stderr)) => ended?,
        ending = watch(leader.pid) => ending,
        () = tokio::time::sleep(bounds.timeout) => Ending::TimedOut(bounds.timeout),
    };
    match ending {
        // Then nobody is left, and the group's number may come to mean somebody else.
        Ending::Exited(_) => leader.is_gone = true,
        _ => leader.kill().await,
    }
    let output_cut = out.is_cut || err.is_cut;
    Ok(Outcome { stdout: out.text(), stderr: err.text(), ending, output_cut, duration: began.elapsed() })
}

/// Waits until everything is written and read and the child is gone.
async fn finish(
    child: &mut Child,
    feeding: impl Future<Output = Result<(), Flood>>,
    stdout: impl Future<Output = Result<(), Flood>>,
    stderr: impl Future<Output = Result<(), Flood>>,
) -> io::Result<Ending> {
    match tokio::try_join!(feeding, stdout, stderr) {
        Ok(_) => child.wait().await.map(ending_of),
        Err(Flood) => Ok(Ending::TooMuchOutput),
    }
}

#[cfg(unix)]
fn ending_of(status: ExitStatus) -> Ending {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Exited(code),
        (None, signal) => Ending::Signalled(signal.unwrap_or_default()),
    }
}

#[cfg(not(unix))]
fn ending_of(status: ExitStatus) -> Ending {
    Ending::Exited(status.code().unwrap_or(-1))
}

/// More output than anybody has use for.
struct Flood;

/// Writes the input and closes it. A program need not read it, so no failure counts.
async fn feed(stdin: Option<ChildStdin>, input: &[u8]) -> Result<(), Flood> {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input).await;
    }
    Ok(())
}

/// The beginning of a stream.
struct Capture {
    kept: Vec<u8>,
    limits: Limits,
    is_cut: bool,
}

impl Capture {
    fn new(limits: Limits) -> Self {
        Capture { kept: Vec::new(), limits, is_cut: false }
    }

    /// Reads to the end, so that the program never waits for a full pipe, and keeps the beginning.
    async fn drain(&mut self, stream: Option<impl AsyncRead + Unpin>) -> Result<(), Flood> {
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
                return Err(Flood);
            }
        }
        Ok(())
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

/// A child and the process group that it leads. Both die with the value.
struct Leader {
    child: Child,
    pid: u32,
    is_gone: bool,
}

impl Leader {
    fn new(child: Child) -> Self {
        let pid = child.id().unwrap_or_default();
        Leader { child, pid, is_gone: false }
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

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.is_gone {
            self.signal();
        }
    }
}

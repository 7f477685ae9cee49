//! Runs a program with limits on its time and its output, and on the number of such programs. Blocks.

use std::io::{self, Read, Write};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use hob_process::ProcessGroup;

use super::process_slots::ProcessSlots;

/// Programs that run at the same time, for all callers together: indexing, uploads and files of questions. Each may use much memory.
const MAX_RUNNING: usize = 4;

/// Callers that wait for their turn. Each of them blocks a thread.
const MAX_WAITING: usize = 64;

static SLOTS: ProcessSlots = ProcessSlots::new(MAX_RUNNING, MAX_WAITING);

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// Bytes of output; the rest is not read.
    pub output: u64,
    /// From its start. The wait for its turn does not count.
    pub time: Duration,
}

/// Why there is no output.
#[derive(Debug)]
pub enum RunFailure {
    /// Too many callers wait.
    Busy,
    TimedOut,
    Io(io::Error),
}

impl From<io::Error> for RunFailure {
    fn from(error: io::Error) -> Self {
        RunFailure::Io(error)
    }
}

/// The output of a program that gets these pieces on stdin, when it is its turn.
pub fn output_in_turn(
    command: &mut Command,
    input: &[&[u8]],
    limits: RunLimits,
) -> Result<Vec<u8>, RunFailure> {
    let _slot = SLOTS.take().ok_or(RunFailure::Busy)?;
    output_of(command, input, limits)
}

/// The same at once, for a program that needs little. It and all that it started are killed when its output ends or the time is over.
pub fn output_of(command: &mut Command, input: &[&[u8]], limits: RunLimits) -> Result<Vec<u8>, RunFailure> {
    #[cfg(unix)]
    command.process_group(0);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut child = Ended { group: ProcessGroup::led_by(Some(child.id())), child };
    let (stdin, stdout) = (child.child.stdin.take(), child.child.stdout.take());
    let output = thread::scope(|scope| {
        scope.spawn(move || {
            // A process that fails early closes its stdin, and answers why.
            let _ = stdin.map(|mut stdin| input.iter().try_for_each(|piece| stdin.write_all(piece)));
        });
        let (sender, receiver) = channel();
        scope.spawn(move || {
            let mut output = Vec::new();
            let read = stdout.map_or(Ok(0), |stdout| stdout.take(limits.output).read_to_end(&mut output));
            // The receiver may have timed out.
            let _ = sender.send(read.map(|_| output));
        });
        let output = receiver.recv_timeout(limits.time);
        // Also ends both threads, whose pipes close.
        child.end();
        output
    });
    match output {
        Ok(output) => Ok(output?),
        Err(RecvTimeoutError::Timeout) => Err(RunFailure::TimedOut),
        Err(RecvTimeoutError::Disconnected) => Ok(Vec::new()),
    }
}

/// Kills the process when dropped, with those that it started: a script keeps its pipes open in its children.
struct Ended {
    child: Child,
    group: ProcessGroup,
}

impl Ended {
    fn end(&mut self) {
        // It may have ended.
        self.group.kill();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_started_ends_with_it() {
        let mut command = hob_process::std_command("/bin/sh", &[hob_process::Need::Basics]);
        // The child of the shell keeps the pipe open, so without its end this would wait for a year.
        command.args(["-c", "sleep 31536000 & echo begun; wait"]);
        let limits = RunLimits { output: 1 << 10, time: Duration::from_millis(200) };
        let output = output_of(&mut command, &[], limits);
        assert!(matches!(output, Err(RunFailure::TimedOut)), "{output:?}");
    }
}

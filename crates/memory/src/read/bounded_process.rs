//! Runs a program with limits on its time and its output. Blocks.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunLimits {
    /// Bytes of output; the rest is not read.
    pub output: u64,
    pub time: Duration,
}

/// Why there is no output.
#[derive(Debug)]
pub enum RunFailure {
    TimedOut,
    Io(io::Error),
}

impl From<io::Error> for RunFailure {
    fn from(error: io::Error) -> Self {
        RunFailure::Io(error)
    }
}

/// The output of a program that gets these pieces on stdin. It is killed when its output ends or the time is over.
pub fn output_of(command: &mut Command, input: &[&[u8]], limits: RunLimits) -> Result<Vec<u8>, RunFailure> {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut child = Ended(child);
    let (stdin, stdout) = (child.0.stdin.take(), child.0.stdout.take());
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

/// Kills the process when dropped.
struct Ended(Child);

impl Ended {
    fn end(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.end();
    }
}

//! Reads a file in a child process. A process can be stopped and has a memory limit, and a thread has neither.
//!
//! The process is this program, started with [`ReaderProcess::arguments`], and calls [`serve`]. It gets the bytes of the file on
//! stdin, and sets its limits before it reads them.

use std::io::{self, BufRead, Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use hob_process::{Need, std_command};
use serde::{Deserialize, Serialize};

use super::{Document, ReadError, ReadLimits, ReaderProcess, pdf};

/// The memory limit. A scanned book of a thousand pages needs a tenth.
const MEMORY_BYTES: u64 = 768 << 20;

/// The longest order, which is the first line.
const MAX_ORDER: u64 = 1 << 10;

/// Text as JSON may be six times as long.
const MAX_ESCAPE: u64 = 6;

/// Begins the answer. Other code may print before it, and JSON never contains it.
const MARK: u8 = 0x1e;

/// The order to the process. The bytes of the file follow.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    file_bytes: u64,
    text_bytes: usize,
    pages: usize,
    seconds: u64,
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Document(Document),
    Broken(String),
    TooMuchText,
}

/// Reads a PDF: in a child process if the limits name one, else in this process.
pub fn read_pdf(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    match &limits.reader_process {
        Some(process) => ask(process, bytes, limits),
        None => pdf::read(bytes.to_vec(), limits),
    }
}

fn broken(reason: impl Into<String>) -> ReadError {
    ReadError::Broken { reason: reason.into() }
}

fn ask(process: &ReaderProcess, bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let order = Order {
        file_bytes: limits.file_bytes,
        text_bytes: limits.text_bytes,
        pages: limits.pages,
        seconds: limits.time.as_secs().max(1),
    };
    let mut order = serde_json::to_vec(&order).map_err(io::Error::from)?;
    order.push(b'\n');
    let child = std_command(&process.program, &[Need::Libraries])
        .args(&process.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut child = Ended(child);
    let (input, output) = (child.0.stdin.take(), child.0.stdout.take());
    let most = (limits.text_bytes as u64).saturating_mul(MAX_ESCAPE).saturating_add(MAX_ORDER);
    let answer = thread::scope(|scope| {
        scope.spawn(move || {
            // A process that fails early closes its stdin, and answers why.
            let _ = input.map(|mut input| input.write_all(&order).and_then(|()| input.write_all(bytes)));
        });
        let (sender, receiver) = channel();
        scope.spawn(move || {
            let mut answer = Vec::new();
            let read = output.map_or(Ok(0), |output| output.take(most).read_to_end(&mut answer));
            // The receiver may have timed out.
            let _ = sender.send(read.map(|_| answer));
        });
        let answer = receiver.recv_timeout(limits.time);
        // Also ends both threads, whose pipes close.
        child.end();
        answer
    });
    match answer {
        Ok(answer) => match serde_json::from_slice(after_mark(&answer?)) {
            Ok(Answer::Document(document)) => Ok(document),
            Ok(Answer::Broken(reason)) => Err(broken(reason)),
            Ok(Answer::TooMuchText) => Err(ReadError::TooMuchText { limit: limits.text_bytes }),
            Err(_) => Err(broken("its reader ran out of memory or crashed")),
        },
        Err(RecvTimeoutError::Timeout) => {
            Err(broken(format!("reading it took more than {} seconds", limits.time.as_secs())))
        }
        Err(RecvTimeoutError::Disconnected) => Err(broken("its reader crashed")),
    }
}

fn after_mark(answer: &[u8]) -> &[u8] {
    answer.iter().position(|byte| *byte == MARK).map_or(&[], |at| &answer[at + 1..])
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

/// The child process: reads one file from `input` and writes its text to `output`.
pub fn serve(mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let order = order(&mut input)?;
    confine(order.seconds)?;
    let mut bytes = Vec::new();
    input.take(order.file_bytes).read_to_end(&mut bytes)?;
    let limits = ReadLimits {
        file_bytes: order.file_bytes,
        text_bytes: order.text_bytes,
        pages: order.pages,
        time: Duration::from_secs(order.seconds),
        reader_process: None,
        uploads: None,
    };
    let answer = match pdf::read(bytes, &limits) {
        Ok(document) => Answer::Document(document),
        Err(ReadError::TooMuchText { .. }) => Answer::TooMuchText,
        Err(ReadError::Broken { reason }) => Answer::Broken(reason),
        Err(error) => Answer::Broken(error.to_string()),
    };
    output.write_all(&[MARK])?;
    serde_json::to_writer(&mut output, &answer)?;
    output.flush()
}

fn order(input: &mut impl BufRead) -> io::Result<Order> {
    let mut line = Vec::new();
    input.take(MAX_ORDER).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

/// Sets limits on memory and time.
#[cfg(unix)]
fn confine(seconds: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};

    let exactly = |value| Rlimit { current: Some(value), maximum: Some(value) };
    // Not the address space: allocators reserve far more of it than they use.
    setrlimit(Resource::Data, exactly(MEMORY_BYTES))?;
    setrlimit(Resource::Cpu, exactly(seconds))?;
    setrlimit(Resource::Core, exactly(0))?;
    // It writes no file.
    setrlimit(Resource::Fsize, exactly(0))?;
    Ok(())
}

#[cfg(not(unix))]
fn confine(_: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
#[path = "child_process_tests.rs"]
mod tests;

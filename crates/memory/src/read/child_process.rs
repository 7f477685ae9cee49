//! Reads a PDF or a picture in a child process. A process can be stopped and has a memory limit, and a thread has neither.
//!
//! The process is this program, started with [`ReaderProcess::arguments`], and calls [`serve`]. It gets the bytes of the file on
//! stdin, and sets its limits before it reads them.

use std::io::{self, BufRead, Read, Write};
use std::time::Duration;

use hob_process::{Need, std_command};
use serde::{Deserialize, Serialize};

use super::bounded_process::{RunFailure, RunLimits, output_in_turn};
use super::page_picture::{MAX_PIXELS, PagePicture};
use super::{Document, ReadError, ReadLimits, ReaderProcess, pdf, pdf_scan};

/// The memory limit. A scanned book of a thousand pages needs a tenth.
const MEMORY_BYTES: u64 = 768 << 20;

/// The longest order, which is the first line.
const MAX_ORDER: u64 = 1 << 10;

/// Text as JSON may be six times as long.
const MAX_ESCAPE: u64 = 6;

/// Begins the answer. Other code may print before it, and JSON never contains it.
const MARK: u8 = 0x1e;

/// What is read of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum ReaderTask {
    /// The text of a PDF.
    Text,
    /// The picture on a page of a PDF.
    Page(u32),
    /// A picture file.
    Picture,
}

/// The order to the process. The bytes of the file follow.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    task: ReaderTask,
    file_bytes: u64,
    text_bytes: usize,
    pages: usize,
    seconds: u64,
}

/// One line. The bytes of a picture follow.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Document(Document),
    Picture { width: u32, height: u32 },
    Broken(String),
    TooMuchText,
}

/// Reads a PDF: in a child process if the limits name one, else in this process.
pub fn read_pdf(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let Some(process) = &limits.reader_process else { return pdf::read(bytes.to_vec(), limits) };
    match ask(process, ReaderTask::Text, bytes, limits)? {
        (Answer::Document(document), _) => Ok(document),
        _ => Err(crashed()),
    }
}

/// The picture on a page of a PDF, likewise.
pub(super) fn read_page(bytes: &[u8], page: u32, limits: &ReadLimits) -> Result<PagePicture, ReadError> {
    match &limits.reader_process {
        Some(process) => picture(ask(process, ReaderTask::Page(page), bytes, limits)?),
        None => pdf_scan::page_picture(bytes.to_vec(), page),
    }
}

/// A picture file, likewise.
pub(super) fn read_picture(bytes: &[u8], limits: &ReadLimits) -> Result<PagePicture, ReadError> {
    match &limits.reader_process {
        Some(process) => picture(ask(process, ReaderTask::Picture, bytes, limits)?),
        None => PagePicture::decode(bytes),
    }
}

fn picture(answer: (Answer, Vec<u8>)) -> Result<PagePicture, ReadError> {
    match answer {
        (Answer::Picture { width, height }, grey) => {
            PagePicture::new(width, height, grey).ok_or_else(crashed)
        }
        _ => Err(crashed()),
    }
}

fn broken(reason: impl Into<String>) -> ReadError {
    ReadError::Broken { reason: reason.into() }
}

fn crashed() -> ReadError {
    broken("its reader ran out of memory or crashed")
}

/// The answer of the process and the bytes after it. Errors are returned as such.
fn ask(
    process: &ReaderProcess,
    task: ReaderTask,
    bytes: &[u8],
    limits: &ReadLimits,
) -> Result<(Answer, Vec<u8>), ReadError> {
    let order = Order {
        task,
        file_bytes: limits.file_bytes,
        text_bytes: limits.text_bytes,
        pages: limits.pages,
        seconds: limits.time.as_secs().max(1),
    };
    let mut order = serde_json::to_vec(&order).map_err(io::Error::from)?;
    order.push(b'\n');
    let most = match task {
        ReaderTask::Text => (limits.text_bytes as u64).saturating_mul(MAX_ESCAPE),
        ReaderTask::Page(_) | ReaderTask::Picture => MAX_PIXELS,
    };
    let run = RunLimits { output: most.saturating_add(MAX_ORDER), time: limits.time };
    let mut command = std_command(&process.program, &[Need::Libraries]);
    let said = match output_in_turn(command.args(&process.arguments), &[&order, bytes], run) {
        Ok(said) => said,
        Err(RunFailure::Busy) => return Err(ReadError::Busy),
        Err(RunFailure::Io(error)) => return Err(error.into()),
        Err(RunFailure::TimedOut) => {
            return Err(broken(format!("reading it took more than {} seconds", limits.time.as_secs())));
        }
    };
    let said = after_mark(&said);
    let end = said.iter().position(|byte| *byte == b'\n').unwrap_or(said.len());
    match serde_json::from_slice(&said[..end]) {
        Ok(Answer::Broken(reason)) => Err(broken(reason)),
        Ok(Answer::TooMuchText) => Err(ReadError::TooMuchText { limit: limits.text_bytes }),
        Ok(answer) => Ok((answer, said.get(end + 1..).unwrap_or_default().to_vec())),
        Err(_) => Err(crashed()),
    }
}

fn after_mark(answer: &[u8]) -> &[u8] {
    answer.iter().position(|byte| *byte == MARK).map_or(&[], |at| &answer[at + 1..])
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
        ocr: None,
    };
    let read = match order.task {
        ReaderTask::Text => {
            pdf::read(bytes, &limits).map(|document| (Answer::Document(document), Vec::new()))
        }
        ReaderTask::Page(page) => pdf_scan::page_picture(bytes, page).map(pixels),
        ReaderTask::Picture => PagePicture::decode(&bytes).map(pixels),
    };
    let (answer, rest) = match read {
        Ok(answer) => answer,
        Err(ReadError::TooMuchText { .. }) => (Answer::TooMuchText, Vec::new()),
        Err(ReadError::Broken { reason }) => (Answer::Broken(reason), Vec::new()),
        Err(error) => (Answer::Broken(error.to_string()), Vec::new()),
    };
    output.write_all(&[MARK])?;
    serde_json::to_writer(&mut output, &answer)?;
    output.write_all(b"\n")?;
    output.write_all(&rest)?;
    output.flush()
}

fn pixels(picture: PagePicture) -> (Answer, Vec<u8>) {
    (Answer::Picture { width: picture.width, height: picture.height }, picture.grey)
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

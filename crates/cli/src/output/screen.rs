//! The terminal that answers, notes, the log and progress bars share. A line on stderr starts on a new line, below an answer
//! that is still being written and above the progress bars.

use std::io::{self, Write};
use std::ops::Deref;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use hob_core::with_request_id;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use terminal_size::{Width, terminal_size_of};

/// All progress bars of the process. Hidden if stderr is not a terminal.
static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// The number of bars.
static SHOWN: AtomicUsize = AtomicUsize::new(0);

/// Whether the cursor is on a line that has text and is not finished.
static IS_LINE_OPEN: AtomicBool = AtomicBool::new(false);

/// A visible progress bar. Dropping it removes it.
pub struct ActiveBar(ProgressBar);

impl ActiveBar {
    pub fn new(bar: ProgressBar) -> Self {
        SHOWN.fetch_add(1, Ordering::Relaxed);
        ActiveBar(BARS.add(bar))
    }
}

impl Deref for ActiveBar {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for ActiveBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
        BARS.remove(&self.0);
        SHOWN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether stderr shows colours.
pub fn has_colours() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// The width of stderr, if it is a terminal that reports it.
pub fn width() -> Option<u16> {
    terminal_size_of(io::stderr()).map(|(Width(columns), _)| columns)
}

/// Writes whole lines on stderr.
pub fn write(lines: &str) -> io::Result<()> {
    if SHOWN.load(Ordering::Relaxed) > 0 && !BARS.is_hidden() {
        let lines = lines.trim_end_matches('\n');
        return if has_colours() { BARS.println(lines) } else { BARS.println(strip_str(lines).to_string()) };
    }
    end_line()?;
    anstream::stderr().write_all(lines.as_bytes())
}

/// Hides the progress bars during `work`.
pub fn without_bars<T>(work: impl FnOnce() -> T) -> T {
    // `suspend` would hold a lock that the end of a bar needs, so Ctrl-C would wait for `work`.
    let _ = BARS.clear();
    BARS.set_draw_target(ProgressDrawTarget::hidden());
    let done = work();
    BARS.set_draw_target(ProgressDrawTarget::stderr());
    done
}

/// Records that the last written text did not end its line. Only for text on the same terminal as stderr.
pub fn leave_line_open() {
    IS_LINE_OPEN.store(true, Ordering::Relaxed);
}

/// Records that the line has ended. Returns `false` if it had already ended.
pub fn close_line() -> bool {
    IS_LINE_OPEN.swap(false, Ordering::Relaxed)
}

/// Ends the line if it is open.
pub fn end_line() -> io::Result<()> {
    if close_line() { io::stderr().write_all(b"\n") } else { Ok(()) }
}

/// A writer for the log, which writes one line at a time, with the id of the request that caused it.
pub struct LogLines;

impl Write for LogLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        write(&String::from_utf8_lossy(&with_request_id(line)))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

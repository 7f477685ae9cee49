//! Programs to run, and their results.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScriptLanguage {
    Python,
    Sh,
}

/// A file or directory of this machine that the code may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    pub host: PathBuf,
    /// The path inside: `/work`, `/data`, `/mnt`, or below; an entry of the allowlist also at its own path.
    pub inside: PathBuf,
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub language: ScriptLanguage,
    pub code: String,
    pub stdin: Vec<u8>,
    /// Read-only, and only from the allowlist.
    pub mounts: Vec<Mount>,
    /// The time limit; `None` for that of the sandbox, which is also the maximum.
    pub timeout: Option<Duration>,
}

impl Job {
    pub fn new(language: ScriptLanguage, code: impl Into<String>) -> Self {
        Job { language, code: code.into(), stdin: Vec::new(), mounts: Vec::new(), timeout: None }
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    Exited(i32),
    /// Often because of a limit, such as processor time.
    Signalled(i32),
    TimedOut(Duration),
    TooMuchOutput,
    TooMuchMemory,
    TooManyFiles,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResult {
    pub stdout: String,
    pub stderr: String,
    pub exit_reason: ExitReason,
    /// Whether some of the output was dropped.
    pub output_cut: bool,
    pub duration: Duration,
}

impl JobResult {
    pub fn exit_code(&self) -> Option<i32> {
        match self.exit_reason {
            ExitReason::Exited(code) => Some(code),
            _ => None,
        }
    }

    pub fn timed_out(&self) -> bool {
        matches!(self.exit_reason, ExitReason::TimedOut(_))
    }

    /// The result as text for a model. Errors come first, because the end of a long text may be cut.
    pub fn report(&self) -> String {
        let mut report = match self.exit_reason {
            ExitReason::Exited(code) => format!("exit code: {code}\n"),
            ExitReason::Signalled(signal) => format!("ended by signal {signal}\n"),
            ExitReason::TimedOut(after) => {
                format!("stopped: timed out after {} s\n", after.as_secs_f32())
            }
            ExitReason::TooMuchOutput => "stopped: too much output\n".to_owned(),
            ExitReason::TooMuchMemory => "stopped: too much memory\n".to_owned(),
            ExitReason::TooManyFiles => "stopped: too many files\n".to_owned(),
        };
        if self.output_cut {
            report.push_str("some of the output was dropped\n");
        }
        for (name, text) in [("stderr", &self.stderr), ("stdout", &self.stdout)] {
            if !text.is_empty() {
                let _ = writeln!(report, "{name}:\n{}", text.trim_end_matches('\n'));
            }
        }
        if self.stdout.is_empty() && self.stderr.is_empty() {
            report.push_str("no output\n");
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_all_results() {
        let quiet = JobResult {
            stdout: String::new(),
            stderr: String::new(),
            exit_reason: ExitReason::Exited(0),
            output_cut: false,
            duration: Duration::ZERO,
        };
        assert_eq!(quiet.report(), "exit code: 0\nno output\n");
        let noisy = JobResult {
            stdout: "out\n".into(),
            stderr: "err".into(),
            exit_reason: ExitReason::TimedOut(Duration::from_millis(1500)),
            output_cut: true,
            ..quiet
        };
        let expected =
            "stopped: timed out after 1.5 s\nsome of the output was dropped\nstderr:\nerr\nstdout:\nout\n";
        assert_eq!(noisy.report(), expected);
        assert_eq!((noisy.exit_code(), noisy.timed_out()), (None, true));
    }
}

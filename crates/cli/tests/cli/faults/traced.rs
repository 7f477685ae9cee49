//! `hob`, whose changes of files are counted and recorded, and which ends at one of them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tokio::process::Command;

use super::tools::disk_faults;
use crate::home::Home;

/// What happens at a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// The process ends before the change. Earlier ones stay, as after `kill -9`.
    Kill,
    /// The same in the middle of a write.
    TornWrite,
    /// The machine ends: all that was not synced is lost.
    PowerCut,
    /// The same, but some of it has reached the disk.
    PowerCutWithRests,
}

/// The record of the changes, outside of the home.
pub struct Journal {
    directory: TempDir,
    crash: Crash,
}

impl Journal {
    pub fn new(crash: Crash) -> Self {
        Journal { directory: tempfile::tempdir().expect("a directory"), crash }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("journal")
    }

    /// `hob` with these arguments, which ends at the change of this number, counted from 1.
    pub fn hob(&self, home: &Home, kill_at: Option<usize>, arguments: &[&str]) -> Command {
        let mut before = vec!["run".to_owned(), "--dir".to_owned(), path_text(home.directory())];
        if let Some(number) = kill_at {
            before.extend(["--kill-at".to_owned(), number.to_string()]);
        }
        match self.crash {
            Crash::Kill => {}
            Crash::TornWrite => before.push("--torn".to_owned()),
            Crash::PowerCut | Crash::PowerCutWithRests => {
                before.extend(["--journal".to_owned(), path_text(&self.file())]);
            }
        }
        before.push("--".to_owned());
        home.hob_under(disk_faults(), &before, arguments)
    }

    /// Brings the home to the state after the crash.
    pub async fn settle(&self, home: &Home, seed: usize) {
        let seed = seed.to_string();
        let mut command = Command::new(disk_faults());
        command.arg("restore").arg("--dir").arg(home.directory()).arg("--journal").arg(self.file());
        match self.crash {
            Crash::Kill | Crash::TornWrite => return,
            Crash::PowerCut => {}
            Crash::PowerCutWithRests => {
                command.args(["--seed", &seed]);
            }
        }
        let ran = command.stdin(Stdio::null()).output().await.expect("it runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

fn path_text(path: &Path) -> String {
    path.to_str().expect("text").to_owned()
}

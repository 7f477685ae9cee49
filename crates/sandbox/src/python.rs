//! Finds a Python that bubblewrap can mount.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::runtime_check::{last_error_line, run_probe};

/// The user's interpreter, then that of the system.
pub const CANDIDATES: [&str; 2] = ["python3", "/usr/bin/python3"];

/// The file in PATH may be a script or a link (pyenv, venv, uv), so the interpreter is asked for its own path.
const QUESTION: &str = "import os, sys\n\
    print(os.path.realpath(getattr(sys, '_base_executable', None) or sys.executable))\n\
    print(os.path.realpath(sys.base_prefix))";

/// An interpreter and what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// Absolute, without links.
    pub program: String,
    /// The directory of the installation; `None` for `/usr`, which is always mounted.
    pub prefix: Option<PathBuf>,
}

/// Asks an interpreter for its path, as the user of the sandbox, who must be able to run it.
pub async fn identify(mut command: Command, candidate: &str) -> Result<Python, String> {
    command.args(["-I", "-c", QUESTION]);
    let answer = run_probe(command, Path::new(candidate)).await.map_err(|error| error.to_string())?;
    if !answer.status.success() {
        return Err(format!("{candidate}: {}", last_error_line(&answer)));
    }
    parse(&String::from_utf8_lossy(&answer.stdout))
        .ok_or_else(|| format!("{candidate} is installed in a directory that cannot be mounted"))
}

/// Parses the two lines of the answer.
fn parse(answer: &str) -> Option<Python> {
    let mut lines = answer.lines();
    let (program, prefix) = (lines.next()?, Path::new(lines.next()?));
    if Path::new(program).starts_with("/usr") {
        return Some(Python { program: program.to_owned(), prefix: None });
    }
    let is_inside = Path::new(program).starts_with(prefix) && prefix.is_absolute();
    (is_inside && is_narrow(prefix))
        .then(|| Python { program: program.to_owned(), prefix: Some(prefix.to_owned()) })
}

/// A home directory or `/` must not be mounted.
fn is_narrow(prefix: &Path) -> bool {
    let depth = prefix.components().count() - 1;
    let least = if prefix.starts_with("/home") || prefix.starts_with("/Users") { 3 } else { 2 };
    depth >= least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_directory_of_an_interpreter_is_mounted() {
        let python = |program: &str, prefix: Option<&str>| {
            Some(Python { program: program.into(), prefix: prefix.map(PathBuf::from) })
        };
        assert_eq!(parse("/usr/bin/python3.11\n/usr\n"), python("/usr/bin/python3.11", None));
        let pyenv = "/home/ann/.pyenv/versions/3.12.1";
        assert_eq!(
            parse(&format!("{pyenv}/bin/python3.12\n{pyenv}\n")),
            python(&format!("{pyenv}/bin/python3.12"), Some(pyenv))
        );
        for broad in ["/bin/python3\n/\n", "/root/bin/python3\n/root\n", "/home/ann/bin/python3\n/home/ann\n"]
        {
            assert_eq!(parse(broad), None, "{broad}");
        }
        assert_eq!(parse("/opt/a/bin/python3\n/opt/other/place\n"), None);
        assert_eq!(parse("nonsense"), None);
    }
}

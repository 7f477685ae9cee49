//! A home directory for one test, and `hob` run in it.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

pub use hob_testkit::free_port;
use hob_testkit::tied_command;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Long enough on a busy machine. A wait that is not over by then has failed.
pub const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// An address on which nothing listens.
pub const NOWHERE: &str = "http://127.0.0.1:9";

/// The certificate authorities of `hob`: one that has signed nothing.
pub const ROOT_CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/root_certificate.pem");

/// Engines with a server.
const ENGINES: [&str; 5] = ["ollama", "vllm", "sglang", "llamacpp", "litellm"];

/// The result of a run of `hob`.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The directories are deleted with the last clone: a running server has one.
#[derive(Clone)]
pub struct Home {
    directory: Arc<TempDir>,
    documents: Arc<TempDir>,
}

impl Home {
    /// Without a configuration file.
    pub fn empty() -> Self {
        Self::of(tempfile::tempdir().expect("a directory"))
    }

    fn of(directory: TempDir) -> Self {
        let documents = tempfile::tempdir().expect("a directory");
        Home { directory: Arc::new(directory), documents: Arc::new(documents) }
    }

    /// In this directory, which is deleted at the end.
    #[cfg(target_os = "linux")]
    pub fn in_directory(directory: TempDir) -> Self {
        Self::of(directory)
    }

    /// With this configuration file.
    pub fn with_config(text: &str) -> Self {
        let home = Self::empty();
        std::fs::write(home.config_file(), text).expect("a file");
        home
    }

    /// With the given engines at their addresses, the first of them as the default, and no others: a test must not find
    /// what happens to run on the machine.
    pub fn with_engines(engines: &[(&str, &str)]) -> Self {
        Self::with_config(&engines_config(engines))
    }

    /// The user's files: nothing in Hob's own directory is ever indexed.
    pub fn documents(&self) -> &std::path::Path {
        self.documents.path()
    }

    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    pub fn config_file(&self) -> PathBuf {
        self.directory.path().join("config.toml")
    }

    pub fn hob<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        self.program(env!("CARGO_BIN_EXE_hob"), arguments)
    }

    /// `hob`, started with `exec` by a shell after these commands.
    pub fn hob_after(&self, commands: &str, arguments: &[&str]) -> Command {
        let script = format!("{commands} && exec \"$0\" \"$@\"");
        let arguments =
            ["-c", &script, env!("CARGO_BIN_EXE_hob")].into_iter().chain(arguments.iter().copied());
        self.program("sh", &arguments.collect::<Vec<_>>())
    }

    /// `hob`, started by another program, which gets these arguments before it.
    #[cfg(target_os = "linux")]
    pub fn hob_under<A: AsRef<OsStr>>(&self, program: &str, before: &[A], arguments: &[&str]) -> Command {
        let mut all: Vec<&OsStr> = before.iter().map(AsRef::as_ref).collect();
        all.push(OsStr::new(env!("CARGO_BIN_EXE_hob")));
        all.extend(arguments.iter().map(OsStr::new));
        self.program(program, &all)
    }

    /// A program with the environment of `hob`.
    pub fn program<A: AsRef<OsStr>>(&self, program: &str, arguments: &[A]) -> Command {
        let mut command = Command::from(tied_command(program));
        command
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.directory.path())
            .env("HOB_HOME", self.directory.path())
            // Not that of the test machine.
            .env("TZ", "UTC")
            // The model hub, which no test may use.
            .env("HF_ENDPOINT", NOWHERE)
            // Instead of those of the system: an unoptimised program takes a tenth of a second to read them.
            .env("SSL_CERT_FILE", ROOT_CERTIFICATE)
            // The threads of a model that wait for each other leave the processor to other tests.
            .env("OMP_WAIT_POLICY", "PASSIVE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs `hob` and waits for its end.
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.hob(arguments)).await
    }

    /// The same with text on stdin.
    pub async fn run_with_stdin(&self, arguments: &[&str], stdin: &[u8]) -> Ran {
        let mut child = self.hob(arguments).stdin(Stdio::piped()).spawn().expect("hob starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        // A command that reads nothing may have ended already.
        match pipe.write_all(stdin).await {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.expect("hob reads"),
        }
        drop(pipe);
        Ran::from(child.wait_with_output().await.expect("hob ends"))
    }
}

pub async fn finish(mut command: Command) -> Ran {
    Ran::from(command.output().await.expect("hob runs"))
}

impl From<std::process::Output> for Ran {
    fn from(output: std::process::Output) -> Self {
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("text"),
            stderr: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// A configuration with these engines only. The server is not announced: a test must not be seen on the network of the machine.
pub fn engines_config(engines: &[(&str, &str)]) -> String {
    let mut text = "[server]\nannounce = false\nhost = \"127.0.0.1\"\n[engine]\n".to_owned();
    if let Some((default, _)) = engines.first() {
        writeln!(text, "default = \"{default}\"").expect("a string takes all");
    }
    for key in ENGINES {
        let address = engines.iter().find(|(known, _)| *known == key).map_or(NOWHERE, |(_, address)| address);
        writeln!(text, "[engine.{key}]\nhost = \"{address}\"").expect("a string takes all");
    }
    text.push_str("[engine.cloud]\n");
    for provider in ["openai", "anthropic", "gemini"] {
        writeln!(text, "{provider}_host = \"{NOWHERE}\"").expect("a string takes all");
    }
    text
}

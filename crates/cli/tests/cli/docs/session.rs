//! Runs a page as a reader would, with a home directory, a shell, and the servers that the page starts.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hob_testkit::{FakeServer, Gateway, GatewayScript, tied_command};
use tokio::process::Command;
use tokio::time::timeout;
use toml::{Table, Value};

use super::engine;
use super::output_match::matches_output;
use super::page::{Action, Outcome, Part, Step};
use crate::home::{Home, NOWHERE, ROOT_CERTIFICATE, engines_config, free_port};
use crate::real_engine::directory_with_pip;
use crate::running::Running;

/// The time limit for a code block.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Printed after each command, before its exit code.
const END_OF_STEP: char = '\u{1e}';

/// What a page needs to be running.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// The models of the Ollama; without models, none is running.
    pub ollama: &'static [&'static str],
    /// Whether models can be downloaded.
    pub hub: bool,
    /// Whether a messaging gateway is running.
    pub gateway: bool,
}

pub struct Session {
    // It ends before its home is deleted.
    server: Option<Running>,
    home: Home,
    path: String,
    /// The settings that isolate the test from this machine.
    settings: Table,
    /// The addresses on the page, and those of this run.
    places: Vec<(String, String)>,
    _ollama: Option<FakeServer>,
    _gateway: Option<Gateway>,
}

impl Session {
    pub async fn start(setup: Setup) -> Self {
        let home = Home::empty();
        let ollama = if setup.ollama.is_empty() { None } else { Some(engine::start(setup.ollama).await) };
        let engines = match &ollama {
            Some(ollama) => engines_config(&[("ollama", &ollama.url())]),
            None => engines_config(&[]),
        };
        let gateway = if setup.gateway { Some(Gateway::start(GatewayScript::default()).await) } else { None };
        let mut places = Vec::new();
        if let Some(ollama) = &ollama {
            places.push(("localhost:11434".to_owned(), ollama.address().to_string()));
        }
        if let Some(gateway) = &gateway {
            let address = gateway.url().replace("ws://", "").replace("/ws", "");
            places.push(("127.0.0.1:18789".to_owned(), address));
        }
        let mut directories = vec![parent(env!("CARGO_BIN_EXE_hob"))];
        if setup.hub {
            directories.push(directory_with_pip(&home));
        }
        let path =
            directories.iter().map(|directory| format!("{}:", directory.display())).collect::<String>()
                + &std::env::var("PATH").expect("a path");
        let mut settings = toml::from_str(&engines).expect("TOML");
        // A program at the default port of this machine must not affect the test.
        merge(&mut settings, listening_on(free_port()));
        Session { server: None, home, path, settings, places, _ollama: ollama, _gateway: gateway }
    }

    /// Runs the block. The error says what is wrong with the page.
    pub async fn follow(&mut self, part: &Part) -> Result<(), String> {
        match timeout(TIMEOUT, self.perform(&part.action)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("it takes longer than {} s", TIMEOUT.as_secs())),
        }
    }

    async fn perform(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Configure(text) => {
                self.isolate();
                let settings: Table =
                    toml::from_str(&self.here(text)).map_err(|error| format!("this is no TOML: {error}"))?;
                self.configure(settings);
                Ok(())
            }
            Action::Script(text) => {
                let mut pending = String::new();
                for line in text.lines() {
                    if let Some(arguments) = serve_arguments(line) {
                        self.run_script(&pending).await?;
                        pending.clear();
                        self.serve(&arguments).await;
                    } else {
                        pending += line;
                        pending.push('\n');
                    }
                }
                self.run_script(&pending).await
            }
            Action::Console { steps, outcome } => {
                for steps in steps.chunk_by(|one, other| !is_serve(one) && !is_serve(other)) {
                    match serve_arguments(&steps[0].command) {
                        Some(arguments) => {
                            self.serve(&arguments).await;
                            self.compare(&steps[0], &self.summary())?;
                        }
                        None => self.run_steps(steps, *outcome).await?,
                    }
                }
                Ok(())
            }
        }
    }

    async fn run_script(&self, text: &str) -> Result<(), String> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let (success, printed) = self.bash(&format!("set -euo pipefail\n{text}")).await;
        if success { Ok(()) } else { Err(format!("it fails:\n{text}\n{printed}")) }
    }

    async fn run_steps(&self, steps: &[Step], outcome: Outcome) -> Result<(), String> {
        let script: String = steps
            .iter()
            .map(|step| format!("{}\nprintf '{END_OF_STEP}%s{END_OF_STEP}' \"$?\"\n", step.command))
            .collect();
        let (_, printed) = self.bash(&script).await;
        let mut pieces = printed.split(END_OF_STEP);
        for (index, step) in steps.iter().enumerate() {
            let (Some(printed), Some(code)) = (pieces.next(), pieces.next()) else {
                return Err(format!("the shell ended before '{}' did", step.command));
            };
            let must_fail = outcome == Outcome::Failure && index + 1 == steps.len();
            if (code != "0") != must_fail {
                return Err(format!("'{}' ends with {code}:\n{printed}", step.command));
            }
            self.compare(step, printed)?;
        }
        Ok(())
    }

    fn compare(&self, step: &Step, printed: &str) -> Result<(), String> {
        let shown: Vec<String> = step.shown.iter().map(|line| self.here(line)).collect();
        if shown.is_empty() || matches_output(&shown, printed) {
            return Ok(());
        }
        Err(format!(
            "'{}' prints something else.\n--- shown\n{}\n--- printed\n{printed}",
            step.command,
            shown.join("\n")
        ))
    }

    /// Starts the server with these arguments on a free port. Stops a running one first, as a reader would.
    async fn serve(&mut self, arguments: &[String]) {
        if let Some(running) = self.server.take() {
            running.terminate().await;
        }
        self.isolate();
        let mut arguments = arguments.to_vec();
        let mut port = "8000".to_owned();
        if let Some(at) = arguments.iter().position(|argument| argument == "--port") {
            port = arguments.drain(at..=at + 1).next_back().expect("a port");
        }
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_hob")));
        command.arg("serve").args(arguments).args(["--port", "0"]);
        let running = Running::of(command).await;
        let address: SocketAddr = running.address().parse().expect("an address");
        self.places.retain(|(page, _)| !page.ends_with(&format!(":{port}")));
        for host in ["localhost", "127.0.0.1", "0.0.0.0"] {
            self.places.push((format!("{host}:{port}"), address.to_string()));
        }
        // For commands that read the port from the configuration.
        merge(&mut self.settings, listening_on(address.port()));
        self.isolate();
        self.server = Some(running);
    }

    fn summary(&self) -> String {
        self.server.as_ref().map(|running| running.summary.join("\n")).unwrap_or_default()
    }

    /// Whether the script succeeded, and its output.
    async fn bash(&self, script: &str) -> (bool, String) {
        if script.contains("hob init") {
            // The reader has no configuration yet, so the test removes its own.
            let _ = std::fs::remove_file(self.config_file());
        } else {
            self.isolate();
        }
        let output = self
            .command(Path::new("bash"))
            // Both streams in the order of a terminal.
            .args(["-c", &format!("exec 2>&1\n{}", self.here(script))])
            .output()
            .await
            .expect("bash runs");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::from(tied_command(program));
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home.directory())
            .env("LANG", "C.UTF-8")
            .env("HF_ENDPOINT", NOWHERE)
            .env("SSL_CERT_FILE", ROOT_CERTIFICATE)
            .env("OMP_WAIT_POLICY", "PASSIVE")
            .current_dir(self.home.directory())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// The text with the addresses of this run.
    fn here(&self, text: &str) -> String {
        self.places.iter().fold(text.to_owned(), |text, (page, ours)| text.replace(page, ours))
    }

    fn config_file(&self) -> PathBuf {
        self.home.directory().join(".hob/config.toml")
    }

    /// Makes sure that only servers of the test are used.
    fn isolate(&self) {
        self.configure(self.settings.clone());
    }

    fn configure(&self, settings: Table) {
        let file = self.config_file();
        let present = std::fs::read_to_string(&file).unwrap_or_default();
        let mut table: Table = toml::from_str(&present).expect("TOML");
        merge(&mut table, settings);
        std::fs::create_dir_all(parent(&file)).expect("a directory");
        std::fs::write(file, toml::to_string(&table).expect("TOML")).expect("a file");
    }
}

fn parent(path: impl AsRef<Path>) -> PathBuf {
    path.as_ref().parent().expect("a file in a directory").to_owned()
}

/// The setting for the server's port.
fn listening_on(port: u16) -> Table {
    let server = Table::from_iter([("port".to_owned(), Value::from(i64::from(port)))]);
    Table::from_iter([("server".to_owned(), Value::from(server))])
}

fn merge(table: &mut Table, settings: Table) {
    for (name, value) in settings {
        match (table.get_mut(&name), value) {
            (Some(Value::Table(inner)), Value::Table(settings)) => merge(inner, settings),
            (_, value) => {
                table.insert(name, value);
            }
        }
    }
}

fn is_serve(step: &Step) -> bool {
    serve_arguments(&step.command).is_some()
}

/// The arguments of a command that starts the server; `None` for other commands.
fn serve_arguments(command: &str) -> Option<Vec<String>> {
    let command = command.split(" #").next().unwrap_or_default().trim().trim_end_matches('&');
    let rest = command.strip_prefix("hob serve").or_else(|| command.strip_prefix("./dev serve"))?;
    assert!(!rest.contains(['\'', '"', '|', '\\']), "too clever for this test: {command}");
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

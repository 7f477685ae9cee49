//! What a service consists of: its files, and the calls of the service manager. Plain data: writes nothing and starts nothing.

use std::path::PathBuf;

/// In every file that `hob service` writes and may replace.
pub const MARK: &str = "Written by 'hob service install'";

/// Variables of Hob that decide where its files are. Keys are not among them: the file is readable by others.
pub const VARIABLES: [&str; 2] = ["HOB_HOME", "HOB_CONFIG"];

/// One service, for one service manager.
pub struct ServiceDefinition {
    /// The first one is what `--print` shows. Empty if a package has installed the service.
    pub files: Vec<ServiceFile>,
    /// After the files are written.
    pub prepare: Vec<ManagerCall>,
    pub enable: Vec<ManagerCall>,
    pub start: ManagerCall,
    /// Instead of `start`, after a change.
    pub restart: ManagerCall,
    pub stop: ManagerCall,
    /// Before the files are removed.
    pub disable: Vec<ManagerCall>,
    /// After the files are removed.
    pub forget: Vec<ManagerCall>,
    /// Prints the state.
    pub state: ManagerCall,
    pub read_state: fn(&str) -> ServiceState,
    /// The command that shows the log.
    pub log: String,
    /// What the user should know after the installation.
    pub note: Option<&'static str>,
}

pub struct ServiceFile {
    pub path: PathBuf,
    pub text: String,
    pub mode: u32,
    pub owner: FileOwner,
}

/// Who changes a file after it was written.
pub enum FileOwner {
    /// `hob service`, which replaces and removes it.
    Hob,
    /// The administrator. These calls follow when the file is new.
    Administrator { after_creation: Vec<ManagerCall> },
}

/// A call of `systemctl` or a similar program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagerCall {
    pub program: &'static str,
    pub arguments: Vec<String>,
    pub failure: CallFailure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFailure {
    Report,
    /// The call undoes what may not be there.
    Ignore,
}

impl ManagerCall {
    pub fn new(program: &'static str, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        ManagerCall { program, arguments, failure: CallFailure::Report }
    }

    pub fn ignoring_failure(mut self) -> Self {
        self.failure = CallFailure::Ignore;
        self
    }

    /// As a user would type it.
    pub fn shown(&self) -> String {
        format!("{} {}", self.program, self.arguments.join(" "))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    Running,
    Starting,
    Stopped,
    Failed,
}

impl ServiceState {
    pub fn as_str(self) -> &'static str {
        match self {
            ServiceState::Running => "running",
            ServiceState::Starting => "starting",
            ServiceState::Stopped => "stopped",
            ServiceState::Failed => "failed",
        }
    }
}

/// What the files of a service contain about this installation. All paths are absolute, and free of control characters.
#[derive(Debug, Clone)]
pub struct ServiceContext {
    pub executable: String,
    /// Hob's variables that are set now, so that the service uses the same files.
    pub environment: Vec<(&'static str, String)>,
    /// Hob's directory.
    pub hob_home: String,
    pub user_home: PathBuf,
    /// `$XDG_CONFIG_HOME`, else `~/.config`.
    pub config_directory: PathBuf,
    pub user_id: u32,
    /// The address for `hob serve --host`; `None` if the configuration names it.
    pub host: Option<&'static str>,
}

impl ServiceContext {
    /// The arguments of `hob` that start the server.
    pub fn serve_arguments(&self) -> Vec<&'static str> {
        let host = self.host.map(|host| ["--host", host]);
        ["serve"].into_iter().chain(host.into_iter().flatten()).collect()
    }
}

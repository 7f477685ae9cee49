//! `hob service`, with a systemctl that notes how it is called.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::home::{Home, Ran, finish};

/// A home with a fake systemctl.
struct Service {
    home: Home,
}

impl Service {
    /// The file `state` is what `systemctl is-active` prints; the file `failure` is what all other calls print before they fail, if it is not empty.
    fn new() -> Self {
        let home = Home::empty();
        let programs = home.directory().join("programs");
        std::fs::create_dir(&programs).expect("a directory");
        let script = "#!/bin/sh\n\
            echo \"$*\" >>\"$HOME/calls\"\n\
            case $* in *is-active*) cat \"$HOME/state\"; exit 3 ;; esac\n\
            if [ -s \"$HOME/failure\" ]; then cat \"$HOME/failure\" >&2; exit 1; fi\n";
        let program = programs.join("systemctl");
        std::fs::write(&program, script).expect("a file");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let service = Service { home };
        service.set("state", "inactive\n");
        service.set("failure", "");
        service
    }

    fn set(&self, name: &str, text: &str) {
        std::fs::write(self.home.directory().join(name), text).expect("a file");
    }

    fn unit(&self) -> PathBuf {
        self.home.directory().join(".config/systemd/user/hob.service")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.home.hob(&[&["service"][..], arguments].concat());
        let programs = self.home.directory().join("programs");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", programs.display()));
        command
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.command(arguments)).await
    }

    /// The calls since the last time.
    fn calls(&self) -> Vec<String> {
        let file = self.home.directory().join("calls");
        let calls = std::fs::read_to_string(&file).unwrap_or_default();
        let _ = std::fs::remove_file(file);
        calls.lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn a_service_is_installed_once_and_removed() {
    let service = Service::new();
    let ran = service.run(&["install"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let unit = service.unit().display().to_string();
    assert!(ran.stdout.starts_with(&format!("✓ Wrote {unit}\n✓ The service is installed")), "{ran:?}");
    assert!(ran.stdout.contains("journalctl --user --unit hob --follow"), "{ran:?}");
    assert!(ran.stderr.contains("loginctl enable-linger"), "{ran:?}");
    assert_eq!(
        service.calls(),
        [
            "--user is-active hob.service",
            "--user daemon-reload",
            "--user enable hob.service",
            "--user restart --no-block hob.service",
        ]
    );
    let text = std::fs::read_to_string(service.unit()).expect("the unit");
    let home = service.home.directory().display();
    let program = Path::new(env!("CARGO_BIN_EXE_hob")).canonicalize().expect("the program");
    let start = text.lines().find(|line| line.starts_with("ExecStart=")).unwrap_or_default();
    assert!(
        start.contains(&program.display().to_string()) && start.ends_with(" serve --host 127.0.0.1"),
        "{text}"
    );
    assert!(ran.stdout.contains("\nAddress  http://127.0.0.1:8000, for this machine only\n"), "{ran:?}");
    assert!(ran.stderr.contains("hob service install --lan"), "{ran:?}");
    assert!(text.contains(&format!("\nEnvironment=HOB_HOME={home}\n")), "{text}");

    let again = service.run(&["install"]).await;
    assert!(again.stdout.starts_with(&format!("  {unit} is up to date\n")), "{again:?}");
    assert_eq!(service.calls().last().map(String::as_str), Some("--user start --no-block hob.service"));

    let removed = service.run(&["uninstall"]).await;
    assert_eq!(
        (removed.code, removed.stdout),
        (Some(0), format!("✓ Removed {unit}\nThe service is stopped. Hob's data is not deleted.\n"))
    );
    assert!(!service.unit().exists());
    assert_eq!(service.calls(), ["--user disable --now hob.service", "--user daemon-reload"]);
    let nothing = service.run(&["uninstall"]).await;
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), "The service is not installed.\n"));
    assert_eq!(service.calls(), [] as [&str; 0]);
}

#[tokio::test]
async fn the_state_is_shown_and_changed() {
    let service = Service::new();
    for command in ["status", "start", "stop"] {
        let ran = service.run(&[command]).await;
        let expected = "error: the service is not installed. Install it with 'hob service install'.\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), expected));
    }
    assert_eq!(service.calls(), [] as [&str; 0]);
    service.run(&["install"]).await;
    service.calls();

    let stopped = service.run(&["status"]).await;
    assert!(stopped.code == Some(1) && stopped.stdout.contains("stopped"), "{stopped:?}");
    service.set("state", "active\n");
    let running = service.run(&["status"]).await;
    assert!(running.code == Some(0) && running.stdout.contains("running"), "{running:?}");
    assert_eq!(service.run(&["stop"]).await.stdout, "The service is stopped.\n");
    assert_eq!(service.run(&["start"]).await.code, Some(0));
    assert_eq!(
        service.calls(),
        [
            "--user is-active hob.service",
            "--user is-active hob.service",
            "--user stop hob.service",
            "--user start --no-block hob.service",
        ]
    );
}

#[tokio::test]
async fn the_file_is_shown_without_being_written() {
    let service = Service::new();
    let ran = service.run(&["install", "--print"]).await;
    assert!(ran.code == Some(0) && ran.stdout.contains("WantedBy=default.target"), "{ran:?}");
    let system = service.run(&["install", "--system", "--print"]).await;
    assert_eq!(system.code, Some(0), "{system:?}");
    assert!(
        ran.stderr.starts_with("The server will listen on http://127.0.0.1:8000, for this machine only."),
        "{ran:?}"
    );
    // The Debian package may be installed on this machine.
    if !system.stdout.is_empty() {
        assert!(system.stdout.contains("\nUser=hob\n"), "{system:?}");
    }
    assert!(!service.unit().exists());
    assert_eq!(service.calls(), [] as [&str; 0]);
}

#[tokio::test]
async fn a_service_is_open_to_the_network_only_on_request_and_says_so() {
    let service = Service::new();
    let ran = service.run(&["install", "--lan", "--print"]).await;
    assert!(ran.stdout.contains(" serve --host 0.0.0.0\n"), "{ran:?}");
    assert!(
        ran.stderr.starts_with("The server will listen on port 8000 of all addresses of this machine"),
        "{ran:?}"
    );
    assert!(
        ran.stderr.contains("warning: without a key, anyone on your network can use the server."),
        "{ran:?}"
    );
    std::fs::write(service.home.config_file(), "[server]\nhost = \"0.0.0.0\"\n").expect("a file");
    let configured = service.run(&["install", "--print"]).await;
    assert!(configured.stdout.contains(" serve\n"), "the configuration names the address: {configured:?}");
    assert!(configured.stderr.contains("all addresses of this machine"), "{configured:?}");
    assert!(configured.stderr.contains("warning: without a key"), "{configured:?}");
}

#[tokio::test]
async fn a_service_with_named_keys_is_not_called_open() {
    let service = Service::new();
    let created = service.home.run(&["key", "create", "ana"]).await;
    assert_eq!(created.code, Some(0), "{created:?}");
    let closed = service.run(&["install", "--lan", "--print"]).await;
    assert!(closed.stdout.contains(" serve --host 0.0.0.0\n"), "{closed:?}");
    assert!(!closed.stderr.contains("warning"), "{closed:?}");
    // The server still answers no caller without a key.
    service.home.run(&["key", "revoke", "ana"]).await;
    let revoked = service.run(&["install", "--lan", "--print"]).await;
    assert!(revoked.code == Some(0) && !revoked.stderr.contains("warning"), "{revoked:?}");

    let damaged = Service::new();
    let file = damaged.home.directory().join("hob.db");
    std::fs::write(file, "no database at all\n".repeat(100)).expect("a file");
    let unknown = damaged.run(&["install", "--lan", "--print"]).await;
    let expected = "warning: the named keys of the server cannot be read. If there are none, anyone on your network can use \
                    the server.\n";
    assert!(unknown.code == Some(0) && unknown.stderr.ends_with(expected), "{unknown:?}");
}

#[tokio::test]
async fn a_key_that_only_the_shell_has_does_not_close_the_service() {
    let service = Service::new();
    let arguments = ["install", "--lan", "--print"];
    let mut command = service.command(&arguments);
    command.env("HOB_API_KEY", "hob_0123456789abcdef0123");
    let open = finish(command).await;
    let keys = service.home.directory().join("environment");
    let expected = format!(
        "warning: HOB_API_KEY is set in this shell, but the service does not see it, so anyone on your network can use the server. \
         Put 'HOB_API_KEY=…' into {}, or run 'hob key create NAME'.\n",
        keys.display()
    );
    assert!(open.code == Some(0) && open.stderr.ends_with(&expected), "{open:?}");
    std::fs::write(keys, "HOB_API_KEY=hob_0123456789abcdef0123\n").expect("a file");
    let closed = service.run(&arguments).await;
    assert!(closed.code == Some(0) && !closed.stderr.contains("warning"), "{closed:?}");
}

/// Needs a tool of systemd. Does nothing without it.
#[tokio::test]
async fn systemd_understands_the_unit() {
    let service = Service::new();
    service.run(&["install"]).await;
    let mut analyze = Command::new("systemd-analyze");
    let ran = match analyze.args(["verify", "--man=no"]).arg(service.unit()).output().await {
        Ok(ran) => ran,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => panic!("{error}"),
    };
    let complaints = String::from_utf8_lossy(&ran.stderr).into_owned();
    let about_us: Vec<&str> = complaints.lines().filter(|line| line.contains("hob.service")).collect();
    assert_eq!(about_us, Vec::<&str>::new(), "{complaints}");
}

#[tokio::test]
async fn a_system_without_a_service_manager_is_refused() {
    let service = Service::new();
    let nowhere = service.home.directory().join("nowhere");
    let mut command = service.command(&["install"]);
    command.env("PATH", nowhere);
    let ran = finish(command).await;
    let expected = "error: this system has no systemctl, so Hob cannot install a service. Let its own service manager run \
                    'hob serve'.\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), expected));
    assert!(!service.unit().exists(), "nothing is written");
}

#[tokio::test]
async fn a_session_without_a_service_manager_gets_a_hint() {
    let service = Service::new();
    service.set("failure", "Failed to connect to bus: No medium found\n");
    let ran = service.run(&["install"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("'systemctl --user daemon-reload' failed: Failed to connect to bus"),
        "{ran:?}"
    );
    assert!(ran.stderr.contains("log in as the user itself, not with su or sudo"), "{ran:?}");
}

#[tokio::test]
async fn a_unit_of_the_user_is_not_replaced_or_removed() {
    let service = Service::new();
    std::fs::create_dir_all(service.unit().parent().expect("a directory")).expect("created");
    std::fs::write(service.unit(), "[Service]\nExecStart=/usr/bin/other\n").expect("a file");
    for command in ["install", "uninstall"] {
        let ran = service.run(&[command]).await;
        assert!(
            ran.code == Some(1) && ran.stderr.contains("was not written by 'hob service install'"),
            "{command}: {ran:?}"
        );
    }
    assert_eq!(service.calls(), ["--user is-active hob.service"], "it is not stopped either");
    let text = std::fs::read_to_string(service.unit()).expect("the unit");
    assert_eq!(text, "[Service]\nExecStart=/usr/bin/other\n");
}

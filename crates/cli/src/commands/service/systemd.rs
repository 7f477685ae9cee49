//! The service under systemd: of a user, or of the machine. Pure: writes nothing and calls nothing.

use std::path::{Path, PathBuf};

use super::definition::{
    FileOwner, MARK, ManagerCall, ServiceContext, ServiceDefinition, ServiceFile, ServiceState,
};

const UNIT: &str = "hob.service";

/// The files of the Debian package, for a program in another place.
const SYSTEM_UNIT: &str = include_str!("../../../../../packaging/hob.service");
const SYSUSERS: &str = include_str!("../../../../../packaging/hob.sysusers");
const SYSTEM_CONFIG: &str = include_str!("../../../../../packaging/config.toml");

/// Where that package installs its unit.
pub const PACKAGE_UNIT: &str = "/usr/lib/systemd/system/hob.service";

/// The configuration of the service of the machine.
pub const SYSTEM_CONFIG_PATH: &str = "/etc/hob/config.toml";

/// The variables with keys for that service.
pub const SYSTEM_KEYS_PATH: &str = "/etc/hob/environment";

/// Those of the service of a user, in its home directory.
pub const KEYS_FILE: &str = "environment";

const LINGER: &str = "The service stops when you log out. To keep it running: loginctl enable-linger";

/// The service of a user.
pub fn user_service(context: &ServiceContext) -> ServiceDefinition {
    let path = context.config_directory.join("systemd/user").join(UNIT);
    let file = ServiceFile { path, text: user_unit(context), mode: 0o644, owner: FileOwner::Hob };
    ServiceDefinition { note: Some(LINGER), ..definition(vec![file], &["--user"]) }
}

/// The service of the machine. If a package has installed the unit, nothing is written.
pub fn system_service(context: &ServiceContext, is_packaged: bool) -> ServiceDefinition {
    if is_packaged {
        return definition(Vec::new(), &[]);
    }
    let config = SYSTEM_CONFIG_PATH;
    let file = |path: &str, text: String| ServiceFile {
        path: PathBuf::from(path),
        text,
        mode: 0o644,
        owner: FileOwner::Hob,
    };
    let files = vec![
        file("/etc/systemd/system/hob.service", system_unit(context)),
        file("/etc/sysusers.d/hob.conf", format!("# {MARK} --system.\n{SYSUSERS}")),
        ServiceFile {
            path: PathBuf::from(config),
            text: SYSTEM_CONFIG.to_owned(),
            // It may contain keys of engines.
            mode: 0o640,
            owner: FileOwner::Administrator {
                after_creation: vec![
                    ManagerCall::new("chgrp", &["hob", "/etc/hob", config]),
                    ManagerCall::new("chmod", &["0750", "/etc/hob"]),
                ],
            },
        },
    ];
    let mut definition = definition(files, &[]);
    definition.prepare.insert(0, ManagerCall::new("systemd-sysusers", &["/etc/sysusers.d/hob.conf"]));
    definition
}

/// The calls; `scope` comes first in each.
fn definition(files: Vec<ServiceFile>, scope: &[&str]) -> ServiceDefinition {
    let systemctl = |arguments: &[&str]| ManagerCall::new("systemctl", &[scope, arguments].concat());
    let of_user = if scope.is_empty() { "" } else { "--user " };
    ServiceDefinition {
        files,
        prepare: vec![systemctl(&["daemon-reload"])],
        enable: vec![systemctl(&["enable", UNIT])],
        // The first start may download a model, so the calls do not wait.
        start: systemctl(&["start", "--no-block", UNIT]),
        restart: systemctl(&["restart", "--no-block", UNIT]),
        stop: systemctl(&["stop", UNIT]),
        disable: vec![systemctl(&["disable", "--now", UNIT]).ignoring_failure()],
        forget: vec![systemctl(&["daemon-reload"])],
        state: systemctl(&["is-active", UNIT]),
        read_state,
        log: format!("journalctl {of_user}--unit hob --follow"),
        note: None,
    }
}

/// From the output of `systemctl is-active`.
fn read_state(output: &str) -> ServiceState {
    match output.trim() {
        "active" | "reloading" => ServiceState::Running,
        "activating" => ServiceState::Starting,
        "failed" => ServiceState::Failed,
        _ => ServiceState::Stopped,
    }
}

fn user_unit(context: &ServiceContext) -> String {
    let program = quoted(&context.executable);
    let serve = context.serve_arguments().join(" ");
    let environment: String = context
        .environment
        .iter()
        .map(|(name, value)| format!("Environment={}\n", quoted(&format!("{name}={value}"))))
        .collect();
    let keys = escaped(&format!("{}/{KEYS_FILE}", context.hob_home));
    format!(
        "# {MARK}. To change it, use 'systemctl --user edit hob': a new installation replaces this file.
[Unit]
Description=Hob, one address for the models on this machine

[Service]
# The service counts as started when it answers requests. The first start may download a model before that.
Type=notify
TimeoutStartSec=30min
ExecStart={program} {serve}
ExecReload={program} reload
{environment}# Keys, such as HOB_API_KEY or OPENAI_API_KEY, one NAME=VALUE per line. Make the file readable for its owner only.
EnvironmentFile=-{keys}
Restart=on-failure
RestartSec=5
# Longer than [server] drain_seconds and shutdown_grace together, which are 0 and 30 seconds by default.
TimeoutStopSec=40
KillMode=mixed
UMask=0077

[Install]
WantedBy=default.target
"
    )
}

fn system_unit(context: &ServiceContext) -> String {
    let program = quoted(&context.executable);
    let serve = context.serve_arguments().join(" ");
    let unit = SYSTEM_UNIT.replace("=/usr/bin/hob serve\n", &format!("={program} {serve}\n"));
    format!("# {MARK} --system.\n{}", unit.replace("=/usr/bin/hob ", &format!("={program} ")))
}

/// A value in which `%` has no special meaning.
fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

/// A word of a unit file, in quotes if it needs them.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-=:@".contains(&byte);
    if text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("\"{}\"", escaped(&text.replace('\\', r"\\").replace('"', "\\\"")))
    }
}

/// Whether the service of the machine could start a program: its unit hides home directories.
pub fn is_hidden_from_system(executable: &Path) -> bool {
    ["/home", "/root", "/run/user"].iter().any(|hidden| executable.starts_with(hidden))
}

#[cfg(test)]
#[path = "systemd_tests.rs"]
mod tests;

//! The service under launchd, for a user of macOS. Pure: writes nothing and calls nothing.

use super::definition::{
    FileOwner, MARK, ManagerCall, ServiceContext, ServiceDefinition, ServiceFile, ServiceState,
};

const LABEL: &str = "local.hob";

/// The service of a user.
pub fn user_service(context: &ServiceContext) -> ServiceDefinition {
    let path = context.user_home.join("Library/LaunchAgents").join(format!("{LABEL}.plist"));
    let log = context.user_home.join("Library/Logs/hob.log").display().to_string();
    let domain = format!("gui/{}", context.user_id);
    let service = format!("{domain}/{LABEL}");
    let launchctl = |arguments: &[&str]| ManagerCall::new("launchctl", arguments);
    let plist = path.display().to_string();
    // launchd reads a changed file only after it has forgotten the old one.
    let bootout = launchctl(&["bootout", &service]).ignoring_failure();
    ServiceDefinition {
        files: vec![ServiceFile { path, text: agent(context, &log), mode: 0o644, owner: FileOwner::Hob }],
        prepare: vec![
            bootout.clone(),
            launchctl(&["enable", &service]),
            launchctl(&["bootstrap", &domain, &plist]),
        ],
        enable: Vec::new(),
        start: launchctl(&["kickstart", &service]),
        restart: launchctl(&["kickstart", &service]),
        stop: launchctl(&["kill", "SIGTERM", &service]),
        disable: vec![bootout],
        forget: Vec::new(),
        state: launchctl(&["print", &service]),
        read_state,
        log: format!("tail -f {log}"),
        note: None,
    }
}

/// From the output of `launchctl print`.
fn read_state(output: &str) -> ServiceState {
    let state = output.lines().find_map(|line| line.trim().strip_prefix("state = "));
    match state {
        Some("running") => ServiceState::Running,
        Some("spawn scheduled") => ServiceState::Starting,
        _ => ServiceState::Stopped,
    }
}

fn agent(context: &ServiceContext, log: &str) -> String {
    let environment: String = context
        .environment
        .iter()
        .map(|(name, value)| format!("\n        <key>{name}</key>\n        <string>{}</string>", xml(value)))
        .collect();
    let arguments = context.serve_arguments();
    let arguments: String =
        arguments.iter().map(|argument| format!("\n        <string>{}</string>", xml(argument))).collect();
    let (program, log) = (xml(&context.executable), xml(log));
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- {MARK}. A new installation replaces this file. -->
<plist version="1.0">
<dict>
    <key>Label</key>
    <string>{LABEL}</string>
    <key>ProgramArguments</key>
    <array>
        <string>{program}</string>{arguments}
    </array>
    <key>EnvironmentVariables</key>
    <dict>{environment}
    </dict>
    <key>RunAtLoad</key>
    <true/>
    <!-- Restarts after a crash, and not after a stop. -->
    <key>KeepAlive</key>
    <dict>
        <key>SuccessfulExit</key>
        <false/>
    </dict>
    <key>StandardOutPath</key>
    <string>{log}</string>
    <key>StandardErrorPath</key>
    <string>{log}</string>
    <!-- 077: only the owner reads what the service writes. -->
    <key>Umask</key>
    <integer>63</integer>
</dict>
</plist>
"#
    )
}

/// A text as the contents of an element.
fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn service() -> ServiceDefinition {
        user_service(&ServiceContext {
            executable: "/opt/R&D/hob".to_owned(),
            environment: vec![("HOB_HOME", "/srv/<hob>".to_owned())],
            hob_home: "/srv/<hob>".to_owned(),
            user_home: PathBuf::from("/Users/ann"),
            config_directory: PathBuf::from("/Users/ann/.config"),
            user_id: 501,
            host: Some("127.0.0.1"),
        })
    }

    #[test]
    fn the_agent_runs_this_program_with_this_home() {
        let service = service();
        let [file] = &service.files[..] else { panic!("one file") };
        assert_eq!(file.path, Path::new("/Users/ann/Library/LaunchAgents/local.hob.plist"));
        assert!(file.text.contains(
            "<string>/opt/R&amp;D/hob</string>\n        <string>serve</string>\n        <string>--host</string>\n        \
             <string>127.0.0.1</string>\n    </array>"
        ));
        assert!(file.text.contains("<key>HOB_HOME</key>\n        <string>/srv/&lt;hob&gt;</string>"));
        assert!(file.text.contains("<string>/Users/ann/Library/Logs/hob.log</string>"));
        assert!(file.text.contains(MARK));
    }

    #[test]
    fn the_agent_is_loaded_into_the_session_of_the_user() {
        let service = service();
        let calls = [service.prepare, vec![service.start, service.stop, service.state]].concat();
        let calls: Vec<String> = calls.iter().map(ManagerCall::shown).collect();
        assert_eq!(
            calls,
            [
                "launchctl bootout gui/501/local.hob",
                "launchctl enable gui/501/local.hob",
                "launchctl bootstrap gui/501 /Users/ann/Library/LaunchAgents/local.hob.plist",
                "launchctl kickstart gui/501/local.hob",
                "launchctl kill SIGTERM gui/501/local.hob",
                "launchctl print gui/501/local.hob",
            ]
        );
    }

    #[test]
    fn the_state_is_found_in_the_description() {
        assert_eq!(read_state("local.hob = {\n\tstate = running\n\tpid = 7\n}"), ServiceState::Running);
        assert_eq!(read_state("local.hob = {\n\tstate = not running\n}"), ServiceState::Stopped);
        assert_eq!(read_state("Could not find service"), ServiceState::Stopped);
    }
}

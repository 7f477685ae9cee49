//! Unit files and calls, without a systemd.

use super::*;
use crate::commands::service::definition::CallFailure;

fn context() -> ServiceContext {
    ServiceContext {
        executable: "/opt/my tools/100%/hob".to_owned(),
        environment: vec![("HOB_HOME", "/srv/a \"b\"".to_owned())],
        hob_home: "/srv/a \"b\"".to_owned(),
        user_home: PathBuf::from("/home/ann"),
        config_directory: PathBuf::from("/home/ann/.config"),
        user_id: 1000,
        host: None,
    }
}

#[test]
fn the_unit_of_a_user_runs_this_program_with_this_home() {
    let service = user_service(&context());
    let [file] = &service.files[..] else { panic!("one file") };
    assert_eq!(file.path, Path::new("/home/ann/.config/systemd/user/hob.service"));
    for line in [
        "# Written by 'hob service install'. To change it, use 'systemctl --user edit hob': a new installation replaces this file.",
        "Type=notify",
        r#"ExecStart="/opt/my tools/100%%/hob" serve"#,
        r#"ExecReload="/opt/my tools/100%%/hob" reload"#,
        r#"Environment="HOB_HOME=/srv/a \"b\"""#,
        r#"EnvironmentFile=-/srv/a "b"/environment"#,
        "WantedBy=default.target",
    ] {
        assert!(file.text.lines().any(|found| found == line), "{line}:\n{}", file.text);
    }
    let plain =
        ServiceContext { executable: "/usr/bin/hob".to_owned(), environment: Vec::new(), ..context() };
    let text = user_unit(&plain);
    assert!(text.contains("\nExecStart=/usr/bin/hob serve\n") && !text.contains("Environment="), "{text}");
}

#[test]
fn the_calls_of_a_user_name_the_manager_of_the_user() {
    let service = user_service(&context());
    let calls =
        [service.prepare, service.enable, vec![service.start, service.restart, service.stop, service.state]];
    let calls: Vec<String> = calls.concat().iter().map(ManagerCall::shown).collect();
    assert_eq!(
        calls,
        [
            "systemctl --user daemon-reload",
            "systemctl --user enable hob.service",
            "systemctl --user start --no-block hob.service",
            "systemctl --user restart --no-block hob.service",
            "systemctl --user stop hob.service",
            "systemctl --user is-active hob.service",
        ]
    );
    assert_eq!(service.disable[0].failure, CallFailure::Ignore);
    assert_eq!(service.log, "journalctl --user --unit hob --follow");
}

#[test]
fn the_service_of_the_machine_has_a_user_and_settings_of_its_own() {
    let service = system_service(&context(), false);
    let paths: Vec<&str> = service.files.iter().filter_map(|file| file.path.to_str()).collect();
    assert_eq!(
        paths,
        ["/etc/systemd/system/hob.service", "/etc/sysusers.d/hob.conf", "/etc/hob/config.toml"]
    );
    let unit = &service.files[0].text;
    assert!(unit.contains("\nExecStart=\"/opt/my tools/100%%/hob\" serve\n"), "{unit}");
    assert!(unit.contains("\nExecReload=\"/opt/my tools/100%%/hob\" reload\n"), "{unit}");
    assert!(!unit.contains("/usr/bin/hob"), "{unit}");
    let prepared: Vec<String> = service.prepare.iter().map(ManagerCall::shown).collect();
    assert_eq!(prepared, ["systemd-sysusers /etc/sysusers.d/hob.conf", "systemctl daemon-reload"]);
    let FileOwner::Administrator { after_creation } = &service.files[2].owner else {
        panic!("the administrator changes the settings")
    };
    let after: Vec<String> = after_creation.iter().map(ManagerCall::shown).collect();
    assert_eq!(after, ["chgrp hob /etc/hob /etc/hob/config.toml", "chmod 0750 /etc/hob"]);
}

#[test]
fn the_units_pass_the_address_on() {
    let local =
        ServiceContext { executable: "/usr/bin/hob".to_owned(), host: Some("127.0.0.1"), ..context() };
    for unit in [user_unit(&local), system_unit(&local)] {
        assert!(unit.contains("\nExecStart=/usr/bin/hob serve --host 127.0.0.1\n"), "{unit}");
        assert!(unit.contains("\nExecReload=/usr/bin/hob reload\n"), "{unit}");
    }
    assert!(SYSTEM_CONFIG.contains("\nhost = \"127.0.0.1\"\n"), "a new configuration names the address");
}

#[test]
fn a_package_with_a_unit_needs_no_files() {
    let service = system_service(&context(), true);
    assert!(service.files.is_empty());
    assert_eq!(service.start.shown(), "systemctl start --no-block hob.service");
}

#[test]
fn the_service_of_the_machine_does_not_see_homes() {
    assert!(is_hidden_from_system(Path::new("/home/ann/.local/bin/hob")));
    assert!(is_hidden_from_system(Path::new("/root/.cargo/bin/hob")));
    assert!(!is_hidden_from_system(Path::new("/usr/local/bin/hob")));
    assert!(!is_hidden_from_system(Path::new("/homes/hob")));
}

#[test]
fn states_are_read_from_one_word() {
    for (output, expected) in [
        ("active\n", ServiceState::Running),
        ("activating\n", ServiceState::Starting),
        ("failed\n", ServiceState::Failed),
        ("inactive\n", ServiceState::Stopped),
        ("unknown\n", ServiceState::Stopped),
        ("", ServiceState::Stopped),
    ] {
        assert_eq!(read_state(output), expected, "{output}");
    }
}

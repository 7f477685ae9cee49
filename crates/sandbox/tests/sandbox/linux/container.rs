//! What is asked of Docker and Podman, seen by a client that writes it down.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use hob_sandbox::{ExitReason, Job, Mount, Runtime, Sandbox, SandboxError, SandboxOptions, ScriptLanguage};

use super::{marker, processes_with, until};

/// A client that notes its arguments, one call a line, and answers as its script says.
struct Client {
    _home: tempfile::TempDir,
    root: PathBuf,
}

impl Client {
    /// `on_run` is shell that stands for the container.
    fn new(on_run: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        let script = format!(
            "#!/bin/sh\nprintf '%s\\037' \"$@\" >> {root}/calls; echo >> {root}/calls\n\
             case $1 in\n run) {on_run};;\n ps) cat {root}/containers 2>/dev/null;;\n esac\n",
            root = root.display()
        );
        std::fs::write(root.join("docker"), script).unwrap();
        std::fs::set_permissions(root.join("docker"), std::fs::Permissions::from_mode(0o755)).unwrap();
        Client { _home: home, root }
    }

    fn sandbox(&self) -> Sandbox {
        Sandbox::new(SandboxOptions {
            enabled: true,
            runtime: Runtime::Path(self.root.join("docker")),
            image: "an-image".to_owned(),
            timeout: Duration::from_secs(20),
            allowlist: vec![self.root.clone()],
            ..SandboxOptions::default()
        })
    }

    /// The arguments of every call so far.
    fn calls(&self) -> Vec<Vec<String>> {
        let calls = std::fs::read_to_string(self.root.join("calls")).unwrap_or_default();
        let words =
            |line: &str| line.split('\u{1f}').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        // Only whole lines: one may be in the middle of being written.
        calls.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(words).collect()
    }

    /// The commands of the calls that concern the container of the last run, in order.
    fn calls_for_the_container(&self) -> Vec<String> {
        let calls = self.calls();
        let run = calls.iter().rev().find(|call| call[0] == "run").unwrap();
        let name = run.iter().find_map(|word| word.strip_prefix("--name=")).unwrap();
        let concerns = |call: &&Vec<String>| call.iter().any(|word| word.ends_with(name));
        calls.iter().filter(concerns).map(|call| call[0].clone()).collect()
    }
}

#[tokio::test]
async fn a_container_gets_every_restriction() {
    let client = Client::new("printf 'code: %s' \"$HOB_CODE\"; cat; echo trouble >&2; exit 3");
    let mounts = vec![Mount { host: client.root.clone(), inside: "/work".into() }];
    let job = Job { stdin: b" and input".to_vec(), mounts, ..Job::new(ScriptLanguage::Python, "print(1)") };
    let outcome = client.sandbox().run(job).await.unwrap();
    assert_eq!(outcome.stdout, "code: print(1) and input");
    assert_eq!((outcome.stderr.as_str(), outcome.exit_reason), ("trouble\n", ExitReason::Exited(3)));
    let calls = client.calls();
    assert_eq!(calls[0], ["image", "inspect", "--format", "{{.Id}}", "an-image"]);
    let run = calls.last().unwrap().join(" ");
    let mount = format!("--mount=type=bind,source={},target=/work,readonly", client.root.display());
    for wall in [
        "run --rm --interactive --pull never --network none --read-only --cap-drop ALL",
        "--security-opt no-new-privileges --user 65534:65534",
        "--env=HOB_CODE --name=hob-",
        "--memory=536870912 --memory-swap=536870912 --pids-limit=64",
        "--tmpfs=/tmp:rw,size=67108864,noexec,nosuid,nodev,mode=1777",
        &mount,
        "--entrypoint=sh an-image -c",
        "/tmp/main.py -- python3 -u -B",
    ] {
        assert!(run.contains(wall), "{wall} is missing in {run}");
    }
    assert!(!run.contains("print(1)"), "the code is in the list of processes: {run}");
    // The daemon removes a container that has exited.
    assert_eq!(client.calls_for_the_container(), ["run"]);
}

#[tokio::test]
async fn a_container_that_takes_too_long_is_killed_and_removed_by_name() {
    let mut limit = Duration::from_millis(500);
    loop {
        let client = Client::new("echo begun; exec sleep 600");
        let job = Job { timeout: Some(limit), ..Job::new(ScriptLanguage::Sh, "sleep 600") };
        let outcome = client.sandbox().run(job).await.unwrap();
        assert!(outcome.timed_out(), "{outcome:?}");
        // On a busy machine the time may be up before the client writes anything.
        if !outcome.stdout.is_empty() {
            assert_eq!(outcome.stdout, "begun\n");
            assert_eq!(client.calls_for_the_container(), ["run", "kill", "rm"]);
            return;
        }
        limit *= 2;
    }
}

#[tokio::test]
async fn a_container_of_a_dropped_run_is_killed_and_removed_by_name() {
    let marker = marker();
    let client = Client::new(&format!("exec sleep {marker}"));
    let sandbox = client.sandbox();
    tokio::select! {
        outcome = sandbox.run(Job::new(ScriptLanguage::Sh, "true")) => panic!("ended: {outcome:?}"),
        () = until("the client runs", || !processes_with(&marker).is_empty()) => {}
    }
    until("the client is gone", || processes_with(&marker).is_empty()).await;
    // The second removal is for a container that was still being created.
    until("it is removed", || client.calls_for_the_container() == ["run", "kill", "rm", "rm"]).await;
}

#[tokio::test]
async fn a_failing_client_is_not_a_result_of_the_program() {
    let client = Client::new("echo 'docker: Error response from daemon: no space left' >&2; exit 125");
    let refused = client.sandbox().run(Job::new(ScriptLanguage::Sh, "true")).await.unwrap_err();
    assert!(
        matches!(&refused, SandboxError::Unusable { reason, .. } if reason.contains("no space left")),
        "{refused}"
    );
    assert_eq!(client.calls_for_the_container(), ["run", "kill", "rm"]);
    // The same code from the program itself is the program's business.
    let client = Client::new("echo fine; exit 125");
    assert_eq!(
        client.sandbox().run(Job::new(ScriptLanguage::Sh, "exit 125")).await.unwrap().exit_code(),
        Some(125)
    );
}

#[tokio::test]
async fn containers_of_dead_owners_are_removed_at_the_first_use_and_no_others() {
    let client = Client::new("true");
    // A first run shows the names of this system's containers.
    client.sandbox().run(Job::new(ScriptLanguage::Sh, "true")).await.unwrap();
    let name = client
        .calls()
        .last()
        .unwrap()
        .iter()
        .find_map(|word| word.strip_prefix("--name=").map(str::to_owned))
        .unwrap();
    let orphan = name.replace(&format!("-{}-", std::process::id()), "-2000000000-");
    std::fs::write(client.root.join("containers"), format!("{name}\n{orphan}\npostgres\nhob-other-1-2\n"))
        .unwrap();
    client.sandbox().run(Job::new(ScriptLanguage::Sh, "true")).await.unwrap();
    let removed: Vec<Vec<String>> =
        client.calls().into_iter().filter(|call| matches!(&*call[0], "kill" | "rm")).collect();
    assert_eq!(
        removed,
        [vec!["kill".to_owned(), orphan.clone()], vec!["rm".into(), "--force".into(), orphan]]
    );
}

#[tokio::test]
async fn a_missing_image_says_how_to_get_it_and_a_path_cannot_add_options() {
    let client = Client::new("true");
    let script = std::fs::read_to_string(client.root.join("docker")).unwrap();
    let odd = client.root.join("a,readonly=false");
    std::fs::create_dir(&odd).unwrap();
    let mounts = vec![Mount { host: odd, inside: "/work".into() }];
    let refused =
        client.sandbox().run(Job { mounts, ..Job::new(ScriptLanguage::Sh, "true") }).await.unwrap_err();
    assert!(matches!(refused, SandboxError::MountNotAllowed { .. }), "{refused}");
    assert!(client.calls().iter().all(|call| call[0] != "run"));
    std::fs::write(
        client.root.join("docker"),
        script.replace("case $1 in", "echo 'No such image' >&2; exit 1\ncase $1 in"),
    )
    .unwrap();
    let refused = client.sandbox().check().await.unwrap_err().to_string();
    assert!(refused.contains("No such image") && refused.contains("docker pull an-image"), "{refused}");
}

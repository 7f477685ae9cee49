//! A real container, if Podman is installed and works; other machines use the script of `container.rs`.
//!
//! The image is made here: a static busybox and nothing else.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hob_sandbox::{ExitReason, Job, Mount, Runtime, Sandbox, SandboxOptions, ScriptLanguage};

use super::until;

const IMAGE: &str = "localhost/hob-test-busybox";

struct Podman {
    _home: tempfile::TempDir,
    root: PathBuf,
}

impl Podman {
    /// `None` where there is no Podman that can start a container.
    fn find() -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap();
        // Podman's usual runtime, crun, fails on machines with two versions of cgroups at once.
        let conf = "[engine]\nruntime = \"runc\"\n[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n";
        std::fs::write(root.join("containers.conf"), conf).unwrap();
        let script =
            format!("#!/bin/sh\nCONTAINERS_CONF={}/containers.conf exec podman \"$@\"\n", root.display());
        std::fs::write(root.join("podman"), script).unwrap();
        std::fs::set_permissions(root.join("podman"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let podman = Podman { _home: home, root };
        (podman.import() && podman.client(&["run", "--rm", "--network", "none", IMAGE, "true"]).is_some())
            .then_some(podman)
    }

    fn import(&self) -> bool {
        let bin = self.root.join("image/bin");
        std::fs::create_dir_all(&bin).unwrap();
        if !Path::new("/bin/busybox").exists() {
            return false;
        }
        std::fs::copy("/bin/busybox", bin.join("busybox")).unwrap();
        for name in ["sh", "cat", "id", "ls", "sleep", "true", "touch", "wget"] {
            symlink("busybox", bin.join(name)).unwrap();
        }
        let archive = self.root.join("image.tar");
        let packed = Command::new("tar")
            .arg("-C")
            .arg(self.root.join("image"))
            .arg("-cf")
            .arg(&archive)
            .arg(".")
            .status();
        packed.is_ok_and(|status| status.success())
            && self.client(&["import", archive.to_str().unwrap(), IMAGE]).is_some()
    }

    /// What Podman says, if it succeeds.
    fn client(&self, arguments: &[&str]) -> Option<String> {
        let output =
            Command::new(self.root.join("podman")).args(arguments).stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The containers that this process has.
    fn containers(&self) -> Vec<String> {
        let names = self.client(&["ps", "--all", "--format", "{{.Names}}"]).unwrap();
        let own = format!("-{}-", std::process::id());
        names
            .lines()
            .filter(|name| name.starts_with("hob-") && name.contains(&own))
            .map(str::to_owned)
            .collect()
    }

    fn sandbox(&self) -> Sandbox {
        Sandbox::new(SandboxOptions {
            enabled: true,
            runtime: Runtime::Path(self.root.join("podman")),
            image: IMAGE.to_owned(),
            timeout: Duration::from_secs(60),
            allowlist: vec![self.root.clone()],
            ..SandboxOptions::default()
        })
    }
}

#[tokio::test]
async fn a_real_container_runs_code_with_all_restrictions_and_leaves_nothing_behind() {
    let Some(podman) = Podman::find() else {
        eprintln!("skipped: no podman, runc and static busybox that work here");
        return;
    };
    let sandbox = podman.sandbox();
    std::fs::set_permissions(&podman.root, std::fs::Permissions::from_mode(0o755)).unwrap();
    let code = "read word; echo \"got $word\"; id -u; echo \"code: ${HOB_CODE-none}\"; ls /sys/class/net; \
                touch /intruder 2>/dev/null && echo wrote; touch /work/intruder 2>/dev/null && echo wrote; \
                touch /tmp/fine && echo scratch; cat /work/containers.conf >/dev/null && echo mounted; \
                wget -q -T 2 -O - http://1.1.1.1/ 2>/dev/null && echo network; exit 9";
    let mounts = vec![Mount { host: podman.root.clone(), inside: "/work".into() }];
    let job = Job { stdin: b"input\n".to_vec(), mounts, ..Job::new(ScriptLanguage::Sh, code) };
    let outcome = sandbox.run(job).await.unwrap();
    assert_eq!(outcome.stdout, "got input\n65534\ncode: none\nlo\nscratch\nmounted\n", "{}", outcome.stderr);
    assert_eq!(outcome.exit_reason, ExitReason::Exited(9));

    let mut limit = Duration::from_secs(4);
    loop {
        let slow = Job { timeout: Some(limit), ..Job::new(ScriptLanguage::Sh, "echo begun; sleep 600") };
        let outcome = sandbox.run(slow).await.unwrap();
        assert!(outcome.timed_out(), "{outcome:?}");
        // On a busy machine the time may be up before the container runs.
        if !outcome.stdout.is_empty() {
            assert_eq!(outcome.stdout, "begun\n", "{}", outcome.stderr);
            break;
        }
        limit *= 2;
    }
    assert_eq!(podman.containers(), Vec::<String>::new());

    tokio::select! {
        outcome = sandbox.run(Job::new(ScriptLanguage::Sh, "sleep 600")) => panic!("ended: {outcome:?}"),
        () = until("the container runs", || !podman.containers().is_empty()) => {}
    }
    until("the container is gone", || podman.containers().is_empty()).await;
}

//! Files that a program is given to read.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use hob_core::Tool;
use hob_sandbox::{
    CodeInterpreter, Job, JobResult, Mount, Sandbox, SandboxError, SandboxOptions, ScriptLanguage,
};
use serde_json::json;

use super::{marker, options};

struct Place {
    _home: tempfile::TempDir,
    root: PathBuf,
    sandbox: Sandbox,
}

/// A directory `allowed` that is on the allowlist, beside one that is not. Both are world-readable, so that only the allowlist
/// counts.
fn place() -> Place {
    // Not in a directory of the system, such as /dev/shm: what is there has another path inside.
    let home = tempfile::tempdir_in("/tmp").unwrap();
    let root = home.path().canonicalize().unwrap();
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["allowed", "allowed/deep", "outside"] {
        std::fs::create_dir(root.join(name)).unwrap();
        std::fs::write(root.join(name).join("note.txt"), name).unwrap();
    }
    symlink(root.join("outside"), root.join("allowed/link")).unwrap();
    let sandbox = Sandbox::new(SandboxOptions { allowlist: vec![root.join("allowed")], ..options() });
    Place { _home: home, root, sandbox }
}

impl Place {
    async fn run(&self, host: PathBuf, code: &str) -> Result<JobResult, SandboxError> {
        let mounts = vec![Mount { host, inside: "/work/here".into() }];
        self.sandbox.run(Job { mounts, ..Job::new(ScriptLanguage::Sh, code) }).await
    }
}

#[tokio::test]
async fn an_allowed_directory_can_be_read_and_not_written() {
    let place = place();
    let code = "cat /work/here/note.txt; echo; \
                (echo x > /work/here/new) 2>/dev/null && echo wrote; \
                (echo x > /work/here/note.txt) 2>/dev/null && echo overwrote; \
                rm -f /work/here/note.txt 2>/dev/null && echo removed; \
                cat /work/here/link/note.txt 2>/dev/null && echo followed; ls /work/here";
    let outcome = place.run(place.root.join("allowed"), code).await.unwrap();
    assert_eq!(outcome.stdout, "allowed\ndeep\nlink\nnote.txt\n");
    let file = place.run(place.root.join("allowed/deep/note.txt"), "cat /work/here").await.unwrap();
    assert_eq!(file.stdout, "allowed/deep");
}

#[tokio::test]
async fn the_code_interpreter_reads_allowed_files_at_their_own_paths() {
    let place = place();
    let (root, sandbox) = (&place.root, Arc::new(place.sandbox));
    let tool = CodeInterpreter::new(sandbox);
    let allowed = root.join("allowed").display().to_string();
    let description = &tool.spec().description;
    assert!(description.contains(&format!("with files to read in {allowed},")), "{description}");
    let code = format!(
        "cat {allowed}/note.txt {allowed}/deep/note.txt; echo; (echo x > {allowed}/new) 2>/dev/null && echo wrote; \
         cat {allowed}/link/note.txt 2>/dev/null && echo followed; ls {}; touch /tmp/fine && echo scratch",
        root.display()
    );
    let report = tool.call(json!({ "language": "sh", "code": code })).await.unwrap();
    assert_eq!(report, "exit code: 0\nstdout:\nallowedallowed/deep\nallowed\nscratch\n");
    assert!(!root.join("allowed/new").exists());
}

#[tokio::test]
async fn anything_else_is_refused_before_anything_starts() {
    let place = place();
    let trace = std::env::temp_dir().join(marker());
    for host in
        ["outside", "allowed/../outside", "allowed/link", "allowed/link/../outside", "allowed/missing", "."]
    {
        let refused = place.run(place.root.join(host), &format!("touch {}", trace.display())).await;
        assert!(matches!(refused, Err(SandboxError::MountNotAllowed { .. })), "{host}: {refused:?}");
    }
    assert!(matches!(place.run("/etc".into(), "true").await, Err(SandboxError::MountNotAllowed { .. })));
    assert!(!trace.exists());
}

#[tokio::test]
async fn a_directory_that_is_replaced_after_the_check_is_not_mounted() {
    let place = place();
    // A bubblewrap that gives an intruder time: it swaps the directory for a link and then starts the real one.
    let slow = place.root.join("bwrap");
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in */work/here*)\n  rm -rf {root}/allowed/deep\n  ln -s {root}/outside {root}/allowed/deep;;\nesac\n\
         exec bwrap \"$@\"\n",
        root = place.root.display()
    );
    std::fs::write(&slow, script).unwrap();
    for (path, mode) in
        [(slow.clone(), 0o755), (place.root.join("allowed"), 0o777), (place.root.join("allowed/deep"), 0o777)]
    {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let raced = Place {
        sandbox: Sandbox::new(SandboxOptions {
            runtime: hob_sandbox::Runtime::Path(slow),
            allowlist: vec![place.root.join("allowed")],
            ..options()
        }),
        ..place
    };
    let outcome = raced.run(raced.root.join("allowed/deep"), "cat /work/here/note.txt").await;
    assert!(matches!(outcome, Err(SandboxError::MountChanged)), "{outcome:?}");
}

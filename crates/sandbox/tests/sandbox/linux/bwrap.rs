//! Ordinary programs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hob_core::Tool;
use hob_sandbox::{
    CodeInterpreter, ExitReason, Job, Mount, Runtime, Sandbox, SandboxError, SandboxOptions, ScriptLanguage,
};
use serde_json::json;

use super::{marker, options, processes_with, python, run, sandbox, sh, until};

#[tokio::test]
async fn python_and_shell_programs_run() {
    let hello = python("import sys\nprint('hello', 6 * 7)\nprint('oops', file=sys.stderr)").await;
    assert_eq!((hello.stdout.as_str(), hello.stderr.as_str()), ("hello 42\n", "oops\n"));
    assert_eq!((hello.exit_reason, hello.output_cut), (ExitReason::Exited(0), false));
    let hello = sh("echo \"hello $((6 * 7))\"; echo 'it'\"'\"'s' >&2").await;
    assert_eq!((hello.stdout.as_str(), hello.stderr.as_str()), ("hello 42\n", "it's\n"));
}

#[tokio::test]
async fn exit_codes_signals_and_tracebacks_are_reported() {
    assert_eq!(sh("exit 7").await.exit_reason, ExitReason::Exited(7));
    assert_eq!(python("import sys; sys.exit(3)").await.exit_reason, ExitReason::Exited(3));
    let failed = python("def f():\n    return 1 / 0\nf()").await;
    assert_eq!(failed.exit_reason, ExitReason::Exited(1));
    for part in ["main.py\", line 2", "return 1 / 0", "ZeroDivisionError"] {
        assert!(failed.stderr.contains(part), "{}", failed.stderr);
    }
    // Bubblewrap reports a signal as shells do.
    assert_eq!(sh("kill -9 $$").await.exit_reason, ExitReason::Exited(137));
}

#[tokio::test]
async fn a_program_may_read_its_input() {
    let job = Job {
        stdin: b"3\n4\n".to_vec(),
        ..Job::new(ScriptLanguage::Python, "print(int(input()) * int(input()))")
    };
    assert_eq!(sandbox().run(job).await.unwrap().stdout, "12\n");
    let ignored = Job { stdin: vec![b'x'; 1 << 20], ..Job::new(ScriptLanguage::Sh, "echo done") };
    assert_eq!(sandbox().run(ignored).await.unwrap().stdout, "done\n");
    assert_eq!(sh("cat; echo end").await.stdout, "end\n");
}

#[tokio::test]
async fn any_text_is_code_and_only_the_program_sees_it() {
    let code = "# ünï 'quotes' \"double\" $HOME `id` \\n %s\nprint(open(__file__).read().splitlines()[0])\n\
                import os; print('HOB_CODE' in os.environ)";
    assert_eq!(python(code).await.stdout, format!("{}\nFalse\n", code.lines().next().unwrap()));
    let (secret, sleep) = (marker(), marker());
    let (running, job) = (sandbox(), Job::new(ScriptLanguage::Sh, format!("# {secret}\nsleep {sleep}")));
    tokio::select! {
        outcome = running.run(job) => panic!("ended: {outcome:?}"),
        () = until("the program runs", || !processes_with(&sleep).is_empty()) => {
            assert_eq!(processes_with(&secret), Vec::<PathBuf>::new(), "the list of processes shows the code");
        }
    }
}

#[tokio::test]
async fn scratch_space_exists_for_one_run() {
    assert_eq!(sh("echo keep > /tmp/note; cat /tmp/note").await.stdout, "keep\n");
    assert_eq!(sh("ls /tmp").await.stdout, "main.sh\n");
    let pool = "from multiprocessing import Pool\n\
                if __name__ == '__main__':\n    print(sum(Pool(2).map(abs, [-1, -2, 3])))";
    assert_eq!(python(pool).await.stdout, "6\n");
}

#[tokio::test]
async fn invalid_jobs_are_refused_before_anything_starts() {
    for (code, reason) in
        [("", "no code"), (" \n", "no code"), ("a\0b", "NUL"), (&*"#".repeat(100_000), "96 KiB")]
    {
        let refused = sandbox().run(Job::new(ScriptLanguage::Sh, code)).await.unwrap_err();
        assert!(refused.to_string().contains(reason), "{refused}");
    }
    let long = Job { stdin: vec![0; (1 << 20) + 1], ..Job::new(ScriptLanguage::Sh, "cat") };
    assert!(matches!(sandbox().run(long).await, Err(SandboxError::BadJob(_))));
    let off = Sandbox::new(SandboxOptions { enabled: false, ..options() });
    assert!(matches!(off.run(Job::new(ScriptLanguage::Sh, "true")).await, Err(SandboxError::Disabled)));
    let missing =
        Sandbox::new(SandboxOptions { runtime: Runtime::Path("/no/such/bwrap".into()), ..options() });
    let refused = missing.run(Job::new(ScriptLanguage::Sh, "true")).await.unwrap_err();
    assert!(matches!(refused, SandboxError::RuntimeMissing { .. }), "{refused}");
    assert_eq!(sandbox().check().await.unwrap(), "bwrap");
}

#[tokio::test]
async fn a_program_that_takes_too_long_is_killed_and_its_output_is_kept() {
    let marker = marker();
    let code = format!("echo before; sleep {marker} & sleep {marker}; echo after");
    let mut limit = Duration::from_millis(500);
    loop {
        let job = Job { timeout: Some(limit), ..Job::new(ScriptLanguage::Sh, code.as_str()) };
        let outcome = sandbox().run(job).await.unwrap();
        assert!(outcome.timed_out(), "{outcome:?}");
        assert!(outcome.duration < limit + Duration::from_secs(55), "{:?}", outcome.duration);
        // On a busy machine the time may be up before the program writes anything.
        if !outcome.stdout.is_empty() {
            assert_eq!(outcome.stdout, "before\n");
            break;
        }
        limit *= 2;
    }
    until("the sleepers are gone", || processes_with(&marker).is_empty()).await;
}

#[tokio::test]
async fn a_dropped_run_leaves_nothing_behind() {
    let marker = marker();
    let running = sandbox();
    let code = format!("setsid sleep {marker} & (trap '' TERM HUP INT; sleep {marker}) & sleep {marker}");
    let started = until("the program runs", || processes_with(&marker).len() >= 3);
    tokio::select! {
        outcome = running.run(Job::new(ScriptLanguage::Sh, code)) => panic!("ended: {outcome:?}"),
        () = started => {}
    }
    until("everything is gone", || processes_with(&marker).is_empty()).await;
}

#[tokio::test]
async fn a_run_dropped_at_any_moment_of_its_start_leaves_nothing_behind() {
    let home = tempfile::tempdir().unwrap();
    let marker = marker();
    let running = Sandbox::new(SandboxOptions { allowlist: vec![home.path().to_owned()], ..options() });
    running.check().await.unwrap();
    for delay in 0..24 {
        // The place of the mount marks bubblewrap's own processes too.
        let mounts = vec![Mount { host: home.path().to_owned(), inside: format!("/work/{marker}").into() }];
        let job = Job { mounts, ..Job::new(ScriptLanguage::Sh, format!("sleep {marker}")) };
        tokio::select! {
            _ = running.run(job) => {}
            () = tokio::time::sleep(Duration::from_millis(delay * 2)) => {}
        }
    }
    until("all of them are gone", || processes_with(&marker).is_empty()).await;
}

#[tokio::test]
async fn the_number_of_running_and_waiting_jobs_is_limited() {
    let running = Arc::new(Sandbox::new(SandboxOptions { max_concurrent: 2, ..options() }));
    let marker = marker();
    // Two run and eight wait; the eleventh is one too many.
    let mut jobs = tokio::task::JoinSet::new();
    for _ in 0..11 {
        let (running, code) = (Arc::clone(&running), format!("sleep {marker} & sleep 0.2; echo ok"));
        jobs.spawn(async move { running.run(Job::new(ScriptLanguage::Sh, code)).await });
    }
    let most = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let watched = Arc::clone(&most);
    let watching = tokio::spawn(async move {
        loop {
            watched.fetch_max(processes_with(&marker).len(), std::sync::atomic::Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let results = jobs.join_all().await;
    watching.abort();
    let done = results.iter().flatten().filter(|outcome| outcome.stdout == "ok\n").count();
    let busy = results
        .iter()
        .filter(|result| matches!(result, Err(SandboxError::Busy { running: 2, waiting: 8 })))
        .count();
    assert_eq!((done, busy), (10, 1));
    let most = most.load(std::sync::atomic::Ordering::Relaxed);
    assert!((1..=2).contains(&most), "{most} at once");
}

#[tokio::test]
async fn the_tool_reports_the_result_of_the_code() {
    let interpreter = CodeInterpreter::new(Arc::new(sandbox()));
    let told = interpreter.call(json!({ "language": "python", "code": "print(sum(range(10)))" })).await;
    assert_eq!(told.as_deref(), Ok("exit code: 0\nstdout:\n45\n"));
    let told = interpreter.call(json!({ "language": "sh", "code": "echo no >&2; exit 4" })).await;
    assert_eq!(told.as_deref(), Ok("exit code: 4\nstderr:\nno\n"));
    assert!(interpreter.call(json!({ "language": "perl", "code": "1" })).await.is_err());
    assert!(run(ScriptLanguage::Sh, "true").await.stdout.is_empty());
}

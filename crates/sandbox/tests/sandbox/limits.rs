//! Programs that want too much.

use std::time::Duration;

use hob_sandbox::{ExitReason, Job, Sandbox, SandboxLimits, SandboxOptions, ScriptLanguage};

use super::{marker, options, processes_with, python, sh, until};

fn limited(limits: SandboxLimits) -> Sandbox {
    Sandbox::new(SandboxOptions { limits, ..options() })
}

#[tokio::test]
async fn a_fork_bomb_is_contained() {
    let marker = marker();
    let code = format!(
        "import os, sys, time\n\
         count = 0\n\
         try:\n\
         \x20   while True:\n\
         \x20       if os.fork() == 0:\n\
         \x20           os.execvp('sleep', ['sleep', '{marker}'])\n\
         \x20       count += 1\n\
         except OSError:\n\
         \x20   print(count < 64)"
    );
    assert_eq!(python(code).await.stdout, "True\n");
    until("the bomb is gone", || processes_with(&marker).is_empty()).await;
    let bomb = format!("bomb() {{ sleep {marker} & bomb | bomb & }}; bomb; sleep {marker}");
    let job = Job { timeout: Some(Duration::from_secs(2)), ..Job::new(ScriptLanguage::Sh, bomb) };
    let outcome = Sandbox::new(options()).run(job).await.unwrap();
    assert!(
        matches!(outcome.exit_reason, ExitReason::TimedOut(_) | ExitReason::Exited(_)),
        "{:?}",
        outcome.exit_reason
    );
    until("the bomb is gone", || processes_with(&marker).is_empty()).await;
}

#[tokio::test]
async fn a_process_cannot_use_too_much_memory() {
    let outcome = python("try:\n    x = bytearray(2 << 30)\nexcept MemoryError:\n    print('no')").await;
    assert_eq!(outcome.stdout, "no\n");
}

#[tokio::test]
async fn processes_that_use_too_much_memory_together_are_killed() {
    let limits = SandboxLimits { memory: 200 << 20, ..SandboxLimits::default() };
    let code = "import os, time\n\
                for _ in range(5):\n\
                \x20   if os.fork() == 0: break\n\
                hog = bytearray(os.urandom(1 << 20)) * 80\n\
                time.sleep(25)";
    let outcome = limited(limits).run(Job::new(ScriptLanguage::Python, code)).await.unwrap();
    assert_eq!(outcome.exit_reason, ExitReason::TooMuchMemory, "{outcome:?}");
}

#[tokio::test]
async fn scratch_space_and_files_have_a_size() {
    let limits = SandboxLimits { scratch: 4 << 20, file_size: 1 << 20, ..SandboxLimits::default() };
    let code = "import os, signal\n\
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n\
                def fill(path):\n\
                \x20   try:\n\
                \x20       with open(path, 'wb') as file:\n\
                \x20           for _ in range(64): file.write(bytes(1 << 16))\n\
                \x20   except OSError: pass\n\
                fill('/tmp/big')\n\
                print(os.path.getsize('/tmp/big') <= 1 << 20)\n\
                for place in ['/tmp', '/dev/shm']:\n\
                \x20   for number in range(12): fill(f'{place}/{number}')\n\
                \x20   print(sum(entry.stat().st_size for entry in os.scandir(place)) <= 4 << 20)";
    let outcome = limited(limits).run(Job::new(ScriptLanguage::Python, code)).await.unwrap();
    assert_eq!(outcome.stdout, "True\nTrue\nTrue\n", "{}", outcome.stderr);
}

#[tokio::test]
async fn endless_output_is_cut_and_then_ends_the_program() {
    let limits = SandboxLimits { output: 10_000, surplus: 1 << 20, ..SandboxLimits::default() };
    for stream in ["1", "2"] {
        let code = format!("yes drivel >&{stream}");
        let outcome = limited(limits).run(Job::new(ScriptLanguage::Sh, code)).await.unwrap();
        assert_eq!((outcome.exit_reason, outcome.output_cut), (ExitReason::TooMuchOutput, true));
        assert_eq!(outcome.stdout.len() + outcome.stderr.len(), 10_000);
    }
    // A lot is no flood: the rest is thrown away and the program ends as it wants.
    let outcome = limited(limits)
        .run(Job::new(ScriptLanguage::Sh, "head -c 500000 /dev/zero | tr '\\0' x; exit 5"))
        .await
        .unwrap();
    assert_eq!(
        (outcome.exit_reason, outcome.output_cut, outcome.stdout.len()),
        (ExitReason::Exited(5), true, 10_000)
    );
}

#[tokio::test]
async fn output_that_is_not_text_is_replaced() {
    assert_eq!(sh("printf 'a\\377b'").await.stdout, "a\u{fffd}b");
}

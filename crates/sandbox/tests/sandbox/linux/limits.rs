//! Programs that want too much.

use std::time::Duration;

use hob_sandbox::{ExitReason, Job, JobResult, Sandbox, SandboxLimits, SandboxOptions, ScriptLanguage};

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
async fn what_a_connection_holds_counts_as_memory() {
    let limits = SandboxLimits { memory: 100 << 20, ..SandboxLimits::default() };
    // The buffers grow while data is read. Then nothing reads it, until the sender would have to wait.
    let code = "import socket, time\n\
                server = socket.create_server(('::1', 0), family=socket.AF_INET6)\n\
                piece, kept = bytes(1 << 16), []\n\
                for _ in range(60):\n\
                \x20   sender = socket.create_connection(server.getsockname()[:2])\n\
                \x20   receiver = server.accept()[0]\n\
                \x20   kept.append((sender, receiver))\n\
                \x20   sender.setblocking(False)\n\
                \x20   try:\n\
                \x20       for number in range(100000):\n\
                \x20           sender.send(piece)\n\
                \x20           if number < 200: receiver.recv(1 << 16)\n\
                \x20   except BlockingIOError: pass\n\
                time.sleep(600)";
    let sandbox = Sandbox::new(SandboxOptions { limits, timeout: Duration::from_secs(300), ..options() });
    let outcome = sandbox.run(Job::new(ScriptLanguage::Python, code)).await.unwrap();
    assert_eq!(outcome.exit_reason, ExitReason::TooMuchMemory, "{outcome:?}");
}

#[tokio::test]
async fn what_many_sockets_hold_counts_as_memory() {
    let limits = SandboxLimits { memory: 200 << 20, ..SandboxLimits::default() };
    let code = "import os, socket, time\n\
                for _ in range(5):\n\
                \x20   if os.fork() == 0: break\n\
                pairs = [socket.socketpair() for _ in range(110)]\n\
                time.sleep(25)";
    let outcome = limited(limits).run(Job::new(ScriptLanguage::Python, code)).await.unwrap();
    assert_eq!(outcome.exit_reason, ExitReason::TooMuchMemory, "{outcome:?}");
}

#[tokio::test]
async fn what_many_pipes_hold_counts_as_memory() {
    let limits = SandboxLimits { memory: 200 << 20, ..SandboxLimits::default() };
    // The second kind of program does not show what it has open.
    for beginning in ["", "import ctypes; ctypes.CDLL(None).prctl(4, 0)\n"] {
        let code = format!(
            "{beginning}import os, time\n\
             for _ in range(39):\n\
             \x20   if os.fork() == 0: break\n\
             pipes = [os.pipe() for _ in range(110)]\n\
             time.sleep(25)"
        );
        let outcome = limited(limits).run(Job::new(ScriptLanguage::Python, code)).await.unwrap();
        assert_eq!(outcome.exit_reason, ExitReason::TooMuchMemory, "{outcome:?}");
    }
}

/// Such memory would not be counted, so a program could use that of the whole machine.
#[tokio::test]
async fn memory_that_belongs_to_no_process_is_refused() {
    let code = "import ctypes, fcntl, mmap, os, socket\n\
                libc = ctypes.CDLL(None, use_errno=True)\n\
                def checked(result):\n\
                \x20   if result < 0: raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))\n\
                def set_option(option, value):\n\
                \x20   socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, option, value)\n\
                pipe = os.pipe()\n\
                def map_zeros():\n\
                \x20   with open('/dev/zero', 'r+b', buffering=0) as zeros: mmap.mmap(zeros.fileno(), 4096)\n\
                for name, attempt in [\n\
                \x20   ('memfd', lambda: os.memfd_create('x')),\n\
                \x20   ('shmget', lambda: checked(libc.shmget(0, 4096, 0o1600))),\n\
                \x20   ('shared', lambda: mmap.mmap(-1, 4096)),\n\
                \x20   ('zeros', map_zeros),\n\
                \x20   ('vsock', lambda: socket.socket(40, socket.SOCK_STREAM)),\n\
                \x20   ('buffer', lambda: set_option(socket.SO_SNDBUF, 1 << 20)),\n\
                \x20   ('zerocopy', lambda: set_option(60, 1)),\n\
                \x20   ('pipe', lambda: fcntl.fcntl(pipe[1], 1031, 1 << 20)),\n\
                \x20   ('vmsplice', lambda: checked(libc.vmsplice(pipe[1], None, 0, 0))),\n\
                ]:\n\
                \x20   try:\n\
                \x20       attempt()\n\
                \x20       print(name, 'allowed')\n\
                \x20   except OSError as error:\n\
                \x20       print(name, error.strerror)";
    let outcome = python(code).await;
    let expected = "memfd Operation not permitted\nshmget Operation not permitted\n\
                    shared Operation not permitted\nzeros No such device\nvsock Operation not permitted\n\
                    buffer Operation not permitted\nzerocopy Operation not permitted\n\
                    pipe Operation not permitted\nvmsplice Operation not permitted\n";
    assert_eq!(outcome.stdout, expected, "{}", outcome.stderr);
}

#[tokio::test]
async fn ordinary_programs_work_under_the_filter_of_system_calls() {
    let code = "import mmap, multiprocessing, socket, subprocess, threading\n\
                private = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n\
                private.write(b'private')\n\
                print(private[:7])\n\
                server = socket.create_server(('127.0.0.1', 0))\n\
                client = socket.create_connection(server.getsockname())\n\
                client.sendall(b'inside')\n\
                print(server.accept()[0].recv(6))\n\
                one, other = socket.socketpair()\n\
                one.sendall(b'pair')\n\
                print(other.recv(4))\n\
                thread = threading.Thread(target=lambda: print('thread'))\n\
                thread.start()\n\
                thread.join()\n\
                print(multiprocessing.Value('i', 7).value)\n\
                print(subprocess.run(['sh', '-c', 'head -c 2 /dev/zero | od -An -tx1'], capture_output=True).stdout)";
    let outcome = python(code).await;
    let expected = "b'private'\nb'inside'\nb'pair'\nthread\n7\nb' 00 00\\n'\n";
    assert_eq!(outcome.stdout, expected, "{}", outcome.stderr);
}

#[tokio::test]
async fn a_program_that_creates_too_many_empty_files_is_killed() {
    let limits = SandboxLimits { files: 500, ..SandboxLimits::default() };
    for place in ["/tmp", "/dev/shm"] {
        // It would wait until its time is up.
        let code = format!(
            "import time\n\
             for number in range(2000): open(f'{place}/{{number}}', 'w').close()\n\
             time.sleep(600)"
        );
        let sandbox = Sandbox::new(SandboxOptions { limits, timeout: Duration::from_secs(300), ..options() });
        let outcome = sandbox.run(Job::new(ScriptLanguage::Python, code)).await.unwrap();
        assert_eq!(outcome.exit_reason, ExitReason::TooManyFiles, "{outcome:?}");
    }
    let outcome = limited(limits).run(Job::new(ScriptLanguage::Sh, "touch /tmp/one /tmp/two; ls /tmp")).await;
    assert_eq!(outcome.unwrap().stdout, "main.sh\none\ntwo\n");
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
        let shown = outcome_without_drivel(&outcome);
        assert_eq!((outcome.exit_reason, outcome.output_cut), (ExitReason::TooMuchOutput, true), "{shown}");
        assert_eq!(outcome.stdout.len() + outcome.stderr.len(), 10_000, "{shown}");
    }
    // A lot is no flood: the rest is thrown away and the program ends as it wants.
    let outcome = limited(limits)
        .run(Job::new(ScriptLanguage::Sh, "head -c 500000 /dev/zero | tr '\\0' x; exit 5"))
        .await
        .unwrap();
    assert_eq!(
        (outcome.exit_reason, outcome.output_cut, outcome.stdout.len()),
        (ExitReason::Exited(5), true, 10_000),
        "{}",
        outcome.stderr
    );
}

/// What else a program wrote, for the message of a failed test.
fn outcome_without_drivel(outcome: &JobResult) -> String {
    format!("{:?} {}{}", outcome.duration, outcome.stdout, outcome.stderr).replace("drivel\n", "")
}

#[tokio::test]
async fn output_that_is_not_text_is_replaced() {
    assert_eq!(sh("printf 'a\\377b'").await.stdout, "a\u{fffd}b");
}

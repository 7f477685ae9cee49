//! Programs that try to get out.

use std::io::Write;
use std::net::TcpListener;

use super::{python, sandbox, sh};
use hob_sandbox::{Job, ScriptLanguage};

#[tokio::test]
async fn the_files_of_this_machine_are_not_there() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("secret.txt");
    std::fs::File::create(&file).unwrap().write_all(b"s3cret").unwrap();
    let code = format!(
        "cat {} /etc/shadow /etc/passwd /proc/1/root/etc/shadow; ls /root /home /var /mnt /run /sys /work; echo end",
        file.display()
    );
    let outcome = sh(code).await;
    assert_eq!(outcome.stdout, "end\n", "{}", outcome.stderr);
}

#[tokio::test]
async fn nothing_but_scratch_space_can_be_written() {
    let outcome = sh("for place in / /usr /usr/bin /etc /dev /proc /proc/sys/kernel /bin /lib; do \
                      (echo x > $place/intruder) 2>/dev/null && echo wrote $place; done; \
                      (echo x > /proc/sys/kernel/hostname) 2>/dev/null && echo sysctl; \
                      (echo x > /proc/sysrq-trigger) 2>/dev/null && echo sysrq; \
                      mount -t tmpfs none /tmp 2>/dev/null && echo mounted; \
                      mount -o remount,rw / 2>/dev/null && echo remounted; \
                      (echo x > /tmp/fine) && echo scratch")
    .await;
    assert_eq!(outcome.stdout, "scratch\n");
}

#[tokio::test]
async fn there_is_no_network_not_even_this_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let code = format!(
        "import socket\n\
         for host in ['127.0.0.1', '1.1.1.1', '169.254.169.254']:\n\
         \x20   try:\n\
         \x20       socket.create_connection((host, {port}), timeout=2)\n\
         \x20       print('connected', host)\n\
         \x20   except OSError as error:\n\
         \x20       print('refused')\n\
         print([name for _, name in socket.if_nameindex()])"
    );
    assert_eq!(python(code).await.stdout, "refused\nrefused\nrefused\n['lo']\n");
    assert!(listener.accept().is_err(), "a connection came through");
}

#[tokio::test]
async fn other_processes_cannot_be_seen_or_signalled() {
    let code = format!(
        "import os\n\
         print(sum(name.isdigit() for name in os.listdir('/proc')) <= 4)\n\
         try:\n\
         \x20   os.kill({}, 0)\n\
         \x20   print('found')\n\
         except ProcessLookupError:\n\
         \x20   print('nobody')",
        // A number that no process inside has.
        std::process::id().max(1_000)
    );
    assert_eq!(python(code).await.stdout, "True\nnobody\n");
}

#[tokio::test]
async fn a_program_runs_as_nobody_and_cannot_gain_rights() {
    let outcome = sh("id -u; id -g; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; \
                      unshare --user true 2>/dev/null && echo namespace; \
                      unshare --mount true 2>/dev/null && echo mounts; \
                      chroot / true 2>/dev/null && echo chroot; \
                      env | cut -d= -f1 | sort | tr '\\n' ' '")
    .await;
    let expected = "65534\n65534\nCapBnd:\t0000000000000000\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n\
                    HOME LANG PATH PWD TMPDIR ";
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines[2..4].sort_unstable();
    assert_eq!(lines.join("\n"), expected);
}

#[tokio::test]
async fn a_program_cannot_fake_a_failure_of_the_sandbox() {
    let pretender = sandbox().run(Job::new(ScriptLanguage::Sh, "echo 'bwrap: no luck' >&2; exit 1")).await;
    assert!(pretender.is_err_and(|error| error.to_string().contains("no luck")));
    let honest = sh("echo out; echo 'bwrap: no luck' >&2; exit 1").await;
    assert_eq!(honest.exit_code(), Some(1));
}

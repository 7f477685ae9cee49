//! The real bridge with its library: without a network it reports that, retries, and ends on request.

use std::path::{Path, PathBuf};

use hob_channels::whatsapp::WhatsappProgram;
use hob_channels::{Channel, WhatsappOptions};
use hob_channels::{ChannelError, ChannelStatus};
use hob_process::{Need, std_command};
use tokio::time::{Instant, timeout};

use super::support::{node, part};
use crate::wait::WAIT_LIMIT;

/// The scripts beside their packages, as `hob channel login whatsapp` lays them out.
fn installed(directory: &Path) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bridges/whatsapp");
    for script in ["message_age.mjs", "forwarded.mjs", "ending.mjs", "bridge.mjs"] {
        std::fs::copy(sources.join(script), directory.join(script)).unwrap();
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(part("HOB_TEST_NODE_MODULES"), directory.join("node_modules")).unwrap();
    directory.join("bridge.mjs")
}

#[cfg(unix)]
#[tokio::test]
async fn without_a_network_it_is_disconnected_and_ends_cleanly() {
    let directory = tempfile::tempdir().unwrap();
    let program = WhatsappProgram {
        node: node(),
        script: installed(directory.path()),
        auth_dir: directory.path().join("session"),
    };
    // One that has to be made to end takes two seconds, a busy machine sometimes as long; but not every time.
    for attempt in 1.. {
        if ends_by_itself(&program).await {
            return;
        }
        assert!(attempt < 10, "it never ends by itself");
    }
}

/// Whether it is gone before it would be made to go.
#[cfg(unix)]
async fn ends_by_itself(program: &WhatsappProgram) -> bool {
    let whatsapp = Channel::whatsapp(WhatsappOptions::new(program.clone()));
    let status = timeout(WAIT_LIMIT, whatsapp.connect()).await.unwrap();
    // On a machine with a network it would show a code instead, and be as little connected.
    assert_eq!(status, ChannelStatus::Disconnected, "{:?}", whatsapp.report());
    let error = whatsapp.send("4915112345678@s.whatsapp.net", "hello", None).await.unwrap_err();
    assert!(matches!(error, ChannelError::Undelivered { .. }), "{error}");
    let begun = Instant::now();
    timeout(WAIT_LIMIT, whatsapp.close()).await.unwrap();
    begun.elapsed().as_secs() < 2
}

/// What needs no connection is tested without one, in Node.js.
#[test]
fn the_scripts_of_the_bridge_pass_their_tests() {
    for (file, expected) in [
        ("message_age.test.mjs", "messages that are older than ten minutes are skipped"),
        ("forwarded.test.mjs", "messages that were passed on are recognised"),
        ("reconnecting.test.mjs", "a bridge that ends opens no new connection"),
    ] {
        assert_passes(&tests_of_scripts().join(file), expected);
    }
}

#[cfg(unix)]
#[test]
fn the_bridge_loses_no_message_that_the_library_has_confirmed() {
    let directory = tempfile::tempdir().unwrap();
    installed(directory.path());
    let test = directory.path().join("ending.test.mjs");
    std::fs::copy(tests_of_scripts().join("ending.test.mjs"), &test).unwrap();
    assert_passes(&test, "messages that WhatsApp counts as delivered are passed on before the end");
}

fn tests_of_scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/channels/whatsapp")
}

fn assert_passes(tests: &Path, expected: &str) {
    let ran = std_command(node(), &[Need::Basics]).arg("--test").arg(tests).output().unwrap();
    let output = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{output}");
    assert!(output.contains(expected), "the tests did not run: {output}");
}

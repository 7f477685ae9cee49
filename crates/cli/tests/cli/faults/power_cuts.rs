//! The power fails at every single change: what was not synced is lost, or some of it.

use super::crash_points::{run_until_each, serve_until_each};
use super::outcome::Promise;
use super::report;
use super::traced::Crash;

#[tokio::test]
#[ignore = "takes minutes: ./dev test --faults"]
async fn what_a_server_has_acknowledged_survives_a_power_cut_at_any_change() {
    serve_until_each("power-cut", Crash::PowerCut, Promise::AllButTheLastSecond).await;
}

#[tokio::test]
#[ignore = "takes minutes: ./dev test --faults"]
async fn some_sectors_of_what_was_not_synced_do_no_harm() {
    serve_until_each("power-cut-rests", Crash::PowerCutWithRests, Promise::AllButTheLastSecond).await;
}

#[tokio::test]
#[ignore = "takes minutes: ./dev test --faults"]
async fn a_command_can_be_repeated_after_a_power_cut_at_any_change() {
    let mut figure = report("commands-power-cut", "crashes");
    let task = ["scheduler", "create", "Say hello.", "--type", "interval", "--value", "3600"];
    let cases: [&[&str]; 4] =
        [&["init", "--force"], &task, &["key", "create", "ana"], &["memory", "index", "DOCUMENTS"]];
    for arguments in cases {
        run_until_each(&mut figure, &[], arguments, Crash::PowerCut).await;
        run_until_each(&mut figure, &[], arguments, Crash::PowerCutWithRests).await;
    }
}

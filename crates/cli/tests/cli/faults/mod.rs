//! Disks, clocks, engines and databases that fail while `hob` works. `./dev test --faults` runs these tests.
//!
//! After each fault, nothing that was acknowledged is lost, nothing is done twice, and the next start works. `HOB_TEST_STRIDE=10` ends
//! the program at every tenth change instead of at every one.

mod acknowledged;
mod client;
mod clock;
mod crash_points;
mod disks;
mod engines;
mod outcome;
mod postgres;
mod power_cuts;
mod tools;
mod traced;

use std::path::Path;

use hob_testkit::record_run;
use serde_json::json;

use crate::home::engines_config;

/// With one engine, a gateway and the scheduler.
fn config(engine: &str, gateway: &str) -> String {
    format!(
        "{}[channel]\nenabled = true\ngateway_url = \"{gateway}\"\nreconnect_interval = 0.1\n\
         [scheduler]\nenabled = true\npoll_interval = 1.0\n",
        engines_config(&[("vllm", engine)])
    )
}

/// The distance of two changes at which the program is ended.
fn stride() -> usize {
    let text = std::env::var("HOB_TEST_STRIDE").unwrap_or_else(|_| "1".to_owned());
    let stride = text.parse().unwrap_or_else(|_| panic!("HOB_TEST_STRIDE={text} is no number"));
    std::cmp::max(stride, 1)
}

/// Notes a figure for `docs/reliability.md` if `./dev test --faults` runs the test. A quick look at some of the changes is no figure.
fn report(name: &str, count: usize, unit: &str, failures: usize) {
    if stride() > 1 {
        return;
    }
    let Some(directory) = std::env::var_os("HOB_TEST_RELIABILITY") else { return };
    let run = json!({ "suite": "faults", "name": name, "count": count, "unit": unit, "failures": failures });
    record_run(Path::new(&directory), run);
}

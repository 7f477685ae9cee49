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

/// The figure of a test for `docs/reliability.md`. It is noted when the test ends, also if it fails, so that an older good figure does not
/// stay on the page.
struct Figure {
    name: &'static str,
    unit: &'static str,
    count: usize,
    failures: usize,
}

/// Begins the figure of a test. `unit` says what its count counts.
fn report(name: &'static str, unit: &'static str) -> Figure {
    Figure { name, unit, count: 0, failures: 0 }
}

impl Drop for Figure {
    fn drop(&mut self) {
        // Only `./dev test --faults` sets the directory. A quick look at some of the changes is no figure.
        let directory = std::env::var_os("HOB_TEST_RELIABILITY").filter(|_| stride() == 1);
        let Some(directory) = directory else { return };
        let Figure { name, unit, count, .. } = self;
        let failures = std::cmp::max(self.failures, usize::from(std::thread::panicking()));
        let run =
            json!({ "suite": "faults", "name": name, "count": count, "unit": unit, "failures": failures });
        record_run(Path::new(&directory), run);
    }
}

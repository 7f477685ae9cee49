//! Runs threads in many orders.

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// The number of orders to try, unless `HOB_INTERLEAVINGS` says otherwise.
const ORDERS: usize = 2_000;

/// The stack of a thread. Messages are formatted on it.
const STACK_BYTES: usize = 1 << 20;

/// One more than the changes of priority in one order. Most defects need no more than two changes.
const DEPTH: usize = 3;

/// Runs `promise` again and again, each time with its threads in another order. Half of the orders are random. The
/// other half prefers some threads over others, which finds what needs one thread to be late.
///
/// A panic fails the test, and so do threads that wait for each other forever. The failure prints the order, and for a
/// random order the seed with which `SHUTTLE_RANDOM_SEED` repeats it.
pub fn explore(promise: impl Fn() + Send + Sync + 'static) {
    let orders = std::env::var("HOB_INTERLEAVINGS").ok().and_then(|text| text.parse().ok()).unwrap_or(ORDERS);
    let promise = Arc::new(promise);
    let again = Arc::clone(&promise);
    Runner::new(RandomScheduler::new(orders.div_ceil(2)), config()).run(move || promise());
    Runner::new(PctScheduler::new(DEPTH, orders.div_ceil(2)), config()).run(move || again());
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config
}

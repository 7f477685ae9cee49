//! Whether reconnects of the gateway leave anything behind. A program of its own, because it counts the memory of its process.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

#[path = "channels/gateway/support.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod support;
#[path = "channels/wait.rs"]
mod wait;

use std::alloc::System;
use std::sync::Arc;
use std::time::Duration;

use hob_channels::{Channel, GatewayOptions, GatewayTimeouts};
use hob_testkit::{Gateway, GatewayScript};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::time::timeout;

use support::{Echo, frame};
use wait::{WAIT_LIMIT, until};

/// Counted as it is taken and given back: how much of it the system keeps for the process differs by the machine.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The memory that is in use.
fn live_bytes() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}

/// An hour of a gateway that hangs up as soon as it is connected.
#[tokio::test]
async fn an_hour_of_reconnects_leaves_nothing_behind() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let options = GatewayOptions {
        reconnect_interval: Duration::from_micros(500),
        timeouts: GatewayTimeouts { detect_within: Duration::from_micros(100), ..GatewayTimeouts::default() },
        ..GatewayOptions::new(gateway.url())
    };
    let client = Channel::gateway(options).unwrap();
    client.on_message(Arc::new(Echo));
    client.start();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let mut before = None;
    // An attempt every five seconds is 720 in an hour.
    for round in 1..=720 {
        timeout(WAIT_LIMIT, gateway.opened(round)).await.unwrap();
        gateway.push(frame("t1", round));
        gateway.hang_up();
        if round == 120 {
            before = Some((tasks(), live_bytes()));
        }
    }
    let (tasks_before, bytes_before) = before.unwrap();
    until("everything has ended", || tasks() <= tasks_before + 2).await;
    let after = live_bytes();
    assert!(after < bytes_before + (1 << 20), "from {bytes_before} to {after} bytes");
    client.close().await;
}

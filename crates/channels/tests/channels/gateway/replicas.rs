//! Two processes of one database and one gateway: one is connected, the other sends through it and takes over.

use std::time::Duration;

use hob_channels::{ChannelError, ChannelOptions, ChannelStatus, SharingTimes};
use hob_testkit::{Gateway, GatewayScript, PostgresServer, TestDatabase};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::support::{content, frame, quick};
use crate::replica::{Replica, open_store, sharing, short_lease};
use crate::wait::{WAIT_LIMIT, until};

/// A lease that no busy machine loses.
fn patient() -> SharingTimes {
    SharingTimes {
        lease: Duration::from_secs(60),
        retry_every: Duration::from_millis(50),
        ..SharingTimes::default()
    }
}

/// Connects and answers, in the current runtime.
fn replica(database: &TestDatabase, gateway: &str, times: SharingTimes) -> Replica {
    let options = ChannelOptions { gateway: Some(quick(gateway)), ..sharing(database, times) };
    Replica::start(options, None)
}

/// All messages that the gateway got: over the socket, then over HTTP, which is used while a connection is being opened.
fn contents(gateway: &Gateway) -> Vec<String> {
    let over_http = gateway.requests().into_iter().filter(|request| request.path == "/send");
    let over_http = over_http.map(|request| serde_json::from_slice(&request.body).unwrap());
    let all = gateway.frames().into_iter().chain(over_http);
    all.map(|frame| content(&frame).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_is_connected_and_the_other_reports_it_and_sends_through_it() {
    let database = PostgresServer::shared().create_database();
    let gateway = Gateway::start(GatewayScript::default()).await;
    let first = replica(&database, &gateway.url(), patient());
    until("connected", || first.status() == ChannelStatus::Connected).await;
    let second = replica(&database, &gateway.url(), patient());
    // The lease says so with its next renewal.
    until("the other one says so too", || second.status() == ChannelStatus::Connected).await;
    gateway.push(frame("t1", 1));
    until("answered", || contents(&gateway).contains(&"re: t1-1".to_owned())).await;
    timeout(WAIT_LIMIT, second.service.send("telegram", "from the other process", Some("t1")))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(contents(&gateway), ["re: t1-1", "from the other process"]);
    let sent_over_http = gateway.requests().iter().filter(|request| request.path == "/send").count();
    assert_eq!((gateway.connections_so_far(), sent_over_http), (1, 0));
    assert_eq!(second.service.list().await.unwrap(), ["telegram", "slack"]);
    assert_eq!(second.asked(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stops_hands_its_channel_over_at_once() {
    let database = PostgresServer::shared().create_database();
    let gateway = Gateway::start(GatewayScript::default()).await;
    let first = replica(&database, &gateway.url(), patient());
    until("connected", || first.status() == ChannelStatus::Connected).await;
    let second = replica(&database, &gateway.url(), patient());
    first.service.close().await;
    timeout(WAIT_LIMIT, gateway.opened(2)).await.unwrap();
    until("connected", || second.status() == ChannelStatus::Connected).await;
    gateway.push(frame("t1", 1));
    until("answered", || contents(&gateway) == ["re: t1-1"]).await;
    second.service.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_loses_its_channel_and_what_it_left_is_answered_once() {
    let database = PostgresServer::shared().create_database();
    let gateway = Gateway::start(GatewayScript::default()).await;
    // Its own runtime, so that all of it is gone at once, without a goodbye.
    let process = Runtime::new().unwrap();
    let first = {
        let _entered = process.enter();
        replica(&database, &gateway.url(), short_lease())
    };
    until("connected", || first.status() == ChannelStatus::Connected).await;
    gateway.push(frame("t1", 1));
    until("answered", || contents(&gateway) == ["re: t1-1"]).await;
    // A message that the dead process took and did not answer.
    let store = open_store(&database).store;
    process.shutdown_background();
    let left = frame("t1", 2);
    let now = std::time::SystemTime::now();
    tokio::task::spawn_blocking(move || {
        store.take(Some("telegram\u{1f}t1\u{1f}t1-2"), &left, now).unwrap().unwrap()
    })
    .await
    .unwrap();
    let second = replica(&database, &gateway.url(), short_lease());
    until("taken over", || second.status() == ChannelStatus::Connected && gateway.connections_so_far() >= 2)
        .await;
    // The gateway does not know what arrived, and gives all of it again.
    for number in 1..=3 {
        gateway.push(frame("t1", number));
    }
    until("answered", || contents(&gateway).len() >= 3).await;
    let mut said = contents(&gateway);
    said.sort();
    assert_eq!(said, ["re: t1-1", "re: t1-2", "re: t1-3"]);
    assert_eq!(second.asked(), 2);
    second.service.close().await;
    drop(first);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_no_process_takes_fails_with_a_reason() {
    let database = PostgresServer::shared().create_database();
    let gateway = Gateway::start(GatewayScript::default()).await;
    let shared = open_store(&database).shared.unwrap();
    let name = format!("gateway {}", gateway.url());
    // A process that has the lease, and does nothing.
    tokio::task::spawn_blocking(move || {
        let claim = hob_channels::store::LeaseClaim {
            channel: &name,
            holder: "stuck",
            lease: Duration::from_secs(3_600),
            status: "connected",
            problem: None,
        };
        shared.hold(&claim).unwrap();
    })
    .await
    .unwrap();
    let times = SharingTimes { taken_within: Duration::from_millis(300), ..patient() };
    let waiting = replica(&database, &gateway.url(), times);
    until("waiting", || waiting.status() == ChannelStatus::Connected).await;
    let sent = timeout(WAIT_LIMIT, waiting.service.send("telegram", "x", None)).await.unwrap();
    let reason =
        "no process of Hob is connected to the channel. Check the log of those that have it switched on"
            .to_owned();
    assert_eq!(sent, Err(ChannelError::Undelivered { channel: "telegram".into(), reason }));
    assert_eq!((gateway.connections_so_far(), gateway.frames().len()), (0, 0));
}

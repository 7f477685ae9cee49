//! A gateway that goes away and comes back, or only seems to be there.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_channels::{Channel, GatewayOptions, HandlerResult, LiveReply, MessageHandler};
use hob_channels::{ChannelMessage, ChannelStatus};
use hob_testkit::{Gateway, GatewayScript};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::support::{Echo, content, echoing, frame, quick};
use crate::wait::{WAIT_LIMIT, until};

#[tokio::test]
async fn after_a_lost_connection_messages_arrive_again() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let client = echoing(&gateway).await;
    for round in 1..=3 {
        gateway.push(frame("t1", round));
        timeout(WAIT_LIMIT, gateway.received(round)).await.unwrap();
        gateway.hang_up();
        timeout(WAIT_LIMIT, gateway.opened(round + 1)).await.unwrap();
        until("connected again", || client.status() == ChannelStatus::Connected).await;
    }
    let said: Vec<String> = gateway.frames().iter().map(|frame| content(frame).to_owned()).collect();
    assert_eq!(said, ["re: t1-1", "re: t1-2", "re: t1-3"]);
}

#[tokio::test]
async fn a_missing_gateway_is_an_error_and_is_retried() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let (address, url) = (gateway.address(), gateway.url());
    drop(gateway);
    let client = Channel::gateway(quick(url)).unwrap();
    client.on_message(Arc::new(Echo));
    assert_eq!(client.connect().await, ChannelStatus::Error);
    let problem = client.report().problem.unwrap();
    assert!(problem.contains("cannot connect to the gateway") && problem.contains("refused"), "{problem}");

    let gateway = Gateway::on(address, GatewayScript::default()).await;
    until("connected", || client.status() == ChannelStatus::Connected).await;
    assert_eq!(client.report().problem, None);
    gateway.push(frame("t1", 1));
    timeout(WAIT_LIMIT, gateway.received(1)).await.unwrap();
}

/// Answers when it is let.
#[derive(Default)]
struct Thinking {
    began: Notify,
    go: Notify,
}

#[async_trait]
impl MessageHandler for Thinking {
    async fn handle(&self, message: &ChannelMessage, _live: &dyn LiveReply) -> HandlerResult {
        self.began.notify_one();
        self.go.notified().await;
        Ok(Some(format!("at last: {}", message.content)))
    }
}

#[tokio::test]
async fn a_reply_survives_a_restart_of_the_gateway_and_is_sent_once() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let address = gateway.address();
    let client = Channel::gateway(quick(gateway.url())).unwrap();
    let thinking = Arc::new(Thinking::default());
    client.on_message(Arc::clone(&thinking) as Arc<dyn MessageHandler>);
    client.connect().await;
    gateway.push(frame("t1", 1));
    thinking.began.notified().await;
    drop(gateway);
    until("noticed", || client.status() != ChannelStatus::Connected).await;
    // The answer is ready while no connection can take it.
    thinking.go.notify_one();
    until("tried", || client.status() == ChannelStatus::Error).await;

    let gateway = Gateway::on(address, GatewayScript::default()).await;
    until("connected", || client.status() == ChannelStatus::Connected).await;
    // The gateway does not know whether its message arrived, and gives it again.
    gateway.push(frame("t1", 1));
    let delivered = || {
        let over_http = gateway.requests().iter().filter(|request| request.path == "/send").count();
        over_http + gateway.frames().len()
    };
    until("delivered", || delivered() == 1).await;
    gateway.push(frame("t1", 2));
    thinking.go.notify_one();
    until("the next one too", || delivered() == 2).await;
}

#[tokio::test]
async fn stopping_does_not_wait_for_the_next_attempt() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let url = gateway.url();
    drop(gateway);
    let options = GatewayOptions { reconnect_interval: Duration::from_secs(3_600), ..quick(url) };
    let client = Channel::gateway(options).unwrap();
    client.connect().await;
    // The next one is an hour away.
    timeout(WAIT_LIMIT, client.close()).await.unwrap();
    assert_eq!(client.status(), ChannelStatus::Disconnected);
}

#[tokio::test]
async fn stopping_closes_the_socket_and_starting_opens_it_again() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let client = echoing(&gateway).await;
    client.disconnect().await;
    assert_eq!(client.status(), ChannelStatus::Disconnected);
    assert_eq!(client.connect().await, ChannelStatus::Connected);
    assert_eq!(client.connect().await, ChannelStatus::Connected, "again is no harm");
    assert_eq!(gateway.connections_so_far(), 2);
}

/// Not with a paused clock: it advances while the test waits for a socket, so that a time limit ends before the socket is ready.
#[tokio::test]
async fn a_silent_gateway_is_disconnected() {
    // It takes the connection and never says a word, not even to a ping.
    let gateway = Gateway::start(GatewayScript { is_deaf: true, ..GatewayScript::default() }).await;
    let (silent_for, mut options) = (Duration::from_millis(500), quick(gateway.url()));
    (options.timeouts.silent_for, options.timeouts.ping_every) = (silent_for, Duration::from_millis(50));
    let client = Channel::gateway(options).unwrap();
    let begun = Instant::now();
    client.start();
    timeout(WAIT_LIMIT, gateway.opened(2)).await.unwrap();
    assert!(begun.elapsed() >= silent_for, "it was connected for a while");
    client.close().await;
}

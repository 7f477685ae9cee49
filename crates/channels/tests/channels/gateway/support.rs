//! What the tests of the bridge share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hob_channels::{Channel, GatewayOptions, GatewayTimeouts, HandlerResult, LiveReply, MessageHandler};
use hob_channels::{ChannelMessage, ChannelStatus};
use hob_core::{EventBus, Subscription};
use hob_testkit::Gateway;
use serde_json::{Value, json};

/// Quick to see that a gateway is simple, and to come back.
pub fn quick(url: impl Into<String>) -> GatewayOptions {
    GatewayOptions {
        reconnect_interval: Duration::from_millis(20),
        timeouts: GatewayTimeouts { detect_within: Duration::from_millis(100), ..GatewayTimeouts::default() },
        ..GatewayOptions::new(url)
    }
}

pub struct Echo;

#[async_trait]
impl MessageHandler for Echo {
    async fn handle(&self, message: &ChannelMessage, _live: &dyn LiveReply) -> HandlerResult {
        Ok(Some(format!("re: {}", message.content)))
    }
}

/// A bridge that echoes, connected to `gateway`.
pub async fn echoing(gateway: &Gateway) -> Channel {
    echoing_with(quick(gateway.url())).await
}

pub async fn echoing_with(options: GatewayOptions) -> Channel {
    let client = Channel::gateway(options).unwrap();
    client.on_message(Arc::new(Echo));
    assert_eq!(client.connect().await, ChannelStatus::Connected, "{:?}", client.report());
    client
}

/// A message of the simple protocol.
pub fn frame(conversation: &str, number: usize) -> String {
    json!({
        "channel": "telegram",
        "sender": "ann",
        "content": format!("{conversation}-{number}"),
        "message_id": format!("{conversation}-{number}"),
        "conversation_id": conversation,
        "metadata": {},
    })
    .to_string()
}

/// What a frame says.
pub fn content(frame: &Value) -> &str {
    frame["content"].as_str().unwrap_or_default()
}

/// Events by name and data.
pub type Heard = Arc<Mutex<Vec<(String, Value)>>>;

/// Every event of the bus.
pub fn heard(bus: &EventBus) -> (Heard, Subscription) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&heard);
    let subscription = bus.subscribe(move |happening| {
        writer.lock().unwrap().push((happening.event.name().to_owned(), happening.event.data()));
    });
    (heard, subscription)
}

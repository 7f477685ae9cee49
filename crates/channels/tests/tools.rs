//! The tools of messaging, called through the tool set: what they do, and for whom.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hob_agents::ToolSet;
use hob_agents::builtin::{BuiltInOptions, built_in_tools};
use hob_channels::{ChannelError, ChannelReport, ChannelStatus, Channels, channel_tools};
use hob_core::{Permit, Reach, RunEvents, ToolCall, ToolResult, ToolRunner};

#[derive(Default)]
struct Pigeons {
    sent: Mutex<Vec<String>>,
}

#[async_trait]
impl Channels for Pigeons {
    async fn send(&self, channel: &str, content: &str, thread: Option<&str>) -> Result<(), ChannelError> {
        if channel == "nobody" {
            return Err(ChannelError::Invalid { reason: "nobody is nowhere".into() });
        }
        self.sent.lock().unwrap().push(format!("{channel}/{}: {content}", thread.unwrap_or("-")));
        Ok(())
    }

    async fn list(&self) -> Result<Vec<String>, ChannelError> {
        Ok(vec!["telegram".into(), "slack".into()])
    }

    fn report(&self) -> ChannelReport {
        let trouble = Some("no route".to_owned());
        ChannelReport { status: ChannelStatus::Error, gateway_url: "ws://x".into(), trouble }
    }
}

fn tool_set(pigeons: &Arc<Pigeons>) -> ToolSet {
    let channels = Arc::clone(pigeons) as Arc<dyn Channels>;
    ToolSet::new(channel_tools(&channels)).unwrap()
}

async fn call(tools: &ToolSet, most: Reach, name: &str, arguments: &str) -> ToolResult {
    let tools = tools.for_run(Permit::up_to(most), RunEvents::unheard()).unwrap();
    tools.execute(&ToolCall { id: "1".into(), name: name.into(), arguments: arguments.into() }).await
}

#[tokio::test]
async fn a_message_is_sent_and_the_model_hears_what_became_of_it() {
    let pigeons = Arc::new(Pigeons::default());
    let tools = tool_set(&pigeons);
    let sent = call(
        &tools,
        Reach::Act,
        "channel_send",
        r#"{"channel":"telegram","content":"hi","conversation_id":"t1"}"#,
    )
    .await;
    assert_eq!((sent.success, sent.content.as_str()), (true, "The message to telegram was sent."));
    assert_eq!(*pigeons.sent.lock().unwrap(), ["telegram/t1: hi"]);
    let unsent = call(&tools, Reach::Act, "channel_send", r#"{"channel":"nobody","content":"hi"}"#).await;
    assert!(!unsent.success && unsent.content.contains("nobody is nowhere"), "{unsent:?}");
}

#[tokio::test]
async fn channels_and_their_status_are_told() {
    let tools = tool_set(&Arc::new(Pigeons::default()));
    assert_eq!(call(&tools, Reach::Read, "channel_list", "{}").await.content, "telegram\nslack");
    assert_eq!(call(&tools, Reach::Read, "channel_status", "{}").await.content, "error: no route");
}

#[tokio::test]
async fn strangers_neither_send_nor_look() {
    let pigeons = Arc::new(Pigeons::default());
    let tools = tool_set(&pigeons);
    for (most, name) in [
        (Reach::Pure, "channel_list"),
        (Reach::Pure, "channel_status"),
        (Reach::Pure, "channel_send"),
        (Reach::Read, "channel_send"),
    ] {
        let arguments =
            if name == "channel_send" { r#"{"channel":"telegram","content":"hi"}"# } else { "{}" };
        assert!(!call(&tools, most, name, arguments).await.success, "{name}");
    }
    assert_eq!(pigeons.sent.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn a_house_without_channels_has_no_such_tools() {
    let tools = ToolSet::new(built_in_tools(BuiltInOptions::default())).unwrap();
    assert!(tools.specs().all(|spec| !spec.name.starts_with("channel_")));
}

//! More messages than can be answered at once.

use std::collections::BTreeMap;
use std::time::Duration;

use hob_channels::ChannelStatus;
use hob_testkit::{Gateway, GatewayScript};
use tokio::time::timeout;

use super::support::{content, echoing, frame};

const CONVERSATIONS: usize = 200;
const EACH: usize = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_messages_are_answered_once_each_and_in_order() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let client = echoing(&gateway).await;
    for number in 0..EACH {
        for conversation in 0..CONVERSATIONS {
            gateway.push(frame(&format!("c{conversation}"), number));
        }
        if number % 10 == 0 {
            // Every tenth round comes twice.
            gateway.push(frame("c0", number));
        }
    }
    let frames =
        timeout(Duration::from_secs(600), gateway.received(CONVERSATIONS * EACH)).await.expect("all of them");
    let mut answered: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for frame in &frames {
        let conversation = frame["conversation_id"].as_str().unwrap().to_owned();
        answered.entry(conversation).or_default().push(content(frame).to_owned());
    }
    assert_eq!((frames.len(), answered.len()), (CONVERSATIONS * EACH, CONVERSATIONS));
    for (conversation, contents) in answered {
        let expected: Vec<String> = (0..EACH).map(|number| format!("re: {conversation}-{number}")).collect();
        assert_eq!(contents, expected);
    }
    assert_eq!(client.status(), ChannelStatus::Connected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_in_one_conversation_does_not_block_the_others() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let client = echoing(&gateway).await;
    for number in 0..10_000 {
        gateway.push(frame("flood", number));
    }
    gateway.push(frame("quiet", 1));
    let heard = async {
        let mut count = 1;
        loop {
            let frames = gateway.received(count).await;
            if frames.iter().any(|frame| content(frame) == "re: quiet-1") {
                return frames;
            }
            count = frames.len() + 1;
        }
    };
    timeout(Duration::from_secs(600), heard).await.expect("an answer for the quiet one");
    client.close().await;
}

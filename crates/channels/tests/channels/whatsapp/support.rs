//! A scripted subprocess.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_channels::ChannelMessage;
use hob_channels::whatsapp::WhatsappProgram;
use hob_channels::{Channel, HandlerResult, LiveReply, MessageHandler, WhatsappOptions};
use serde_json::Value;
use tempfile::TempDir;

/// What every script begins with. Orders are written to a file, and sends are acknowledged unless the test decides otherwise.
const BEGINNING: &str = r#"
import { createInterface } from 'node:readline';
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
const tell = (event) => process.stdout.write(JSON.stringify(event) + '\n');
const here = (name) => new URL(name, import.meta.url).pathname;
let onSend = ({ id }) => tell({ type: 'sent', id });
const orders = createInterface({ input: process.stdin });
orders.on('line', (line) => {
  appendFileSync(here('orders.jsonl'), line + '\n');
  const order = JSON.parse(line);
  if (order.type === 'send') onSend(order);
  if (order.type === 'disconnect') process.exit(0);
});
orders.on('close', () => process.exit(0));
const connected = () => tell({ type: 'status', status: 'connected' });
const message = (text, more) => tell({
  type: 'message', jid: '4915@s.whatsapp.net', sender: '4915@s.whatsapp.net', text, message_id: text, ...more,
});
"#;

/// A directory with the script in it.
pub struct Script {
    pub directory: TempDir,
}

impl Script {
    pub fn new(body: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("bridge.mjs"), format!("{BEGINNING}{body}")).unwrap();
        Script { directory }
    }

    pub fn program(&self) -> WhatsappProgram {
        WhatsappProgram {
            node: node(),
            script: self.directory.path().join("bridge.mjs"),
            auth_dir: self.directory.path().join("session"),
        }
    }

    pub fn options(&self) -> WhatsappOptions {
        WhatsappOptions { restart_delay: Duration::from_millis(10), ..WhatsappOptions::new(self.program()) }
    }

    /// The orders to the subprocess so far.
    pub fn orders(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.directory.path().join("orders.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The texts that were sent.
    pub fn sent(&self) -> Vec<String> {
        let orders = self.orders();
        let sends = orders.iter().filter(|order| order["type"] == "send");
        sends.map(|order| order["text"].as_str().unwrap().to_owned()).collect()
    }
}

pub fn node() -> PathBuf {
    part("HOB_TEST_NODE").into()
}

pub fn part(variable: &str) -> String {
    std::env::var(variable)
        .unwrap_or_else(|_| panic!("{variable} is not set: run this test with './dev test'"))
}

struct Echo;

#[async_trait]
impl MessageHandler for Echo {
    async fn handle(&self, message: &ChannelMessage, _live: &dyn LiveReply) -> HandlerResult {
        Ok(Some(format!("re: {}", message.content)))
    }
}

/// A channel that echoes.
pub fn echoing(options: WhatsappOptions) -> Channel {
    let whatsapp = Channel::whatsapp(options);
    whatsapp.on_message(Arc::new(Echo));
    whatsapp
}

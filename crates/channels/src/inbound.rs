//! Answers messages. A message is a stranger's words: it is data. Its sender and the configuration decide what an agent may do for
//! it, never its text.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hob_core::model::DEFAULT_MODEL;
use hob_core::tool::MEMORY_SEARCH_TOOLS;
use hob_core::{
    AgentPreference, Ask, Caller, CallerRole, GenerateRequest, Message, Permit, Reach, RequestSource, Role,
    run_id,
};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::inbox::{HandlerResult, MessageHandler};
use crate::rate_limiter::{RateCheck, RateLimiter};
use crate::store::{ChannelStore, Exchange, HistoryLine, Speaker, ThreadKey};
use crate::types::ChannelMessage;

/// A longer message is not answered.
const MAX_CHARS: usize = 8_000;

/// The agent gets this much of an earlier message.
const MAX_HISTORY_CHARS: usize = 4_000;

/// An answer that takes longer is not waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

/// The number of conversations that are remembered as having got a note of trouble.
const MOST_TOLD: usize = 10_000;

const SYSTEM_PROMPT: &str =
    "You answer somebody who writes to you in a messenger. Be brief and use plain text without tables.";

const TROUBLE: &str = "I cannot answer right now: my model does not respond. I have told my owner.";

/// The rules for answering messages.
#[derive(Debug, Clone)]
pub struct InboundRules {
    pub agent: AgentPreference,
    /// How far tools may reach on behalf of senders, by `channel:sender`; on behalf of everyone else they only compute.
    pub trust: BTreeMap<String, Reach>,
    /// Senders, as `channel:sender`, who may have the memory read.
    pub allow_from: Vec<String>,
    pub messages_per_minute: usize,
    /// The number of earlier messages that the agent gets.
    pub history: usize,
}

/// Answers messages through an [`Ask`].
pub(crate) struct InboundHandler {
    // Weak: what answers has the channels, and the channels have this.
    ask: Weak<dyn Ask>,
    rules: InboundRules,
    /// `None` when nothing can be kept.
    store: Option<Arc<dyn ChannelStore>>,
    limiter: Mutex<RateLimiter>,
    /// Conversations that got a note of trouble since their last answer.
    told: Mutex<HashSet<String>>,
}

impl InboundHandler {
    pub fn new(ask: &Arc<dyn Ask>, rules: InboundRules, store: Option<Arc<dyn ChannelStore>>) -> Self {
        InboundHandler {
            ask: Arc::downgrade(ask),
            limiter: Mutex::new(RateLimiter::new(rules.messages_per_minute)),
            rules,
            store,
            told: Mutex::default(),
        }
    }

    /// Refuses messages that are too many or too long: with a reply to the sender, or without one.
    fn refusal(&self, message: &ChannelMessage) -> Option<Option<String>> {
        let sender = format!("{}:{}", message.channel, message.sender);
        let checked =
            self.limiter.lock().check(&sender, Instant::now());
        match checked {
            RateCheck::Allowed => {}
            RateCheck::FirstOverLimit => {
                return Some(Some(format!(
                    "That is too fast for me: I answer {} messages a minute. Please wait a moment.",
                    self.rules.messages_per_minute
                )));
            }
            RateCheck::OverLimit => return Some(None),
        }
        (message.content.chars().count() > MAX_CHARS)
            .then(|| Some(format!("That message is too long for me: I read {MAX_CHARS} characters at most.")))
    }

    /// Whether a sender may have the memory read.
    fn is_allowed(&self, channel: &str, sender: &str) -> bool {
        self.rules.allow_from.iter().any(|entry| names(entry, channel, sender))
    }

    /// How far tools may reach on a sender's behalf.
    fn trust(&self, channel: &str, sender: &str) -> Reach {
        let mut trusted = self.rules.trust.iter();
        let found = trusted.find(|(entry, _)| names(entry, channel, sender));
        found.map_or(CallerRole::ChannelSender.reach(), |(_, reach)| *reach)
    }

    fn caller(&self, message: &ChannelMessage) -> Caller {
        let ChannelMessage { channel, sender, .. } = message;
        let trust = self.trust(channel, sender);
        // A message is text from outside. Only a sender whom the owner lets act is taken at their word.
        let permit = Permit { tainted: trust < Reach::Act, ..Permit::up_to(trust) };
        let memory_reads = MEMORY_SEARCH_TOOLS.map(str::to_owned).to_vec();
        let permit = match self.is_allowed(channel, sender) {
            true => Permit { also: memory_reads, ..permit },
            // However far a sender's trust goes, the owner's documents need leave of their own.
            false => Permit { except: memory_reads, ..permit },
        };
        let agent = self.rules.agent.clone();
        Caller {
            role: CallerRole::ChannelSender,
            permit,
            agent,
            ..Caller::trusted(RequestSource::Channel, run_id("channel"))
        }
    }

    async fn request(&self, message: &ChannelMessage) -> GenerateRequest {
        let mut messages = vec![Message::new(Role::System, SYSTEM_PROMPT)];
        messages.extend(self.history(message).await.into_iter().map(|line| {
            let role = match line.speaker {
                Speaker::Person => Role::User,
                Speaker::Hob => Role::Assistant,
            };
            Message::new(role, line.content.chars().take(MAX_HISTORY_CHARS).collect::<String>())
        }));
        messages.push(Message::new(Role::User, message.content.as_str()));
        GenerateRequest { model: DEFAULT_MODEL.to_owned(), messages, ..GenerateRequest::default() }
    }

    /// What was said before. A sender with more trust is not told what others with less said in the same group: their words would
    /// be read with a trust that they do not have.
    async fn history(&self, message: &ChannelMessage) -> Vec<HistoryLine> {
        let Some(store) = self.store.clone().filter(|_| self.rules.history > 0) else {
            return Vec::new();
        };
        let (channel, conversation) = (message.channel.clone(), conversation(message));
        let most = self.rules.history;
        let read = blocking(move || {
            store.history(ThreadKey { channel: &channel, conversation: &conversation }, most)
        });
        let lines = match read.await {
            Some(Ok(lines)) => lines,
            Some(Err(error)) => {
                tracing::warn!(%error, "a conversation cannot be read; it is answered without its history");
                return Vec::new();
            }
            None => return Vec::new(),
        };
        let is_allowed = |sender: &str| self.is_allowed(&message.channel, sender);
        let trust = |sender: &str| self.trust(&message.channel, sender);
        let (asker_is_allowed, asker_trust) = (is_allowed(&message.sender), trust(&message.sender));
        let has_as_much =
            |sender: &str| (is_allowed(sender) || !asker_is_allowed) && trust(sender) >= asker_trust;
        lines.into_iter().filter(|line| has_as_much(&line.sender)).collect()
    }

    async fn remember(&self, message: &ChannelMessage, answer: &str) {
        let Some(store) = self.store.clone() else { return };
        let (message, answer) = (message.clone(), answer.to_owned());
        let written = blocking(move || {
            let conversation = conversation(&message);
            let thread = ThreadKey { channel: &message.channel, conversation: &conversation };
            let exchange = Exchange { sender: &message.sender, question: &message.content, answer: &answer };
            store.remember(thread, exchange, SystemTime::now())
        });
        if let Some(Err(error)) = written.await {
            tracing::warn!(%error, "a conversation cannot be kept");
        }
    }

    /// Whether a conversation gets a note of trouble: once, until it is over.
    fn tell_of_trouble(&self, message: &ChannelMessage) -> bool {
        let mut told = self.told.lock();
        told.len() < MOST_TOLD && told.insert(key(message))
    }

    fn trouble_is_over(&self, message: &ChannelMessage) {
        self.told.lock().remove(&key(message));
    }
}

#[async_trait]
impl MessageHandler for InboundHandler {
    async fn handle(&self, message: &ChannelMessage) -> HandlerResult {
        let Some(ask) = self.ask.upgrade() else { return Ok(None) };
        if let Some(told) = self.refusal(message) {
            return Ok(told);
        }
        let caller = self.caller(message);
        let request = self.request(message).await;
        let failed = match timeout(ANSWER_WITHIN, ask.ask(request, &caller)).await {
            Ok(Ok(outcome)) => {
                let answer = outcome.generation.answer.content;
                self.trouble_is_over(message);
                self.remember(message, &answer).await;
                return Ok(Some(answer));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("there was no answer within {} s", ANSWER_WITHIN.as_secs()),
        };
        // In full for the owner; the sender has no business with addresses and names of models.
        tracing::warn!(channel = %message.channel, error = %failed, "a message could not be answered");
        Ok(self.tell_of_trouble(message).then(|| TROUBLE.to_owned()))
    }
}

/// Whether an entry of the configuration, as `channel:sender`, names this sender. One without a channel names no one: the same id
/// may belong to another person on another channel.
fn names(entry: &str, channel: &str, sender: &str) -> bool {
    !sender.is_empty() && entry.split_once(':') == Some((channel, sender))
}

/// Without a thread id, everybody who writes has a conversation of their own.
fn conversation(message: &ChannelMessage) -> String {
    match message.conversation_id.as_str() {
        "" => format!("\u{1f}{}", message.sender),
        id => id.to_owned(),
    }
}

fn key(message: &ChannelMessage) -> String {
    format!("{}\u{1f}{}", message.channel, conversation(message))
}

/// Work that blocks; `None` when the program ends.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

#[cfg(test)]
#[path = "inbound_tests.rs"]
mod tests;

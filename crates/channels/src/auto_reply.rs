//! Answers messages. The text of a message is data: its sender and the configuration decide what an agent may do for it, never
//! its text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hob_core::model::DEFAULT_MODEL;
use hob_core::tool::MEMORY_SEARCH_TOOLS;
use hob_core::{
    AgentPreference, AnswerSource, Ask, AskError, Caller, CallerRole, Content, ContentPart, EngineError,
    GenerateRequest, Message, Permit, Reach, RequestSource, Role, random_id, with_sources,
};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use crate::attachments::{FileReader, ReadFiles};
use crate::blocking::blocking;
use crate::live_reply::LiveReply;
use crate::message_queue::{HandlerResult, MessageHandler, is_forwarded};
use crate::pairing::{self, SenderCheck};
use crate::rate_limiter::{RateCheck, RateLimiter};
use crate::store::{ChannelStore, Exchange, HistoryLine, Speaker, ThreadKey};
use crate::types::ChannelMessage;

/// A longer message is not answered.
const MAX_CHARS: usize = 8_000;

/// The agent gets this much of an earlier message.
const MAX_HISTORY_CHARS: usize = 4_000;

const MINUTE: Duration = Duration::from_secs(60);

/// The longest wait for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// The number of remembered conversations that got the failure note.
const MAX_NOTIFIED: usize = 10_000;

/// The tools that read the owner's e-mails and calendars.
const PRIVATE_TOOLS: [&str; 2] = ["mail", "calendar"];

/// What the history has for a message that its sender only passed on.
const FORWARDED_LINE: &str = "[a message of someone else]";

const SYSTEM_PROMPT: &str =
    "You answer a person who writes to you in a messenger. Be brief and use plain text without tables.";

const LIMIT_NOTE: &str =
    "I cannot answer right now: I have used as much as I may for now. Please try again later.";

const FAILURE_NOTE: &str =
    "I cannot answer right now: my model does not respond. The problem is logged for my owner.";

const PICTURE_NOTE: &str =
    "I cannot answer that: my model may not understand pictures. The problem is logged for my owner.";

/// The rules for answering messages.
#[derive(Debug, Clone)]
pub struct ReplyRules {
    pub agent: AgentPreference,
    /// The tools that may be used for a sender, by `channel:sender`. For everyone else, tools only compute.
    pub trust: BTreeMap<String, Reach>,
    /// Senders, as `channel:sender`, for whom the memory may be read.
    pub allow_from: Vec<String>,
    pub messages_per_minute: usize,
    /// The number of earlier messages that the agent gets.
    pub history: usize,
    /// The key that pays for the answers, and whose rights limit them. `None` has no limits.
    pub key: Option<Arc<str>>,
    /// Channels on which only approved senders are answered, and those whom `trust` or `allow_from` name.
    pub pairing: BTreeSet<String>,
    /// The model that transcribes recordings; `None` lets Hob choose one.
    pub transcription_model: Option<String>,
}

/// Answers messages through an [`Ask`].
pub(crate) struct ReplyHandler {
    // Weak, because what answers owns the channels, which own this.
    ask: Weak<dyn Ask>,
    rules: ReplyRules,
    /// `None` if nothing can be saved.
    store: Option<Arc<dyn ChannelStore>>,
    limiter: Mutex<RateLimiter>,
    /// Conversations that got the failure note since their last answer.
    notified: Mutex<HashSet<String>>,
}

impl ReplyHandler {
    pub fn new(ask: &Arc<dyn Ask>, rules: ReplyRules, store: Option<Arc<dyn ChannelStore>>) -> Self {
        ReplyHandler {
            ask: Arc::downgrade(ask),
            limiter: Mutex::new(RateLimiter::new(rules.messages_per_minute, MINUTE)),
            rules,
            store,
            notified: Mutex::default(),
        }
    }

    /// Refuses a message if there are too many or it is too long. The inner value is the reply, if any.
    fn refusal(&self, message: &ChannelMessage) -> Option<Option<String>> {
        let sender = format!("{}:{}", message.channel, message.sender);
        let checked = self.limiter.lock().check(&sender, Instant::now());
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

    /// Whether the memory may be read for a sender.
    fn is_allowed(&self, channel: &str, sender: &str) -> bool {
        self.rules.allow_from.iter().any(|entry| names(entry, channel, sender))
    }

    /// The tools that may be used for a sender.
    fn trust(&self, channel: &str, sender: &str) -> Reach {
        let mut trusted = self.rules.trust.iter();
        let found = trusted.find(|(entry, _)| names(entry, channel, sender));
        found.map_or(CallerRole::ChannelSender.reach(), |(_, reach)| *reach)
    }

    fn caller(&self, message: &ChannelMessage) -> Caller {
        let ChannelMessage { channel, sender, .. } = message;
        let trust = self.trust(channel, sender);
        // A message is untrusted text, unless the owner lets its sender act and the sender wrote it.
        let tainted = trust < Reach::Act || is_forwarded(&message.metadata);
        let permit = Permit { tainted, ..Permit::up_to(trust) };
        let permit = match self.is_allowed(channel, sender) {
            true => Permit { also: MEMORY_SEARCH_TOOLS.map(str::to_owned).to_vec(), ..permit },
            // Trust does not include the owner's documents, mailbox and calendars; `allow_from` does.
            false => {
                let private = MEMORY_SEARCH_TOOLS.into_iter().chain(PRIVATE_TOOLS);
                Permit { except: private.map(Cow::Borrowed).collect(), ..permit }
            }
        };
        let permit = Permit { key: self.rules.key.clone(), ..permit };
        let agent = self.rules.agent.clone();
        Caller {
            role: CallerRole::ChannelSender,
            permit,
            agent,
            ..Caller::trusted(RequestSource::Channel, random_id("channel-"))
        }
    }

    /// Whether a sender is answered.
    async fn check_sender(&self, message: &ChannelMessage) -> SenderCheck {
        let ChannelMessage { channel, sender, .. } = message;
        let is_named = || {
            let mut named = self.rules.trust.keys().chain(&self.rules.allow_from);
            named.any(|entry| names(entry, channel, sender))
        };
        if !self.rules.pairing.contains(channel) || is_named() {
            return SenderCheck::Approved;
        }
        pairing::check(self.store.as_ref(), message).await
    }

    /// The reply to a message, and what is remembered of the question.
    async fn answer(
        &self,
        ask: &dyn Ask,
        message: &ChannelMessage,
        live: &dyn LiveReply,
    ) -> Result<MessageAnswer, FailedAnswer> {
        let mut caller = self.caller(message);
        let transcription_model = self.rules.transcription_model.as_deref();
        let reader = FileReader { ask, caller: &caller, live, transcription_model };
        let files = reader.read_all(&message.files).await;
        if message.content.trim().is_empty() && files.parts.is_empty() {
            return Ok(MessageAnswer {
                question: None,
                reply: files.problems.join("\n"),
                sources: Vec::new(),
            });
        }
        caller.permit.tainted |= files.has_text_of_others || files.has_pictures;
        // The history is read with the trust of the sender, so it has no text of others.
        let own =
            if is_forwarded(&message.metadata) { FORWARDED_LINE.to_owned() } else { message.content.clone() };
        let lines = Some(own).into_iter().chain(files.lines.clone());
        let question = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        let has_pictures = files.has_pictures;
        let request = self.request(message, files).await;
        let answered = if live.shows_text() {
            ask.ask_live(request, &caller, live).await
        } else {
            ask.ask(request, &caller).await
        };
        match answered {
            Ok(answered) => Ok(MessageAnswer {
                question: Some(question),
                reply: answered.generation.answer.content,
                sources: answered.sources,
            }),
            Err(error) => Err(FailedAnswer { note: note_of(&error, has_pictures), error: error.to_string() }),
        }
    }

    async fn request(&self, message: &ChannelMessage, files: ReadFiles) -> GenerateRequest {
        let mut messages = vec![Message::new(Role::System, SYSTEM_PROMPT)];
        messages.extend(self.history(message).await.into_iter().map(|line| {
            let role = match line.speaker {
                Speaker::Person => Role::User,
                Speaker::Hob => Role::Assistant,
            };
            Message::new(role, line.content.chars().take(MAX_HISTORY_CHARS).collect::<String>())
        }));
        messages.push(Message::new(Role::User, content(message, files)));
        GenerateRequest { model: DEFAULT_MODEL.to_owned(), messages, ..GenerateRequest::default() }
    }

    /// The earlier messages. Messages of senders with less trust are skipped: otherwise they would be read with the trust of
    /// this sender.
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
                tracing::warn!(
                    %error,
                    "the history of a conversation cannot be read; Hob answers without it. 'hob doctor' \
                     checks the database"
                );
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

    async fn remember(&self, message: &ChannelMessage, question: String, answer: &str) {
        let Some(store) = self.store.clone() else { return };
        let (message, answer) = (message.clone(), answer.to_owned());
        let written = blocking(move || {
            let conversation = conversation(&message);
            let thread = ThreadKey { channel: &message.channel, conversation: &conversation };
            let exchange = Exchange { sender: &message.sender, question: &question, answer: &answer };
            store.remember(thread, exchange, SystemTime::now())
        });
        if let Some(Err(error)) = written.await {
            tracing::warn!(
                %error,
                "an answer is not saved, so later ones do not know it. 'hob doctor' checks the database"
            );
        }
    }

    /// Whether a conversation gets the failure note: once, until the next answer.
    fn should_notify(&self, message: &ChannelMessage) -> bool {
        let mut notified = self.notified.lock();
        notified.len() < MAX_NOTIFIED && notified.insert(key(message))
    }

    fn clear_failure(&self, message: &ChannelMessage) {
        self.notified.lock().remove(&key(message));
    }
}

#[async_trait]
impl MessageHandler for ReplyHandler {
    async fn handle(&self, message: &ChannelMessage, live: &dyn LiveReply) -> HandlerResult {
        let Some(ask) = self.ask.upgrade() else { return Ok(None) };
        if let SenderCheck::NotApproved(reply) = self.check_sender(message).await {
            return Ok(reply);
        }
        if let Some(refusal) = self.refusal(message) {
            return Ok(refusal);
        }
        live.begin();
        let FailedAnswer { note, error } =
            match timeout(ANSWER_TIMEOUT, self.answer(ask.as_ref(), message, live)).await {
                Ok(Ok(MessageAnswer { question, reply, sources })) => {
                    self.clear_failure(message);
                    if let Some(question) = question {
                        // The history has no sources: the model would repeat them.
                        self.remember(message, question, &reply).await;
                    }
                    return Ok(Some(with_sources(reply, &sources)));
                }
                Ok(Err(failed)) => failed,
                Err(_) => {
                    let error = format!("no answer within {} s", ANSWER_TIMEOUT.as_secs());
                    FailedAnswer { note: FAILURE_NOTE, error }
                }
            };
        // The log gets the full error. The sender must not see addresses and names of models.
        tracing::warn!(
            channel = %message.channel,
            %error,
            "a message is not answered; its sender gets one message that says so. 'hob doctor' checks the engines"
        );
        Ok(self.should_notify(message).then(|| note.to_owned()))
    }
}

/// A reply, and what is remembered of its question; `None` if nothing is.
struct MessageAnswer {
    question: Option<String>,
    reply: String,
    /// The passages of the memory that the model got.
    sources: Vec<AnswerSource>,
}

/// Why there is no answer, and what the sender reads instead.
struct FailedAnswer {
    note: &'static str,
    error: String,
}

/// The text of a message, and what its files contain.
fn content(message: &ChannelMessage, files: ReadFiles) -> Content {
    if files.parts.is_empty() && files.problems.is_empty() {
        return Content::Text(message.content.clone());
    }
    let text = Some(message.content.clone()).filter(|text| !text.trim().is_empty());
    // The model can tell the sender.
    let problems = files.problems.into_iter().map(|problem| format!("(Note for you: {problem})"));
    let texts = text.into_iter().chain(problems).map(ContentPart::Text);
    Content::Parts(texts.chain(files.parts).collect())
}

/// What a sender reads instead of an answer.
fn note_of(error: &AskError, has_pictures: bool) -> &'static str {
    match error {
        AskError::Limit(_) | AskError::Engine(EngineError::Limit(_)) => LIMIT_NOTE,
        _ if has_pictures => PICTURE_NOTE,
        _ => FAILURE_NOTE,
    }
}

/// Whether a `channel:sender` entry of the configuration names this sender. An entry without a channel names no one, because the
/// same id may belong to another person on another channel.
fn names(entry: &str, channel: &str, sender: &str) -> bool {
    !sender.is_empty() && entry.split_once(':') == Some((channel, sender))
}

/// Without a thread id, each sender has a conversation.
fn conversation(message: &ChannelMessage) -> String {
    match message.conversation_id.as_str() {
        "" => format!("\u{1f}{}", message.sender),
        id => id.to_owned(),
    }
}

fn key(message: &ChannelMessage) -> String {
    format!("{}\u{1f}{}", message.channel, conversation(message))
}

#[cfg(test)]
#[path = "auto_reply_tests.rs"]
mod tests;

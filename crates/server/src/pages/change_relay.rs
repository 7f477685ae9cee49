//! Exchanges changes with the other servers of the same PostgreSQL, so that a page also shows what happens there. A server says every few
//! seconds that it has open pages. The others send changes only while one does. Knows no route.

use std::time::Duration;

use hob_core::{CollectionName, EventBus, Subscription, random_id};
use hob_db::Durability;
use hob_db::postgres::{MAX_MESSAGE_BYTES, PostgresDatabase, TopicMessage, TopicMessages};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, MissedTickBehavior};

use super::changes::{Audience, Change, Changes, Topic};

/// The topic of the messages in the database.
const TOPIC: &str = "pages";

/// Changes are sent at most this often.
const SEND_INTERVAL: Duration = Duration::from_secs(1);

/// How often a server says that it has open pages.
const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(5);

/// How long the others believe it.
const INTEREST: Duration = Duration::from_secs(15);

/// The wait after a database that cannot be listened to.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Bytes of a message without its changes.
const ENVELOPE_BYTES: usize = 200;

/// Exchanges changes with the other servers.
pub(crate) struct ChangeRelay {
    database: PostgresDatabase,
    changes: Changes,
    bus: EventBus,
    /// Of this server, in its messages.
    id: String,
}

/// What a server knows of the others.
#[derive(Default)]
struct RelayState {
    /// Until when another server has open pages, as far as is known.
    wanted_until: Option<Instant>,
    /// The events of this server, while another one has open pages.
    followed: Option<Subscription>,
    /// When this server said that it has open pages.
    announced: Option<Instant>,
}

impl ChangeRelay {
    pub(crate) fn new(database: PostgresDatabase, changes: Changes, bus: EventBus) -> Self {
        changes.share();
        ChangeRelay { database, changes, bus, id: random_id("server-") }
    }

    /// Never ends by itself.
    pub(crate) async fn run(self) {
        loop {
            let database = self.database.clone();
            match hob_db::spawn_blocking(move || database.messages(TOPIC)).await {
                Ok(Ok(messages)) => self.exchange(messages).await,
                Ok(Err(error)) => tracing::debug!(%error, "pages do not show changes of other servers yet"),
                Err(error) => tracing::debug!(%error, "pages do not show changes of other servers yet"),
            }
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// Ends when the database is closed.
    async fn exchange(&self, mut messages: TopicMessages) {
        let mut state = RelayState::default();
        let mut ticks = tokio::time::interval(SEND_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(TopicMessage::Text(text)) => self.receive(&text, &mut state),
                    Some(TopicMessage::Missed) => self.changes.deliver_all(),
                    None => return,
                },
                _ = ticks.tick() => self.send(&mut state).await,
            }
        }
    }

    fn receive(&self, text: &str, state: &mut RelayState) {
        let message = match serde_json::from_str::<RelayMessage>(text) {
            Ok(message) => message,
            Err(error) => return tracing::debug!(%error, "a message of another server is not understood"),
        };
        if message.from == self.id {
            return;
        }
        if message.has_pages {
            state.wanted_until = Some(Instant::now() + INTEREST);
            if state.followed.is_none() {
                state.followed = Some(self.changes.follow_for_others(&self.bus));
            }
        }
        for change in message.changes.iter().filter_map(RelayedChange::read) {
            self.changes.deliver(change);
        }
    }

    /// Sends what is due. What cannot be sent is dropped: a server that lost its connection loads everything again.
    async fn send(&self, state: &mut RelayState) {
        let now = Instant::now();
        let are_wanted = state.wanted_until.is_some_and(|until| now < until);
        if !are_wanted {
            state.followed = None;
        }
        if !self.changes.has_pages() {
            state.announced = None;
        }
        let is_due = state.announced.is_none_or(|at| now.duration_since(at) >= ANNOUNCE_INTERVAL);
        let has_pages = self.changes.has_pages() && is_due;
        let changes = self.changes.take_outgoing(are_wanted);
        if !has_pages && changes.is_empty() {
            return;
        }
        if has_pages {
            state.announced = Some(now);
        }
        let (database, texts) = (self.database.clone(), texts(&self.id, has_pages, &changes));
        let write = move || {
            database.write_with(Durability::ProcessEnd, |transaction| {
                texts.iter().try_for_each(|text| transaction.send_message(TOPIC, text))
            })
        };
        if let Ok(Err(error)) = hob_db::spawn_blocking(write).await {
            tracing::debug!(%error, "cannot send changes to other servers");
        }
    }
}

/// What servers send each other.
#[derive(Serialize, Deserialize)]
struct RelayMessage {
    /// The server that sent it.
    from: String,
    /// Whether it has open pages.
    #[serde(default)]
    has_pages: bool,
    #[serde(default)]
    changes: Vec<RelayedChange>,
}

/// A change in a message.
#[derive(Serialize, Deserialize)]
struct RelayedChange {
    topic: String,
    audience: String,
    /// Of the key, the collection or the task that the audience is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl RelayedChange {
    fn of(change: &Change) -> Self {
        let (audience, name) = match &change.audience {
            Audience::Owner => ("owner", None),
            Audience::Everyone => ("everyone", None),
            Audience::Key(name) => ("key", Some(name.to_string())),
            Audience::Collection(name) => ("collection", Some(name.as_str().to_owned())),
            Audience::Task(id) => ("task", Some(id.to_string())),
        };
        RelayedChange { topic: change.topic.as_str().to_owned(), audience: audience.to_owned(), name }
    }

    /// `None` for what another version of Hob may know.
    fn read(&self) -> Option<Change> {
        let topic = Topic::parse(&self.topic)?;
        let audience = match (self.audience.as_str(), self.name.as_deref()) {
            ("owner", _) => Audience::Owner,
            ("everyone", _) => Audience::Everyone,
            ("key", Some(name)) => Audience::Key(name.into()),
            ("collection", Some(name)) => Audience::Collection(CollectionName::parse(name).ok()?),
            ("task", Some(id)) => Audience::Task(id.into()),
            _ => return None,
        };
        Some(Change { topic, audience })
    }
}

/// The messages with these changes, as many as needed. A change that fits in no message is skipped.
fn texts(from: &str, has_pages: bool, changes: &[Change]) -> Vec<String> {
    const ROOM: usize = MAX_MESSAGE_BYTES - ENVELOPE_BYTES;
    let mut batches = vec![Vec::new()];
    let mut used = 0;
    for change in changes.iter().map(RelayedChange::of) {
        // With the comma behind it.
        let bytes = serde_json::to_string(&change).map_or(usize::MAX, |text| text.len() + 1);
        if bytes > ROOM {
            continue;
        }
        if used + bytes > ROOM {
            batches.push(Vec::new());
            used = 0;
        }
        used += bytes;
        if let Some(batch) = batches.last_mut() {
            batch.push(change);
        }
    }
    let message = |changes| RelayMessage { from: from.to_owned(), has_pages, changes };
    batches.into_iter().filter_map(|changes| serde_json::to_string(&message(changes)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn read(text: &str) -> RelayMessage {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_change_arrives_as_it_was_sent() {
        let audiences = [
            Audience::Owner,
            Audience::Everyone,
            Audience::Key(Arc::from("ana \"quoted\"")),
            Audience::Collection(CollectionName::parse("team").unwrap()),
            Audience::Task(Arc::from("task-1")),
        ];
        let sent = audiences.map(|audience| Change { topic: Topic::Tasks, audience });
        let texts = texts("server-1", true, &sent);
        let [text] = &texts[..] else { panic!("{texts:?}") };
        let message = read(text);
        assert_eq!((message.from.as_str(), message.has_pages), ("server-1", true));
        assert_eq!(message.changes.iter().filter_map(RelayedChange::read).collect::<Vec<_>>(), sent);
    }

    #[test]
    fn messages_are_short_enough_for_the_database() {
        let named = |name: String| Change { topic: Topic::Activity, audience: Audience::Key(name.into()) };
        let mut sent: Vec<Change> =
            (0..300).map(|number| named(format!("{number}-\u{1}{}", "x".repeat(60)))).collect();
        sent.push(named("y".repeat(10_000)));
        let texts = texts(&random_id("server-"), false, &sent);
        assert!(texts.iter().all(|text| TOPIC.len() + 1 + text.len() <= MAX_MESSAGE_BYTES));
        let arrived: Vec<Change> =
            texts.iter().flat_map(|text| read(text).changes).filter_map(|change| change.read()).collect();
        assert_eq!(arrived, sent[..300], "and one that is too long is skipped");
    }

    #[test]
    fn what_another_version_sends_is_skipped() {
        let change = |topic: &str, audience: &str, name: Option<&str>| RelayedChange {
            topic: topic.to_owned(),
            audience: audience.to_owned(),
            name: name.map(str::to_owned),
        };
        for unknown in [
            change("robots", "owner", None),
            change("tasks", "robots", None),
            change("tasks", "key", None),
            change("documents", "collection", Some("../x")),
        ] {
            assert_eq!(unknown.read(), None);
        }
        assert!(read(r#"{"from": "a", "robots": 7}"#).changes.is_empty());
    }
}

//! What has changed, for the open pages: topics, who gets them, and the queues to the streams of `live.rs` and to the other servers
//! (`change_relay.rs`). Knows no route.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::http::Extensions;
use hob_core::{Caller, CallerRole, CollectionName, Event, EventBus, Subscription};
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::request_context::RequestContext;

/// Changes that wait for a slow reader. One that missed some loads everything again.
pub(super) const MAX_QUEUED_CHANGES: usize = 256;

/// How long a change waits for another server that has just opened its first page, and has not said so yet.
const OUTGOING_AGE: Duration = Duration::from_secs(10);

/// What can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    Chats,
    Assistants,
    Documents,
    Tasks,
    Channels,
    Models,
    Downloads,
    Activity,
    Keys,
    Settings,
}

hob_core::named_variants! {
    Topic {
        Chats => "chats",
        Assistants => "assistants",
        Documents => "documents",
        Tasks => "tasks",
        Channels => "channels",
        Models => "models",
        Downloads => "downloads",
        Activity => "activity",
        Keys => "keys",
        Settings => "settings",
    }
}

impl Topic {
    /// Whether it is in the database. The others are of one machine.
    fn is_shared(self) -> bool {
        !matches!(self, Topic::Models | Topic::Downloads | Topic::Settings)
    }
}

/// Who learns of a change. The owner learns of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Audience {
    Owner,
    /// The member with the key of this name.
    Key(Arc<str>),
    /// The members that may read a collection of documents.
    Collection(CollectionName),
    /// The member whose task it is.
    Task(Arc<str>),
    Everyone,
}

impl Audience {
    /// The caller of a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        match RequestContext::key(extensions) {
            Some(key) if key.grant.role == CallerRole::Member => Audience::Key(Arc::clone(&key.grant.name)),
            _ => Audience::Owner,
        }
    }

    /// The owner of what belongs to the key of this name, or to no key.
    pub(crate) fn of_key(name: Option<&Arc<str>>) -> Self {
        name.map_or(Audience::Owner, |name| Audience::Key(Arc::clone(name)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(super) topic: Topic,
    pub(super) audience: Audience,
}

/// Tells the open pages what has changed. Clones share everything.
#[derive(Clone)]
pub(crate) struct Changes {
    shared: Arc<SharedChanges>,
}

struct SharedChanges {
    sender: broadcast::Sender<Change>,
    /// One for all open pages. Without pages there is none, so that requests need not make events.
    followed: Mutex<Weak<Subscription>>,
    outgoing: Arc<OutgoingChanges>,
}

impl Changes {
    pub(crate) fn new() -> Self {
        let shared = SharedChanges {
            sender: broadcast::Sender::new(MAX_QUEUED_CHANGES),
            followed: Mutex::default(),
            outgoing: Arc::default(),
        };
        Changes { shared: Arc::new(shared) }
    }

    /// Call it after a successful write.
    pub(crate) fn publish(&self, topic: Topic, audience: &Audience) {
        self.publish_change(Change { topic, audience: audience.clone() });
    }

    fn publish_change(&self, change: Change) {
        self.shared.outgoing.note(&change);
        self.deliver(change);
    }

    /// Tells the pages of this server only.
    pub(super) fn deliver(&self, change: Change) {
        // Without open pages there are no receivers.
        let _ = self.shared.sender.send(change);
    }

    /// Tells the pages of this server that everything in the database may have changed.
    pub(super) fn deliver_all(&self) {
        everything_shared().for_each(|change| self.deliver(change));
    }

    /// Collects changes for other servers from now on.
    pub(super) fn share(&self) {
        self.shared.outgoing.is_on.store(true, Ordering::Relaxed);
    }

    /// The changes for other servers. If they want none now, these wait a while.
    pub(super) fn take_outgoing(&self, are_wanted: bool) -> Vec<Change> {
        self.shared.outgoing.take(are_wanted)
    }

    /// Whether this server has open pages.
    pub(super) fn has_pages(&self) -> bool {
        self.shared.followed.lock().strong_count() > 0
    }

    /// Collects what the rest of Hob does for other servers, until the subscription is dropped.
    pub(super) fn follow_for_others(&self, bus: &EventBus) -> Subscription {
        let outgoing = Arc::clone(&self.shared.outgoing);
        bus.subscribe(move |happening| {
            if let Some((topic, audience)) = change_of(&happening.event) {
                outgoing.note(&Change { topic, audience });
            }
        })
    }

    /// The changes from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.shared.sender.subscribe()
    }

    /// Publishes what the rest of Hob does, until the last subscription is dropped.
    pub(super) fn follow(&self, bus: &EventBus) -> Arc<Subscription> {
        let mut followed = self.shared.followed.lock();
        if let Some(subscription) = followed.upgrade() {
            return subscription;
        }
        let sender = self.shared.sender.clone();
        let subscription = Arc::new(bus.subscribe(move |happening| {
            if let Some((topic, audience)) = change_of(&happening.event) {
                // The last page may just have left.
                let _ = sender.send(Change { topic, audience });
            }
        }));
        *followed = Arc::downgrade(&subscription);
        subscription
    }
}

/// Changes that were not sent to other servers yet.
#[derive(Default)]
struct OutgoingChanges {
    /// Off without other servers.
    is_on: AtomicBool,
    /// Each once, with the time of the last one.
    waiting: Mutex<Vec<(Change, Instant)>>,
}

impl OutgoingChanges {
    fn note(&self, change: &Change) {
        if !self.is_on.load(Ordering::Relaxed) || !change.topic.is_shared() {
            return;
        }
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        if let Some((_, time)) = waiting.iter_mut().find(|(known, _)| known == change) {
            *time = now;
            return;
        }
        if waiting.len() >= MAX_QUEUED_CHANGES {
            *waiting = everything_shared().map(|change| (change, now)).collect();
        } else {
            waiting.push((change.clone(), now));
        }
    }

    fn take(&self, are_wanted: bool) -> Vec<Change> {
        let mut waiting = self.waiting.lock();
        if !are_wanted {
            waiting.retain(|(_, time)| time.elapsed() < OUTGOING_AGE);
            return Vec::new();
        }
        waiting.drain(..).map(|(change, _)| change).collect()
    }
}

/// A change of everything in the database, for all readers.
fn everything_shared() -> impl Iterator<Item = Change> {
    let shared = Topic::ALL.into_iter().filter(|topic| topic.is_shared());
    shared.map(|topic| Change { topic, audience: Audience::Everyone })
}

/// Tells the pages of a member, when it is dropped, that a call of its has ended. Events do not say whose a call is.
pub(crate) struct CallEndNotice {
    changes: Changes,
    audience: Audience,
}

impl CallEndNotice {
    /// `None` for other callers.
    pub(crate) fn of_member(changes: &Changes, caller: &Caller) -> Option<Self> {
        let key = caller.key.as_ref().filter(|_| caller.role == CallerRole::Member)?;
        Some(CallEndNotice { changes: changes.clone(), audience: Audience::Key(Arc::clone(&key.name)) })
    }
}

impl Drop for CallEndNotice {
    fn drop(&mut self) {
        let audience = std::mem::replace(&mut self.audience, Audience::Owner);
        self.changes.publish_change(Change { topic: Topic::Activity, audience });
    }
}

/// What an event changes. Events say of whom they are only where a task runs, so the rest is for the owner.
fn change_of(event: &Event) -> Option<(Topic, Audience)> {
    match event {
        Event::InferenceStart { .. } | Event::InferenceEnd { .. } => Some((Topic::Activity, Audience::Owner)),
        Event::MemoryStore { .. } => Some((Topic::Documents, Audience::Owner)),
        Event::ChannelMessageReceived { .. } | Event::ChannelMessageSent { .. } => {
            Some((Topic::Channels, Audience::Owner))
        }
        Event::SchedulerTaskStart { task_id, .. } | Event::SchedulerTaskEnd { task_id, .. } => {
            Some((Topic::Tasks, Audience::Task(task_id.as_str().into())))
        }
        Event::AgentTurnStart { .. }
        | Event::AgentTurnEnd { .. }
        | Event::ToolCallStart { .. }
        | Event::ToolCallEnd { .. }
        | Event::MemoryRetrieve { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(topic: Topic, audience: Audience) -> Change {
        Change { topic, audience }
    }

    #[tokio::test(start_paused = true)]
    async fn changes_wait_a_while_for_servers_that_want_them() {
        let changes = Changes::new();
        changes.publish(Topic::Tasks, &Audience::Owner);
        changes.share();
        assert!(changes.take_outgoing(true).is_empty(), "without other servers, nothing is collected");
        for topic in [Topic::Keys, Topic::Tasks, Topic::Keys, Topic::Models, Topic::Settings] {
            changes.publish(topic, &Audience::Owner);
        }
        assert!(changes.take_outgoing(false).is_empty());
        let expected = [of(Topic::Keys, Audience::Owner), of(Topic::Tasks, Audience::Owner)];
        assert_eq!(changes.take_outgoing(true), expected, "each once, and only what is in the database");
        changes.publish(Topic::Keys, &Audience::Owner);
        tokio::time::advance(OUTGOING_AGE).await;
        changes.publish(Topic::Tasks, &Audience::Owner);
        changes.take_outgoing(false);
        assert_eq!(changes.take_outgoing(true), [of(Topic::Tasks, Audience::Owner)]);
    }

    #[tokio::test]
    async fn too_many_changes_become_one_of_everything() {
        let changes = Changes::new();
        changes.share();
        for number in 0..=MAX_QUEUED_CHANGES {
            changes.publish(Topic::Activity, &Audience::Key(number.to_string().into()));
        }
        assert_eq!(changes.take_outgoing(true), everything_shared().collect::<Vec<_>>());
    }
}

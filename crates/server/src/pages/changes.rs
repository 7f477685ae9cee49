//! What has changed, for the open pages: topics, who learns of them, and the queue to the streams of `live.rs`. Knows no route.

use std::sync::{Arc, Weak};

use axum::http::Extensions;
use hob_core::{Caller, CallerRole, CollectionName, Event, EventBus, Subscription};
use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::request_context::RequestContext;

/// Changes that wait for a slow reader. One that missed some loads everything again.
pub(super) const MAX_QUEUED_CHANGES: usize = 256;

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

impl Topic {
    const ALL: [Topic; 10] = [
        Topic::Chats,
        Topic::Assistants,
        Topic::Documents,
        Topic::Tasks,
        Topic::Channels,
        Topic::Models,
        Topic::Downloads,
        Topic::Activity,
        Topic::Keys,
        Topic::Settings,
    ];

    /// The topic of this name, if there is one.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Topic::ALL.into_iter().find(|topic| topic.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Topic::Chats => "chats",
            Topic::Assistants => "assistants",
            Topic::Documents => "documents",
            Topic::Tasks => "tasks",
            Topic::Channels => "channels",
            Topic::Models => "models",
            Topic::Downloads => "downloads",
            Topic::Activity => "activity",
            Topic::Keys => "keys",
            Topic::Settings => "settings",
        }
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

#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(super) topic: Topic,
    pub(super) audience: Audience,
}

/// Tells the open pages what has changed.
#[derive(Clone)]
pub(crate) struct Changes {
    sender: broadcast::Sender<Change>,
    /// One for all open pages. Without pages there is none, so that requests need not make events.
    followed: Arc<Mutex<Weak<Subscription>>>,
}

impl Changes {
    pub(crate) fn new() -> Self {
        Changes { sender: broadcast::Sender::new(MAX_QUEUED_CHANGES), followed: Arc::default() }
    }

    /// Call it after a successful write.
    pub(crate) fn publish(&self, topic: Topic, audience: &Audience) {
        // Without open pages there are no receivers.
        let _ = self.sender.send(Change { topic, audience: audience.clone() });
    }

    /// The changes from now on.
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.sender.subscribe()
    }

    /// Publishes what the rest of Hob does, until the last subscription is dropped.
    pub(super) fn follow(&self, bus: &EventBus) -> Arc<Subscription> {
        let mut followed = self.followed.lock();
        if let Some(subscription) = followed.upgrade() {
            return subscription;
        }
        let sender = self.sender.clone();
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
        self.changes.publish(Topic::Activity, &self.audience);
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

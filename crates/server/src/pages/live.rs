//! `GET /pages/live`: the names of what has changed, as server-sent events, so that a page loads it again. It sends no data; the page asks
//! the API for that, under the API's rules.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use hob_core::{CallerRole, KeyGrant};
use hob_tasks::{Scheduler, TaskId};
use serde_json::json;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, Interval};
use tokio_util::sync::CancellationToken;

use super::changes::{Audience, Change, Topic};
use crate::error::{ApiError, ApiResult};
use crate::limits::live_streams::StreamOwner;
use crate::request_context::RequestContext;
use crate::state::SharedState;
use crate::stream_key::CheckedKey;

/// A topic is sent at most this often; what changes meanwhile is sent as one change.
const TOPIC_PAUSE: Duration = Duration::from_secs(1);

/// The interval of comments that show that the connection is alive.
const HEARTBEAT: Duration = Duration::from_secs(15);

pub(crate) async fn watch(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let extensions = request.extensions();
    let key = RequestContext::key(extensions);
    let reader = match (RequestContext::role(extensions), key) {
        (CallerRole::Owner, _) => LiveReader::Owner,
        (CallerRole::Member, Some(key)) => {
            LiveReader::Member { grant: Arc::clone(&key.grant), scheduler: state.scheduler.clone() }
        }
        _ => return Err(ApiError::owner_only("/pages/live")),
    };
    let owner = match key {
        Some(key) => StreamOwner::Key(Arc::clone(&key.grant.name)),
        None => StreamOwner::Peer(RequestContext::peer_key(extensions)),
    };
    let counted = state.live_streams.open(owner).ok_or_else(ApiError::too_many_streams)?;
    let live = LiveStream {
        key: CheckedKey::of(extensions, state.keys.as_ref()),
        receiver: state.changes.subscribe(),
        reader,
        waiting: BTreeSet::new(),
        sent: BTreeMap::new(),
        heartbeat: tokio::time::interval(HEARTBEAT),
        stopping: state.stopping.clone(),
    };
    let followed = state.changes.follow(state.system.bus());
    let events = stream::unfold((live, (followed, counted)), |(mut live, held)| async move {
        let event = live.next().await?;
        Some((Ok::<_, Infallible>(event), (live, held)))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

/// Who reads a stream.
enum LiveReader {
    Owner,
    Member { grant: Arc<KeyGrant>, scheduler: Option<Arc<Scheduler>> },
}

impl LiveReader {
    async fn learns_of(&self, audience: &Audience) -> bool {
        let LiveReader::Member { grant, scheduler } = self else { return true };
        match audience {
            Audience::Owner => false,
            Audience::Everyone => true,
            Audience::Key(name) => *name == grant.name,
            Audience::Collection(name) => grant.memory.names().is_none_or(|names| names.contains(name)),
            Audience::Task(id) => {
                let (Some(scheduler), Ok(id)) = (scheduler, TaskId::parse(id)) else { return false };
                let task = scheduler.tasks().get(&id).await;
                task.is_ok_and(|task| task.permit.key.as_ref() == Some(&grant.name))
            }
        }
    }
}

/// The events of one page. They end when the reader leaves, its key changes, or the server stops.
struct LiveStream {
    /// `None` without a named key.
    key: Option<CheckedKey>,
    receiver: broadcast::Receiver<Change>,
    reader: LiveReader,
    /// What has changed and was not sent yet.
    waiting: BTreeSet<Topic>,
    /// When each topic was sent last.
    sent: BTreeMap<Topic, Instant>,
    heartbeat: Interval,
    stopping: CancellationToken,
}

impl LiveStream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let now = Instant::now();
            let due: Vec<Topic> = self
                .waiting
                .iter()
                .copied()
                .filter(|topic| self.next_time(*topic).is_none_or(|at| at <= now))
                .collect();
            if !due.is_empty() {
                for topic in &due {
                    self.waiting.remove(topic);
                    self.sent.insert(*topic, now);
                }
                return Some(event(&due.into_iter().map(Topic::as_str).collect::<Vec<_>>()));
            }
            let wake = self.waiting.iter().filter_map(|topic| self.next_time(*topic)).min();
            let change = tokio::select! {
                () = self.stopping.cancelled() => return None,
                change = self.receiver.recv() => change,
                () = tokio::time::sleep_until(wake.unwrap_or(now)), if wake.is_some() => continue,
                _ = self.heartbeat.tick() => {
                    let goes_on = self.key.as_ref().is_none_or(CheckedKey::is_unchanged);
                    return goes_on.then(|| Bytes::from_static(b": alive\n\n"));
                }
            };
            match change {
                Ok(change) if self.reader.learns_of(&change.audience).await => {
                    self.waiting.insert(change.topic);
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => {
                    self.waiting.clear();
                    return Some(event(&["all"]));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// When a topic may be sent again; `None` for one that was never sent.
    fn next_time(&self, topic: Topic) -> Option<Instant> {
        self.sent.get(&topic).map(|at| *at + TOPIC_PAUSE)
    }
}

fn event(topics: &[&str]) -> Bytes {
    format!("event: change\ndata: {}\n\n", json!({ "topics": topics })).into()
}

#[cfg(test)]
mod tests {
    use hob_core::{CollectionName, CollectionSet};
    use hob_db::Database;
    use hob_keys::{AuditActor, KeyName, KeyOptions, KeyPatch, KeyRole, KeyService, NewKey, SqliteKeyStore};
    use hob_testkit::member_grant;

    use super::*;
    use crate::pages::changes::{Changes, MAX_QUEUED_CHANGES};

    fn stream_of(changes: &Changes) -> LiveStream {
        LiveStream {
            key: None,
            receiver: changes.subscribe(),
            reader: LiveReader::Owner,
            waiting: BTreeSet::new(),
            sent: BTreeMap::new(),
            heartbeat: tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT),
            stopping: CancellationToken::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_topic_is_sent_at_once_and_then_at_most_once_a_second() {
        let changes = Changes::new();
        let mut live = stream_of(&changes);
        let began = Instant::now();
        changes.publish(Topic::Tasks, &Audience::Owner);
        assert_eq!(live.next().await, Some(event(&["tasks"])));
        for _ in 0..3 {
            changes.publish(Topic::Tasks, &Audience::Owner);
        }
        changes.publish(Topic::Keys, &Audience::Owner);
        assert_eq!((live.next().await, began.elapsed()), (Some(event(&["keys"])), Duration::ZERO));
        assert_eq!((live.next().await, began.elapsed()), (Some(event(&["tasks"])), TOPIC_PAUSE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_is_too_slow_loads_everything_again() {
        let changes = Changes::new();
        let mut live = stream_of(&changes);
        for _ in 0..=MAX_QUEUED_CHANGES {
            changes.publish(Topic::Activity, &Audience::Owner);
        }
        assert_eq!(live.next().await, Some(event(&["all"])));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_the_server_stops() {
        let changes = Changes::new();
        let mut live = stream_of(&changes);
        live.stopping.cancel();
        assert_eq!(live.next().await, None);
    }

    #[tokio::test]
    async fn the_stream_of_a_key_that_is_no_longer_valid_ends() {
        let database = Database::in_memory(&[hob_keys::MIGRATIONS]).expect("a database");
        let keys = Arc::new(KeyService::new(KeyOptions::new(Arc::new(SqliteKeyStore::new(database)))));
        let name = KeyName::parse("ana").expect("a name");
        let new = NewKey { name: name.clone(), role: KeyRole::Member, rules: KeyPatch::default() };
        keys.create(new, AuditActor::terminal()).await.expect("a key");
        let grant = Arc::clone(&keys.valid("ana").expect("valid").grant);
        let changes = Changes::new();
        // The first heartbeat of each is due at once.
        let stream = || LiveStream {
            key: Some(CheckedKey { grant: Arc::clone(&grant), keys: Arc::clone(&keys) }),
            heartbeat: tokio::time::interval(HEARTBEAT),
            ..stream_of(&changes)
        };
        assert_eq!(stream().next().await.as_deref(), Some(&b": alive\n\n"[..]));
        keys.revoke(&name, AuditActor::terminal()).await.expect("revoked");
        assert_eq!(stream().next().await, None);
    }

    #[tokio::test]
    async fn a_member_learns_only_of_its_own_and_of_what_is_everyones() {
        let name = |text: &str| CollectionName::parse(text).expect("a name");
        let grant = KeyGrant { memory: CollectionSet::of(name("team")), ..member_grant("ana") };
        let member = LiveReader::Member { grant: Arc::new(grant), scheduler: None };
        for (audience, learns) in [
            (Audience::Owner, false),
            (Audience::Everyone, true),
            (Audience::Key("ana".into()), true),
            (Audience::Key("ben".into()), false),
            (Audience::Collection(name("team")), true),
            (Audience::Collection(name("private")), false),
            (Audience::Task("1".into()), false),
        ] {
            assert_eq!(member.learns_of(&audience).await, learns, "{audience:?}");
            assert!(LiveReader::Owner.learns_of(&audience).await, "{audience:?}");
        }
    }
}

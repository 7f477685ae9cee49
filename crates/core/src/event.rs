//! A synchronous publish/subscribe bus for events in this process.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use hob_sync::RwLock;
use hob_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use serde_json::{Value, json};

use crate::stream::ToolStep;

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    InferenceStart {
        engine: String,
        model: String,
    },
    InferenceEnd {
        engine: String,
        model: String,
        success: bool,
        latency: Duration,
    },
    AgentTurnStart {
        agent: String,
        turn: u32,
    },
    AgentTurnEnd {
        agent: String,
        turn: u32,
        /// How many tools the model asked for in this turn; none ends the run.
        tool_calls: usize,
    },
    ToolCallStart {
        /// The id that the model gave the call.
        id: String,
        tool: String,
        /// As the model wrote them.
        arguments: String,
    },
    ToolCallEnd {
        id: String,
        tool: String,
        /// What the model gets; empty for a call that was cancelled.
        result: String,
        success: bool,
        latency: Duration,
    },
    MemoryStore {
        backend: String,
        count: usize,
    },
    MemoryRetrieve {
        backend: String,
        query: String,
        results: usize,
    },
    ChannelMessageReceived {
        channel: String,
        sender: String,
        content: String,
        message_id: String,
    },
    ChannelMessageSent {
        channel: String,
        content: String,
        conversation_id: String,
    },
    SchedulerTaskStart {
        task_id: String,
        prompt: String,
    },
    SchedulerTaskEnd {
        task_id: String,
        success: bool,
        result: Option<String>,
        error: Option<String>,
    },
}

impl Event {
    /// The name under which the event is known outside.
    pub fn name(&self) -> &'static str {
        match self {
            Event::InferenceStart { .. } => "INFERENCE_START",
            Event::InferenceEnd { .. } => "INFERENCE_END",
            Event::AgentTurnStart { .. } => "AGENT_TURN_START",
            Event::AgentTurnEnd { .. } => "AGENT_TURN_END",
            Event::ToolCallStart { .. } => "TOOL_CALL_START",
            Event::ToolCallEnd { .. } => "TOOL_CALL_END",
            Event::MemoryStore { .. } => "MEMORY_STORE",
            Event::MemoryRetrieve { .. } => "MEMORY_RETRIEVE",
            Event::ChannelMessageReceived { .. } => "CHANNEL_MESSAGE_RECEIVED",
            Event::ChannelMessageSent { .. } => "CHANNEL_MESSAGE_SENT",
            Event::SchedulerTaskStart { .. } => "scheduler_task_start",
            Event::SchedulerTaskEnd { .. } => "scheduler_task_end",
        }
    }

    /// The beginning or the end of a call of a tool.
    pub fn tool_step(&self) -> Option<ToolStep> {
        match self {
            Event::ToolCallStart { id, tool, arguments } => {
                Some(ToolStep::Started { id: id.clone(), tool: tool.clone(), arguments: arguments.clone() })
            }
            Event::ToolCallEnd { id, tool, result, success, .. } => Some(ToolStep::Ended {
                id: id.clone(),
                tool: tool.clone(),
                result: result.clone(),
                success: *success,
            }),
            _ => None,
        }
    }

    /// The event's keys and values; times are seconds.
    pub fn data(&self) -> Value {
        match self {
            Event::InferenceStart { engine, model } => json!({ "engine": engine, "model": model }),
            Event::InferenceEnd { engine, model, success, latency } => {
                json!({ "engine": engine, "model": model, "success": success, "latency": latency.as_secs_f64() })
            }
            Event::AgentTurnStart { agent, turn } => json!({ "agent": agent, "turn": turn }),
            Event::AgentTurnEnd { agent, turn, tool_calls } => {
                json!({ "agent": agent, "turn": turn, "tool_calls": tool_calls })
            }
            Event::ToolCallStart { tool, arguments, .. } => json!({ "tool": tool, "arguments": arguments }),
            // Without the result, which may be long and private.
            Event::ToolCallEnd { tool, success, latency, .. } => {
                json!({ "tool": tool, "success": success, "latency": latency.as_secs_f64() })
            }
            Event::MemoryStore { backend, count } => json!({ "backend": backend, "count": count }),
            Event::MemoryRetrieve { backend, query, results } => {
                json!({ "backend": backend, "query": query, "results": results })
            }
            Event::ChannelMessageReceived { channel, sender, content, message_id } => {
                json!({ "channel": channel, "sender": sender, "content": content, "message_id": message_id })
            }
            Event::ChannelMessageSent { channel, content, conversation_id } => {
                json!({ "channel": channel, "content": content, "conversation_id": conversation_id })
            }
            Event::SchedulerTaskStart { task_id, prompt } => json!({ "task_id": task_id, "prompt": prompt }),
            Event::SchedulerTaskEnd { task_id, success, result, error } => {
                json!({ "task_id": task_id, "success": success, "result": result, "error": error })
            }
        }
    }
}

/// An event, with its time and its run.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedEvent {
    pub at: SystemTime,
    /// The request or run it belongs to; empty when it belongs to none.
    pub run: Arc<str>,
    pub event: Event,
}

type Handler = dyn Fn(&PublishedEvent) + Send + Sync;

/// Replaced as a whole at every change, so that publishing holds no lock.
type Handlers = Arc<[(u64, Arc<Handler>)]>;

#[derive(Default)]
struct Subscribers {
    next_id: AtomicU64,
    /// The number of subscribers to every event, so that a publisher without subscribers does nothing.
    count: AtomicUsize,
    handlers: RwLock<Handlers>,
    /// The number of subscribers to one run.
    run_count: AtomicUsize,
    by_run: RwLock<HashMap<Arc<str>, Handlers>>,
}

/// Calls the subscribers to every event, and those to the run, in the publisher's thread. A subscriber must be quick. One that
/// panics does not affect the publisher or the others.
#[derive(Clone, Default)]
pub struct EventBus {
    subscribers: Arc<Subscribers>,
}

impl fmt::Debug for EventBus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EventBus").field("subscribers", &self.handlers().len()).finish()
    }
}

/// Ends with its value.
#[must_use = "a dropped subscription receives no events"]
pub struct Subscription {
    id: u64,
    /// The run that it is for; `None` for all.
    run: Option<Arc<str>>,
    subscribers: Weak<Subscribers>,
}

impl EventBus {
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `handler` for every event from now on, until the subscription is dropped.
    pub fn subscribe(&self, handler: impl Fn(&PublishedEvent) + Send + Sync + 'static) -> Subscription {
        let id = self.subscribers.next_id.fetch_add(1, Ordering::Relaxed);
        self.subscribers.change(|handlers| handlers.push((id, Arc::new(handler))));
        Subscription { id, run: None, subscribers: Arc::downgrade(&self.subscribers) }
    }

    /// Calls `handler` for every event of one run from now on, until the subscription is dropped. Other runs do not notice.
    pub fn subscribe_run(
        &self,
        run: impl Into<Arc<str>>,
        handler: impl Fn(&PublishedEvent) + Send + Sync + 'static,
    ) -> Subscription {
        let run = run.into();
        let id = self.subscribers.next_id.fetch_add(1, Ordering::Relaxed);
        self.subscribers.change_run(&run, |handlers| handlers.push((id, Arc::new(handler))));
        Subscription { id, run: Some(run), subscribers: Arc::downgrade(&self.subscribers) }
    }

    /// Whether this run has subscribers.
    pub fn is_heard(&self, run: &str) -> bool {
        self.subscribers.count.load(Ordering::Acquire) > 0 || self.run_handlers(run).is_some()
    }

    /// Calls the subscribers to this run.
    pub fn publish(&self, run: &Arc<str>, event: Event) {
        let of_run = self.run_handlers(run);
        let of_all = (self.subscribers.count.load(Ordering::Acquire) > 0).then(|| self.handlers());
        if of_run.is_none() && of_all.is_none() {
            return;
        }
        let happening = PublishedEvent { at: SystemTime::now(), run: Arc::clone(run), event };
        for (_, handler) in of_all.iter().chain(&of_run).flat_map(|handlers| handlers.iter()) {
            // The panic hook has reported it. The other subscribers still get the event.
            let _ = catch_unwind(AssertUnwindSafe(|| handler(&happening)));
        }
    }

    fn run_handlers(&self, run: &str) -> Option<Handlers> {
        if self.subscribers.run_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.subscribers.by_run.read().unwrap_or_else(PoisonError::into_inner).get(run).cloned()
    }

    fn handlers(&self) -> Handlers {
        Arc::clone(&self.subscribers.handlers.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Subscribers {
    fn change(&self, change: impl FnOnce(&mut Vec<(u64, Arc<Handler>)>)) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = handlers.to_vec();
        change(&mut changed);
        self.count.store(changed.len(), Ordering::Release);
        let before = std::mem::replace(&mut *handlers, changed.into());
        // Dropping a handler may publish an event.
        drop(handlers);
        drop(before);
    }

    fn change_run(&self, run: &Arc<str>, change: impl FnOnce(&mut Vec<(u64, Arc<Handler>)>)) {
        let mut by_run = self.by_run.write().unwrap_or_else(PoisonError::into_inner);
        let before = by_run.remove(run);
        let mut changed = before.as_deref().map(<[_]>::to_vec).unwrap_or_default();
        change(&mut changed);
        if !changed.is_empty() {
            by_run.insert(Arc::clone(run), changed.into());
        }
        self.run_count.store(by_run.len(), Ordering::Release);
        drop(by_run);
        drop(before);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(subscribers) = self.subscribers.upgrade() {
            let leave = |handlers: &mut Vec<(u64, Arc<Handler>)>| handlers.retain(|(id, _)| *id != self.id);
            match &self.run {
                Some(run) => subscribers.change_run(run, leave),
                None => subscribers.change(leave),
            }
        }
    }
}

/// The bus of one run: its events carry the run's id.
#[derive(Debug, Clone)]
pub struct RunEvents {
    bus: EventBus,
    run: Arc<str>,
}

impl RunEvents {
    pub fn new(bus: EventBus, run: impl Into<Arc<str>>) -> Self {
        RunEvents { bus, run: run.into() }
    }

    /// Events without subscribers.
    pub fn without_subscribers() -> Self {
        Self::new(EventBus::new(), "")
    }

    /// Whether there are subscribers, for events that are expensive to create.
    pub fn have_subscribers(&self) -> bool {
        self.bus.is_heard(&self.run)
    }

    pub fn publish(&self, event: Event) {
        self.bus.publish(&self.run, event);
    }
}

#[cfg(all(test, shuttle))]
#[path = "event_interleaving_tests.rs"]
mod interleavings;

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn ended(latency: Duration) -> Event {
        Event::ToolCallEnd {
            id: "1".into(),
            tool: "t".into(),
            result: "secret".into(),
            success: true,
            latency,
        }
    }

    fn told() -> (Arc<Mutex<Vec<&'static str>>>, impl Fn(&PublishedEvent) + Send + Sync + 'static) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&heard);
        (heard, move |happening: &PublishedEvent| writer.lock().unwrap().push(happening.event.name()))
    }

    fn an_event() -> Event {
        Event::ToolCallStart { id: "1".into(), tool: "t".into(), arguments: "{}".into() }
    }

    #[test]
    fn a_subscriber_that_panics_does_not_affect_others() {
        let events = RunEvents::without_subscribers();
        let (heard, handler) = told();
        let _bad = events.bus.subscribe(|_| panic!("not my day"));
        let _good = events.bus.subscribe(handler);
        events.publish(an_event());
        events.publish(an_event());
        assert_eq!(*heard.lock().unwrap(), ["TOOL_CALL_START", "TOOL_CALL_START"]);
    }

    #[test]
    fn a_dropped_subscription_hears_no_more() {
        let bus = EventBus::new();
        let (heard, handler) = told();
        let subscription = bus.subscribe(handler);
        bus.publish(&"r".into(), an_event());
        drop(subscription);
        bus.publish(&"r".into(), an_event());
        assert_eq!(heard.lock().unwrap().len(), 1);
    }

    #[test]
    fn a_subscriber_to_one_run_hears_that_run_and_costs_others_nothing() {
        let bus = EventBus::new();
        let (heard, handler) = told();
        let subscription = bus.subscribe_run("mine", handler);
        let (mine, other) = (RunEvents::new(bus.clone(), "mine"), RunEvents::new(bus.clone(), "other"));
        assert!(mine.have_subscribers() && !other.have_subscribers());
        mine.publish(an_event());
        other.publish(an_event());
        assert_eq!(*heard.lock().unwrap(), ["TOOL_CALL_START"]);

        let (second, handler) = told();
        let second_subscription = bus.subscribe_run("mine", handler);
        drop(subscription);
        mine.publish(an_event());
        assert_eq!((heard.lock().unwrap().len(), second.lock().unwrap().len()), (1, 1));
        drop(second_subscription);
        assert!(!mine.have_subscribers());
        assert!(bus.subscribers.by_run.read().unwrap().is_empty());
    }

    #[test]
    fn a_subscriber_may_subscribe_and_publish_itself() {
        let bus = EventBus::new();
        let inner = bus.clone();
        let (heard, handler) = told();
        let handler = Arc::new(handler);
        let _outer = bus.subscribe(move |happening| {
            if happening.event.name() == "TOOL_CALL_START" {
                let _short = inner.subscribe(|_| {});
                let end = ended(Duration::ZERO);
                inner.publish(&happening.run, end);
            }
            handler(happening);
        });
        bus.publish(&"r".into(), an_event());
        assert_eq!(*heard.lock().unwrap(), ["TOOL_CALL_END", "TOOL_CALL_START"]);
    }

    #[test]
    fn the_documented_keys_are_there() {
        let end = ended(Duration::from_millis(1500));
        assert_eq!(end.data(), json!({ "tool": "t", "success": true, "latency": 1.5 }));
        let task = Event::SchedulerTaskStart { task_id: "1".into(), prompt: "p".into() };
        assert_eq!(
            (task.name(), task.data()),
            ("scheduler_task_start", json!({ "task_id": "1", "prompt": "p" }))
        );
    }
}

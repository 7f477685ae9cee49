use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use tokio::sync::Notify;

use super::*;
use crate::seen_messages::RecentMessages;

/// Records sent messages, or fails on request.
#[derive(Default)]
struct Post {
    delivered: Mutex<Vec<Outgoing>>,
    failures: Mutex<Vec<SendFailure>>,
    /// A conversation to which nothing can be sent.
    unreachable: Option<&'static str>,
}

#[async_trait]
impl MessageSender for Post {
    async fn deliver(&self, message: &Outgoing) -> Result<(), SendFailure> {
        if let Some(failure) = self.failures.lock().unwrap().pop() {
            return Err(failure);
        }
        if self.unreachable.is_some_and(|to| message.conversation_id.as_deref() == Some(to)) {
            return Err(SendFailure::NotSent("there is no such address".into()));
        }
        self.delivered.lock().unwrap().push(message.clone());
        Ok(())
    }

    async fn channels(&self) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}

impl Post {
    fn contents(&self) -> Vec<String> {
        self.delivered.lock().unwrap().iter().map(|message| message.content.clone()).collect()
    }
}

fn queue(limits: MessageQueueLimits) -> (MessageQueue, Arc<Post>) {
    queue_with(limits, Arc::new(RecentMessages::default()))
}

fn queue_with(limits: MessageQueueLimits, seen_messages: Arc<dyn SeenMessages>) -> (MessageQueue, Arc<Post>) {
    queue_of(limits, seen_messages, Post::default())
}

fn queue_of(
    limits: MessageQueueLimits,
    seen_messages: Arc<dyn SeenMessages>,
    post: Post,
) -> (MessageQueue, Arc<Post>) {
    let post = Arc::new(post);
    let parts = MessageQueueParts {
        sender: Arc::clone(&post) as Arc<dyn MessageSender>,
        seen_messages,
        events: EventBus::new(),
        limits,
    };
    (MessageQueue::new(parts), post)
}

/// A database of messages that does what a test wants.
#[derive(Default)]
struct StandIn {
    inner: RecentMessages,
    /// Whether the last message was settled.
    is_settled: AtomicBool,
    /// Whether a message is saved only when `go` says so.
    is_slow: bool,
    go: Notify,
    /// Calls that fail before the others succeed.
    failures: Mutex<usize>,
    /// What an earlier process left.
    left: Vec<(EntryId, ChannelMessage)>,
}

impl StandIn {
    fn failing(times: usize) -> Self {
        StandIn { failures: Mutex::new(times), ..StandIn::default() }
    }

    fn fails(&self) -> bool {
        let mut failures = self.failures.lock().unwrap();
        let fails = *failures > 0;
        *failures = failures.saturating_sub(1);
        fails
    }
}

#[async_trait]
impl SeenMessages for StandIn {
    async fn take(&self, message: &ChannelMessage) -> TakeOutcome {
        if self.fails() {
            return TakeOutcome::Failed;
        }
        let taken = self.inner.take(message).await;
        if self.is_slow {
            self.go.notified().await;
        }
        taken
    }

    async fn settle(&self, _: EntryId) -> Settled {
        self.is_settled.store(true, Ordering::SeqCst);
        Settled::Yes
    }

    async fn reopen(&self, _: EntryId, _: &ChannelMessage) {
        self.is_settled.store(false, Ordering::SeqCst);
    }

    async fn unsettled(&self) -> Option<Vec<(EntryId, ChannelMessage)>> {
        (!self.fails()).then(|| self.left.clone())
    }
}

fn message(conversation: &str, number: usize) -> ChannelMessage {
    ChannelMessage {
        channel: "telegram".into(),
        sender: "ann".into(),
        content: format!("{conversation}{number}"),
        message_id: number.to_string(),
        conversation_id: conversation.into(),
        ..ChannelMessage::default()
    }
}

/// Waits until no task runs.
async fn quiet(queue: &MessageQueue) {
    while queue.tasks() > 0 {
        tokio::task::yield_now().await;
    }
}

struct Echo;

#[async_trait]
impl MessageHandler for Echo {
    async fn handle(&self, message: &ChannelMessage, _live: &dyn LiveReply) -> HandlerResult {
        Ok(Some(format!("re: {}", message.content)))
    }
}

/// Answers when it is let.
#[derive(Default)]
struct Slow {
    go: Notify,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

#[async_trait]
impl MessageHandler for Slow {
    async fn handle(&self, message: &ChannelMessage, _live: &dyn LiveReply) -> HandlerResult {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        self.go.notified().await;
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        Ok(Some(message.content.clone()))
    }
}

#[tokio::test]
async fn every_handler_is_called_and_a_failing_one_does_not_affect_the_others() {
    struct Panics;
    #[async_trait]
    impl MessageHandler for Panics {
        async fn handle(&self, _: &ChannelMessage, _: &dyn LiveReply) -> HandlerResult {
            panic!("not my day")
        }
    }
    struct Fails;
    #[async_trait]
    impl MessageHandler for Fails {
        async fn handle(&self, _: &ChannelMessage, _: &dyn LiveReply) -> HandlerResult {
            Err("no".into())
        }
    }
    let (queue, post) = queue(MessageQueueLimits::default());
    for handler in
        [Arc::new(Panics) as Arc<dyn MessageHandler>, Arc::new(Echo), Arc::new(Fails), Arc::new(Echo)]
    {
        queue.on_message(handler);
    }
    queue.accept(message("a", 1)).await;
    quiet(&queue).await;
    assert_eq!(post.contents(), ["re: a1", "re: a1"]);
    let first = post.delivered.lock().unwrap()[0].clone();
    assert_eq!(
        (first.channel.as_str(), first.conversation_id.as_deref(), first.key.as_str()),
        ("telegram", Some("a"), "hob-reply:telegram:a:1-0")
    );
}

#[tokio::test]
async fn a_repeated_message_is_answered_once() {
    let (queue, post) = queue(MessageQueueLimits::default());
    queue.on_message(Arc::new(Echo));
    for _ in 0..3 {
        queue.accept(message("a", 1)).await;
    }
    queue.accept(message("a", 2)).await;
    quiet(&queue).await;
    assert_eq!(post.contents(), ["re: a1", "re: a2"]);
    assert_eq!(queue.shared.queues.conversations(), 0, "nothing is kept of conversations that rest");
}

#[tokio::test]
async fn a_conversation_keeps_its_order_and_does_not_block_others() {
    let (queue, post) = queue(MessageQueueLimits { concurrent: 2, ..MessageQueueLimits::default() });
    let slow = Arc::new(Slow::default());
    queue.on_message(Arc::clone(&slow) as Arc<dyn MessageHandler>);
    for number in 1..=3 {
        for conversation in ["a", "b", "c"] {
            queue.accept(message(conversation, number)).await;
        }
    }
    while queue.tasks() > 0 {
        slow.go.notify_one();
        tokio::task::yield_now().await;
    }
    let contents = post.contents();
    for conversation in ["a", "b", "c"] {
        let of_it: Vec<&String> =
            contents.iter().filter(|content| content.starts_with(conversation)).collect();
        assert_eq!(
            of_it,
            [&format!("{conversation}1"), &format!("{conversation}2"), &format!("{conversation}3")]
        );
    }
    assert_eq!(slow.most_at_once.load(Ordering::SeqCst), 2);
    assert!(contents[..3].iter().any(|content| content.starts_with('b')), "side by side: {contents:?}");
}

#[tokio::test]
async fn a_message_over_the_limit_is_dropped_and_its_sender_notified_once() {
    let (queue, post) = queue(MessageQueueLimits { per_conversation: 2, ..MessageQueueLimits::default() });
    let slow = Arc::new(Slow::default());
    queue.on_message(Arc::clone(&slow) as Arc<dyn MessageHandler>);
    queue.accept(message("a", 0)).await;
    // The first is at the desk, so that two can wait behind it.
    while slow.at_once.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    for number in 1..10 {
        queue.accept(message("a", number)).await;
    }
    queue.accept(message("b", 0)).await;
    while queue.tasks() > 0 {
        slow.go.notify_one();
        tokio::task::yield_now().await;
    }
    let mut contents = post.contents();
    contents.retain(|content| content != "b0");
    assert_eq!(contents, ["a0", "a1", "a2", DROPPED_NOTE]);
    // What was left out was not taken: it is welcome when it comes again.
    queue.accept(message("a", 9)).await;
    while queue.tasks() > 0 {
        slow.go.notify_one();
        tokio::task::yield_now().await;
    }
    assert_eq!(post.contents().last().map(String::as_str), Some("a9"));
}

#[tokio::test]
async fn waiting_messages_are_bounded_by_number_and_by_size() {
    for limits in [
        MessageQueueLimits { messages: 5, ..MessageQueueLimits::default() },
        MessageQueueLimits { bytes: 5 * 300, ..MessageQueueLimits::default() },
    ] {
        let (queue, post) = queue(limits);
        let slow = Arc::new(Slow::default());
        queue.on_message(Arc::clone(&slow) as Arc<dyn MessageHandler>);
        for number in 0..50 {
            queue.accept(message(&format!("c{number}-"), number)).await;
        }
        // So many are being answered, and five wait.
        let taken = limits.concurrent + 5;
        assert_eq!(queue.tasks(), taken, "{limits:?}");
        while queue.tasks() > 0 {
            slow.go.notify_one();
            tokio::task::yield_now().await;
        }
        assert_eq!(post.contents().len(), taken);
        assert_eq!(queue.shared.queues.conversations(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_waits_for_a_disconnected_channel_and_is_never_sent_twice() {
    let away = || SendFailure::NotSent("away".into());
    for (failures, expected) in [
        (vec![away(), away(), away()], vec!["re: a1"]),
        (vec![SendFailure::Unknown("silence".into()), away()], vec![]),
        (vec![SendFailure::Refused("no".into())], vec![]),
    ] {
        let (queue, post) = queue(MessageQueueLimits::default());
        queue.on_message(Arc::new(Echo));
        *post.failures.lock().unwrap() = failures.clone();
        queue.accept(message("a", 1)).await;
        queue.shared.answering().ended().await;
        assert_eq!(post.contents(), expected, "{failures:?}");
    }
}

#[tokio::test]
async fn stopping_leaves_no_task_behind() {
    let (queue, post) = queue(MessageQueueLimits::default());
    queue.on_message(Arc::new(Slow::default()));
    for number in 0..20 {
        queue.accept(message(&format!("c{number}"), 1)).await;
    }
    queue.close().await;
    assert_eq!((queue.tasks(), post.contents().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_was_not_sent_is_sent_after_a_restart() {
    for (failure, is_settled) in
        [(SendFailure::NotSent("away".into()), false), (SendFailure::Unknown("silence".into()), true)]
    {
        let recorded = Arc::new(StandIn::default());
        let (queue, post) =
            queue_with(MessageQueueLimits::default(), Arc::clone(&recorded) as Arc<dyn SeenMessages>);
        queue.on_message(Arc::new(Echo));
        *post.failures.lock().unwrap() = vec![failure.clone(); 10];
        queue.accept(message("a", 1)).await;
        while post.failures.lock().unwrap().len() == 10 {
            tokio::task::yield_now().await;
        }
        queue.close().await;
        assert_eq!(
            (recorded.is_settled.load(Ordering::SeqCst), post.contents().len()),
            (is_settled, 0),
            "{failure:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_answer_is_given_after_a_restart() {
    let recorded = Arc::new(StandIn::default());
    let (queue, _) =
        queue_with(MessageQueueLimits::default(), Arc::clone(&recorded) as Arc<dyn SeenMessages>);
    let slow = Arc::new(Slow::default());
    queue.on_message(Arc::clone(&slow) as Arc<dyn MessageHandler>);
    queue.accept(message("a", 1)).await;
    while slow.at_once.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    queue.close().await;
    assert!(!recorded.is_settled.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_message_is_answered_even_if_its_connection_is_lost_while_it_is_saved() {
    let seen_messages = Arc::new(StandIn { is_slow: true, ..StandIn::default() });
    let (queue, post) =
        queue_with(MessageQueueLimits::default(), Arc::clone(&seen_messages) as Arc<dyn SeenMessages>);
    queue.on_message(Arc::new(Echo));
    let broken = tokio::time::timeout(Duration::ZERO, queue.accept(message("a", 1))).await;
    assert!(broken.is_err(), "it is still being written down");
    seen_messages.go.notify_one();
    quiet(&queue).await;
    assert_eq!(post.contents(), ["re: a1"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_waits_for_the_database_and_is_answered_when_it_is_back() {
    let (queue, post) = queue_with(MessageQueueLimits::default(), Arc::new(StandIn::failing(10)));
    queue.on_message(Arc::new(Echo));
    assert!(queue.accept(message("a", 1)).await);
    quiet(&queue).await;
    assert_eq!(post.contents(), ["re: a1"]);
}

#[tokio::test]
async fn a_message_that_is_not_saved_when_hob_stops_is_not_confirmed() {
    let (queue, post) = queue_with(MessageQueueLimits::default(), Arc::new(StandIn::failing(usize::MAX)));
    queue.on_message(Arc::new(Echo));
    let (is_confirmed, ()) = tokio::join!(queue.accept(message("a", 1)), queue.close());
    assert!(!is_confirmed);
    assert_eq!((post.contents().len(), queue.shared.queues.conversations()), (0, 0));
}

#[tokio::test]
async fn a_message_that_its_service_sends_again_does_not_wait_during_a_pause() {
    let (queue, _) = queue_with(MessageQueueLimits::default(), Arc::new(StandIn::failing(usize::MAX)));
    let both = async { tokio::join!(queue.accept_repeated(message("a", 1)), queue.pause()) };
    let (is_confirmed, ()) =
        tokio::time::timeout(Duration::from_secs(60), both).await.expect("the pause does not wait for it");
    assert!(!is_confirmed);
    assert_eq!(queue.shared.queues.conversations(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_messages_of_an_earlier_process_are_read_when_the_database_is_back() {
    let store = StandIn { left: vec![(1, message("a", 1)), (2, message("b", 2))], ..StandIn::failing(10) };
    let (queue, post) = queue_with(MessageQueueLimits::default(), Arc::new(store));
    queue.on_message(Arc::new(Echo));
    for _ in 0..2 {
        queue.resume(|message| message.conversation_id == "a").await;
        quiet(&queue).await;
    }
    assert_eq!(post.contents(), ["re: a1"]);
}

#[tokio::test]
async fn a_message_that_is_saved_during_a_pause_is_left_in_the_store() {
    let store = Arc::new(StandIn { is_slow: true, ..StandIn::default() });
    let (queue, post) =
        queue_with(MessageQueueLimits::default(), Arc::clone(&store) as Arc<dyn SeenMessages>);
    queue.on_message(Arc::new(Echo));
    let pausing = async {
        queue.interrupt();
        store.go.notify_one();
        queue.pause().await;
    };
    let (is_confirmed, ()) = tokio::join!(queue.accept(message("a", 1)), pausing);
    assert!(is_confirmed, "it is saved");
    quiet(&queue).await;
    assert_eq!((post.contents().len(), queue.shared.queues.conversations()), (0, 0));
}

#[tokio::test]
async fn an_address_to_which_nothing_can_be_sent_does_not_hold_up_the_others() {
    let limits = MessageQueueLimits { concurrent: 1, ..MessageQueueLimits::default() };
    let post = Post { unreachable: Some("a"), ..Post::default() };
    let (queue, post) = queue_of(limits, Arc::new(RecentMessages::default()), post);
    queue.on_message(Arc::new(Echo));
    queue.accept(message("a", 1)).await;
    queue.accept(message("b", 1)).await;
    let answered = async {
        while post.contents() != ["re: b1"] {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), answered).await.expect("an answer to the other one");
    queue.close().await;
}

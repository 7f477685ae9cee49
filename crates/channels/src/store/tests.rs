//! Messages are taken in once and remembered; conversations keep to themselves and to the limits.

use std::ops::Deref;
use std::thread;
use std::time::{Instant, SystemTime};

use hob_core::Moment;
use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase, on_both_databases};

use super::*;

/// A database, and what opens it once more, as another process does.
struct TestChannels {
    store: Arc<dyn ChannelStore>,
    open: Box<dyn Fn() -> Arc<dyn ChannelStore>>,
    /// Makes the next message the one after this number.
    skip_to: Box<dyn Fn(i64)>,
    _database: Option<TestDatabase>,
}

impl Deref for TestChannels {
    type Target = dyn ChannelStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

type NewChannels = fn() -> TestChannels;

fn sqlite() -> TestChannels {
    let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
    let opened = database.clone();
    let open = move || -> Arc<dyn ChannelStore> { Arc::new(SqliteChannelStore::new(opened.clone())) };
    let skip_to = move |number| {
        let skip = format!("UPDATE sqlite_sequence SET seq = {number} WHERE name = 'channel_inbox'");
        database.writer().execute_batch(&skip).expect("written");
    };
    TestChannels { store: open(), open: Box::new(open), skip_to: Box::new(skip_to), _database: None }
}

fn opened(database: &TestDatabase) -> PostgresDatabase {
    PostgresDatabase::new(database.url().parse().expect("a URL"), &[POSTGRES_MIGRATIONS]).expect("opened")
}

fn postgres() -> TestChannels {
    let database = PostgresServer::shared().create_database();
    let (url, skipping) = (database.url(), opened(&database));
    let open = move || -> Arc<dyn ChannelStore> {
        let options = url.parse().expect("a URL");
        let database = PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("opened");
        Arc::new(PostgresChannelStore::new(database))
    };
    let skip_to = move |number: i64| {
        let skip = "SELECT setval(pg_get_serial_sequence('channel_inbox', 'id'), $1)";
        skipping.write(|transaction| transaction.execute(skip, &[&number])).expect("written");
    };
    TestChannels {
        store: open(),
        open: Box::new(open),
        skip_to: Box::new(skip_to),
        _database: Some(database),
    }
}

on_both_databases!(sqlite, postgres:
    a_message_is_accepted_once_and_saved_until_it_is_settled,
    a_message_without_an_identity_is_always_new,
    old_messages_are_forgotten,
    a_message_that_comes_again_and_again_displaces_no_other,
    several_processes_take_and_settle_each_message_once,
    a_history_ends_with_the_newest_line_and_has_one_conversation,
    a_conversation_has_a_limited_length,
    an_exchange_of_several_processes_stays_together,
    any_character_of_a_message_is_found_again,
    the_newest_lines_of_all_conversations_come_first_and_what_was_sent_is_in_no_history,
    a_code_approves_its_sender_once_and_for_an_hour,
    at_most_a_hundred_senders_of_a_channel_wait,
    an_approval_can_be_withdrawn,
);

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn of(conversation: &str) -> ThreadKey<'_> {
    ThreadKey { channel: "telegram", conversation }
}

fn said(store: &dyn ChannelStore, conversation: &str, sender: &str, question: &str) {
    let exchange = Exchange { sender, question, answer: &format!("re: {question}") };
    store.remember(of(conversation), exchange, NOW).expect("written");
}

fn a_message_is_accepted_once_and_saved_until_it_is_settled(new: NewChannels) {
    let store = new();
    let first = store.take(Some("a"), "hello", NOW).expect("written").expect("new");
    assert_eq!(store.take(Some("a"), "hello", NOW).expect("written"), None);
    let second = store.take(Some("b"), "again", NOW).expect("written").expect("new");
    assert_eq!(
        store.unsettled().expect("read"),
        [
            UnsettledMessage { id: first, message: "hello".into() },
            UnsettledMessage { id: second, message: "again".into() }
        ]
    );
    assert!(store.settle(first).expect("written"));
    assert!(!store.settle(first).expect("written"), "it is answered already");
    assert_eq!(store.unsettled().expect("read"), [UnsettledMessage { id: second, message: "again".into() }]);
    assert_eq!(store.take(Some("a"), "hello", NOW).expect("written"), None, "still known");
    store.reopen(first, "hello").expect("written");
    assert_eq!(store.unsettled().expect("read").len(), 2);
}

fn a_message_without_an_identity_is_always_new(new: NewChannels) {
    let store = new();
    for _ in 0..2 {
        assert!(store.take(None, "x", NOW).expect("written").is_some());
    }
}

#[test]
fn accepted_messages_survive_the_end_of_the_process() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let open = || SqliteChannelStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    let id = open().take(Some("a"), "hello", NOW).expect("written").expect("new");
    said(&open(), "t1", "ann", "hi");
    let store = open();
    assert_eq!(store.unsettled().expect("read"), [UnsettledMessage { id, message: "hello".into() }]);
    assert_eq!(store.take(Some("a"), "hello", NOW).expect("written"), None);
    assert_eq!(store.history(of("t1"), 10).expect("read").len(), 2);
}

fn a_history_ends_with_the_newest_line_and_has_one_conversation(new: NewChannels) {
    let store = new();
    said(&*store, "t1", "ann", "one");
    said(&*store, "t2", "bob", "elsewhere");
    said(&*store, "t1", "ann", "two");
    let lines: Vec<(Speaker, String)> = store
        .history(of("t1"), 3)
        .expect("read")
        .into_iter()
        .map(|line| (line.speaker, line.content))
        .collect();
    assert_eq!(
        lines,
        [
            (Speaker::Hob, "re: one".to_owned()),
            (Speaker::Person, "two".to_owned()),
            (Speaker::Hob, "re: two".to_owned())
        ]
    );
    assert_eq!(store.history(of("t1"), 0).expect("read"), []);
    let elsewhere = ThreadKey { channel: "slack", conversation: "t1" };
    assert_eq!(store.history(elsewhere, 3).expect("read"), []);
}

fn a_conversation_has_a_limited_length(new: NewChannels) {
    let store = new();
    said(&*store, "other", "bob", "x");
    for number in 0..MAX_THREAD_LINES {
        said(&*store, "t1", "ann", &number.to_string());
    }
    let lines = store.history(of("t1"), usize::MAX).expect("read");
    assert_eq!(lines.len() as i64, MAX_THREAD_LINES);
    assert_eq!(lines.last().map(|line| line.content.clone()), Some(format!("re: {}", MAX_THREAD_LINES - 1)));
    assert_eq!(store.history(of("other"), 9).expect("read").len(), 2, "others are not touched");
}

fn old_messages_are_forgotten(new: NewChannels) {
    let store = new();
    let first = store.take(Some("a"), "hello", NOW).expect("written").expect("new");
    // As if as many others had come since.
    (store.skip_to)(first + MAX_REMEMBERED - 1);
    store.take(Some("b"), "x", NOW).expect("written").expect("new");
    assert_eq!(store.unsettled().expect("read").len(), 1);
    assert!(store.take(Some("a"), "hello", NOW).expect("written").is_some());
}

fn a_message_that_comes_again_and_again_displaces_no_other(new: NewChannels) {
    let store = new();
    let first = store.take(Some("a"), "hello", NOW).expect("written").expect("new");
    for _ in 0..50 {
        assert_eq!(store.take(Some("a"), "hello", NOW).expect("written"), None);
    }
    assert_eq!(store.take(Some("b"), "x", NOW).expect("written"), Some(first + 1));
}

fn several_processes_take_and_settle_each_message_once(new: NewChannels) {
    let store = new();
    let stores: Vec<_> = (0..4).map(|_| (store.open)()).collect();
    for round in 0..20 {
        let identity = round.to_string();
        let taken: Vec<i64> = thread::scope(|scope| {
            let running: Vec<_> = stores
                .iter()
                .map(|store| scope.spawn(|| store.take(Some(&identity), "x", NOW).expect("written")))
                .collect();
            running.into_iter().filter_map(|one| one.join().expect("no panic")).collect()
        });
        let [id] = taken.try_into().expect("one process takes it");
        let settled: usize = thread::scope(|scope| {
            let running: Vec<_> =
                stores.iter().map(|store| scope.spawn(move || store.settle(id).expect("written"))).collect();
            running.into_iter().map(|one| usize::from(one.join().expect("no panic"))).sum()
        });
        assert_eq!(settled, 1, "one process answers it");
    }
}

fn an_exchange_of_several_processes_stays_together(new: NewChannels) {
    let store = new();
    thread::scope(|scope| {
        for process in 0..4 {
            let store = (store.open)();
            scope.spawn(move || {
                (0..10).for_each(|round| said(&*store, "t1", "ann", &format!("{process} {round}")))
            });
        }
    });
    let lines = store.history(of("t1"), usize::MAX).expect("read");
    assert_eq!(lines.len(), 80);
    for pair in lines.chunks(2) {
        assert_eq!((pair[0].speaker, pair[1].speaker), (Speaker::Person, Speaker::Hob));
        assert_eq!(pair[1].content, format!("re: {}", pair[0].content));
    }
}

fn any_character_of_a_message_is_found_again(new: NewChannels) {
    let store = new();
    let odd = "\0 \u{1a} \u{1a}0";
    let id = store.take(Some(odd), odd, NOW).expect("written").expect("new");
    assert_eq!(store.take(Some(odd), odd, NOW).expect("written"), None);
    assert_eq!(store.unsettled().expect("read"), [UnsettledMessage { id, message: odd.into() }]);
    let thread = ThreadKey { channel: odd, conversation: odd };
    store.remember(thread, Exchange { sender: odd, question: odd, answer: odd }, NOW).expect("written");
    let line = |speaker| HistoryLine { speaker, sender: odd.into(), content: odd.into() };
    assert_eq!(store.history(thread, 9).expect("read"), [line(Speaker::Person), line(Speaker::Hob)]);
}

fn the_newest_lines_of_all_conversations_come_first_and_what_was_sent_is_in_no_history(new: NewChannels) {
    let store = new();
    said(&*store, "family", "ann", "when?");
    said(&*store, "\u{1f}ben", "ben", "hello");
    let thread = ThreadKey { channel: "telegram", conversation: "family" };
    store.note_sent(thread, "dinner is ready \0", NOW).expect("written");
    let line = |conversation: &str, speaker, sender: &str, content: &str| RecentLine {
        channel: "telegram".into(),
        conversation: conversation.into(),
        speaker,
        sender: sender.into(),
        content: content.into(),
        said: Moment::of(NOW),
    };
    let expected = [
        line("family", Speaker::Hob, "", "dinner is ready \0"),
        line("ben", Speaker::Hob, "ben", "re: hello"),
        line("ben", Speaker::Person, "ben", "hello"),
        line("family", Speaker::Hob, "ann", "re: when?"),
        line("family", Speaker::Person, "ann", "when?"),
    ];
    assert_eq!(store.recent(9).expect("read"), expected);
    assert_eq!(store.recent(2).expect("read"), expected[..2]);
    assert_eq!(store.history(of("family"), 9).expect("read").len(), 2);
    for number in 0..=MAX_THREAD_LINES {
        store.note_sent(of("family"), &number.to_string(), NOW).expect("written");
    }
    let lines = store.recent(usize::MAX).expect("read");
    assert_eq!((lines.len(), lines[0].content.as_str()), (MAX_RECENT, "200"));
}

/// Two processes of one database.
fn processes() -> (TestDatabase, [PostgresChannelStore; 2]) {
    let database = PostgresServer::shared().create_database();
    let stores = [(); 2].map(|()| PostgresChannelStore::new(opened(&database)));
    (database, stores)
}

fn claim<'a>(holder: &'a str, lease: Duration) -> LeaseClaim<'a> {
    LeaseClaim { channel: "gateway", holder, lease, status: "connected", problem: Some("p") }
}

const LONG: Duration = Duration::from_secs(3_600);

#[test]
fn one_process_has_the_lease_until_it_ends_or_is_given_back() {
    let (_database, [a, b]) = processes();
    let other = LeaseOutcome::HeldByOther { status: "connected".into(), problem: Some("p".into()) };
    assert_eq!(a.hold(&claim("a", LONG)).expect("written"), LeaseOutcome::Held);
    assert_eq!(b.hold(&claim("b", LONG)).expect("written"), other);
    assert_eq!(a.hold(&claim("a", LONG)).expect("written"), LeaseOutcome::Held, "renewed");
    b.release("gateway", "b").expect("written");
    assert_eq!(b.hold(&claim("b", LONG)).expect("written"), other, "only its holder gives it back");
    a.release("gateway", "a").expect("written");
    assert_eq!(b.hold(&claim("b", Duration::ZERO)).expect("written"), LeaseOutcome::Held);
    let since = Instant::now();
    while a.hold(&claim("a", LONG)).expect("written") != LeaseOutcome::Held {
        assert!(since.elapsed() < Duration::from_secs(60), "a lease that has ended is free");
    }
    let elsewhere = LeaseClaim { channel: "whatsapp", ..claim("b", LONG) };
    assert_eq!(b.hold(&elsewhere).expect("written"), LeaseOutcome::Held, "each channel has its own");
}

#[test]
fn a_request_is_taken_once_answered_and_gone() {
    let (_database, [a, b]) = processes();
    let request = NewRequest { key: "k\0", request: "say \0", wait: LONG };
    assert!(b.ask_holder("gateway", request).expect("written"));
    assert!(b.ask_holder("gateway", request).expect("written"), "the same key is the same request");
    assert_eq!(b.request_state("k\0").expect("read"), RequestState::Waiting);
    assert_eq!(a.take_requests("whatsapp", "a", 9).expect("written"), []);
    let taken = a.take_requests("gateway", "a", 9).expect("written");
    assert_eq!(taken.iter().map(|taken| taken.request.as_str()).collect::<Vec<_>>(), ["say \0"]);
    assert_eq!(a.take_requests("gateway", "a", 9).expect("written"), []);
    assert_eq!(b.request_state("k\0").expect("read"), RequestState::Taken);
    assert!(!b.withdraw("k\0").expect("written"), "it may be sent already");
    assert_eq!(a.take_requests("gateway", "next", 9).expect("written"), taken, "the next holder continues");
    a.answer(taken[0].id, "done \0").expect("written");
    assert_eq!(b.request_state("k\0").expect("read"), RequestState::Answered("done \0".into()));
    assert_eq!(b.request_state("k\0").expect("read"), RequestState::Gone);
}

#[test]
fn requests_end_and_are_limited() {
    let (_database, [a, b]) = processes();
    let ask =
        |key: &str, wait| b.ask_holder("gateway", NewRequest { key, request: "x", wait }).expect("written");
    assert!(ask("withdrawn", LONG));
    assert!(b.withdraw("withdrawn").expect("written"));
    assert!(ask("late", Duration::ZERO));
    let since = Instant::now();
    while b.request_state("late").expect("read") != RequestState::Gone {
        assert_eq!(a.take_requests("gateway", "a", 0).expect("written"), []);
        assert!(since.elapsed() < Duration::from_secs(60), "nothing waits for it any more");
    }
    for number in 0..MAX_WAITING_REQUESTS {
        assert!(ask(&number.to_string(), LONG));
    }
    assert!(!ask("one more", LONG));
}

const ANN: SenderKey<'static> = SenderKey { channel: "telegram", sender: "ann" };

fn pairing<'a>(sender: SenderKey<'a>, code: &'a str, now: SystemTime) -> NewPairing<'a> {
    NewPairing { sender, name: "Ann \0", code, ends: now + Duration::from_secs(3_600) }
}

fn a_code_approves_its_sender_once_and_for_an_hour(channels: NewChannels) {
    let channels = channels();
    let begin = |code, now| channels.begin_pairing(pairing(ANN, code, now), now).expect("written");
    assert_eq!(begin("AAAAAAAA", NOW), PairingOutcome::Begun);
    assert_eq!(begin("BBBBBBBB", NOW), PairingOutcome::Waiting);
    let late = NOW + Duration::from_secs(3_600);
    assert_eq!(channels.pending_senders(NOW).expect("read").len(), 1);
    assert_eq!(channels.pending_senders(late).expect("read"), []);
    assert_eq!(channels.approve_code("AAAAAAAA", late).expect("asked"), None, "it has expired");
    assert_eq!(begin("CCCCCCCC", late), PairingOutcome::Begun);
    assert!(!channels.is_approved(ANN).expect("read"));
    let approved = channels.approve_code("CCCCCCCC", late).expect("written").expect("a valid code");
    assert_eq!((approved.sender.as_str(), approved.name.as_str()), ("ann", "Ann \0"));
    assert!(channels.is_approved(ANN).expect("read"));
    assert_eq!(channels.approved_senders().expect("read"), [approved]);
    assert_eq!(channels.approve_code("CCCCCCCC", late).expect("asked"), None, "it is used");
}

fn at_most_a_hundred_senders_of_a_channel_wait(channels: NewChannels) {
    let channels = channels();
    for number in 0..=100 {
        let (sender, code) = (number.to_string(), format!("CODE{number:04}"));
        let key = SenderKey { channel: "telegram", sender: &sender };
        let outcome = channels.begin_pairing(pairing(key, &code, NOW), NOW).expect("written");
        assert_eq!(outcome, if number < 100 { PairingOutcome::Begun } else { PairingOutcome::Full });
    }
    let elsewhere = SenderKey { channel: "email", ..ANN };
    let outcome = channels.begin_pairing(pairing(elsewhere, "ELSEWHER", NOW), NOW).expect("written");
    assert_eq!(outcome, PairingOutcome::Begun);
}

fn an_approval_can_be_withdrawn(channels: NewChannels) {
    let channels = channels();
    channels.approve_sender(ANN, "Ann", NOW).expect("written");
    channels.approve_sender(ANN, "Anna", NOW).expect("written");
    assert_eq!(channels.approved_senders().expect("read").len(), 1);
    assert!(channels.remove_sender(ANN).expect("written"));
    assert!(!channels.remove_sender(ANN).expect("written"));
    assert!(!channels.is_approved(ANN).expect("read"));
}

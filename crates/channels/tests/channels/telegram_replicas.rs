//! Two processes of one database and one Telegram bot: each message is answered once, also if the process that answers it dies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hob_channels::store::open_channel_store;
use hob_channels::{
    ChannelOptions, ChannelService, ChannelSharing, InboundRules, POSTGRES_MIGRATIONS, SharingTimes,
    TelegramOptions,
};
use hob_core::{AgentPreference, Ask, Delta, FinishReason};
use hob_db::Storage;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{EngineAsk, PostgresServer, ScriptedEngine, TELEGRAM_TOKEN, TelegramServer, TestDatabase};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

/// Far longer than anything here takes: a test that waits this long has failed.
const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// A process: its channel, and what answers.
struct Replica {
    service: Arc<ChannelService>,
    _ask: Arc<dyn Ask>,
    asked: Arc<AtomicUsize>,
}

/// Connects and answers, in the current runtime. The question `hangs_at` is never answered.
fn replica(database: &TestDatabase, telegram: &TelegramServer, hangs_at: Option<&'static str>) -> Replica {
    let opened = PostgresDatabase::new(database.url().parse().unwrap(), &[POSTGRES_MIGRATIONS]).unwrap();
    let opened = open_channel_store(&Storage::Postgres(opened)).unwrap();
    let times = SharingTimes {
        lease: Duration::from_secs(3),
        renew_every: Duration::from_millis(300),
        ..SharingTimes::default()
    };
    let service = ChannelService::new(ChannelOptions {
        telegram: Some(TelegramOptions {
            api_url: telegram.url(),
            ..TelegramOptions::new(TELEGRAM_TOKEN.to_owned().into())
        }),
        inbound: Some(InboundRules {
            agent: AgentPreference::None,
            trust: BTreeMap::new(),
            allow_from: Vec::new(),
            messages_per_minute: 1_000,
            history: 0,
            key: None,
            pairing: BTreeSet::new(),
            transcription_model: None,
        }),
        store: Some(opened.store),
        sharing: opened.shared.map(|shared| ChannelSharing::with_times(shared, times)),
        ..ChannelOptions::default()
    });
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let engine = ScriptedEngine::new(move |request| {
        counter.fetch_add(1, Ordering::SeqCst);
        let question = request.messages.last().unwrap().content.text();
        while hangs_at == Some(&*question) {
            std::thread::park();
        }
        vec![
            Ok(Delta::text(format!("re: {question}"))),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }),
            Ok(Delta::Done { usage: None }),
        ]
    });
    let ask: Arc<dyn Ask> = Arc::new(EngineAsk::new(Arc::new(engine)));
    let service = Arc::new(service.unwrap());
    service.listen(&ask);
    Replica { service, _ask: ask, asked }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_telegram_message_is_answered_once_although_the_process_that_took_it_dies() {
    let database = PostgresServer::shared().create_database();
    let telegram = TelegramServer::start().await;
    let answered = async |chat: i64, text: &str| {
        timeout(WAIT_LIMIT, telegram.until_shown(chat, &[text])).await.unwrap();
    };
    // Its own runtime, so that all of it is gone at once.
    let process = Runtime::new().unwrap();
    let first = {
        let _entered = process.enter();
        replica(&database, &telegram, Some("two"))
    };
    telegram.push(7, &json!({ "text": "one" }));
    answered(7, "re: one").await;
    telegram.push(8, &json!({ "text": "two" }));
    let taken = async {
        while first.asked.load(Ordering::SeqCst) < 2 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(WAIT_LIMIT, taken).await.unwrap();
    process.shutdown_background();
    let second = replica(&database, &telegram, None);
    answered(8, "re: two").await;
    telegram.push(9, &json!({ "text": "three" }));
    answered(9, "re: three").await;
    assert_eq!([7, 8].map(|chat| telegram.shown(chat)), [["re: one"], ["re: two"]]);
    assert_eq!(second.asked.load(Ordering::SeqCst), 2);
    second.service.close().await;
    drop(first);
}

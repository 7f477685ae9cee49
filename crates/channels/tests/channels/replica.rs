//! A process of Hob with a channel, one of several that share a database.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hob_channels::store::{OpenedChannelStore, open_channel_store};
use hob_channels::{
    ChannelOptions, ChannelService, ChannelSharing, ChannelStatus, POSTGRES_MIGRATIONS, SharingTimes,
};
use hob_core::{Ask, Delta, FinishReason};
use hob_db::Storage;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{EngineAsk, ScriptedEngine, TestDatabase};

use crate::rules::rules;

/// A process: its channels, and what answers.
pub struct Replica {
    pub service: Arc<ChannelService>,
    _ask: Arc<dyn Ask>,
    asked: Arc<AtomicUsize>,
}

impl Replica {
    /// Connects and answers, in the current runtime. The question `hangs_at` is never answered.
    pub fn start(options: ChannelOptions, hangs_at: Option<&'static str>) -> Self {
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
        let service = Arc::new(ChannelService::new(options).unwrap());
        service.listen(&ask);
        Replica { service, _ask: ask, asked }
    }

    pub fn status(&self) -> ChannelStatus {
        self.service.report().status
    }

    /// The number of questions so far.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// The options of a process that shares this database, without a channel.
pub fn sharing(database: &TestDatabase, times: SharingTimes) -> ChannelOptions {
    let opened = open_store(database);
    ChannelOptions {
        reply_rules: Some(rules()),
        store: Some(opened.store),
        sharing: opened.shared.map(|shared| ChannelSharing::with_times(shared, times)),
        ..ChannelOptions::default()
    }
}

pub fn open_store(database: &TestDatabase) -> OpenedChannelStore {
    let opened = PostgresDatabase::new(database.url().parse().unwrap(), &[POSTGRES_MIGRATIONS]).unwrap();
    open_channel_store(&Storage::Postgres(opened)).unwrap()
}

/// A lease that ends soon after its process dies.
pub fn short_lease() -> SharingTimes {
    SharingTimes {
        lease: Duration::from_secs(3),
        renew_every: Duration::from_millis(300),
        ..SharingTimes::default()
    }
}

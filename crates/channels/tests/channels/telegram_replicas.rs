//! Two processes of one database and one Telegram bot: each message is answered once, also if the process that answers it dies.

use hob_channels::{ChannelOptions, TelegramOptions};
use hob_testkit::{PostgresServer, TELEGRAM_TOKEN, TelegramServer, TestDatabase};
use serde_json::json;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::replica::{Replica, sharing, short_lease};
use crate::wait::{WAIT_LIMIT, until};

/// Connects and answers, in the current runtime. The question `hangs_at` is never answered.
fn replica(database: &TestDatabase, telegram: &TelegramServer, hangs_at: Option<&'static str>) -> Replica {
    let options = ChannelOptions {
        telegram: Some(TelegramOptions {
            api_url: telegram.url(),
            ..TelegramOptions::new(TELEGRAM_TOKEN.to_owned().into())
        }),
        ..sharing(database, short_lease())
    };
    Replica::start(options, hangs_at)
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
    until("taken", || first.asked() >= 2).await;
    process.shutdown_background();
    let second = replica(&database, &telegram, None);
    answered(8, "re: two").await;
    telegram.push(9, &json!({ "text": "three" }));
    answered(9, "re: three").await;
    assert_eq!([7, 8].map(|chat| telegram.shown(chat)), [["re: one"], ["re: two"]]);
    assert_eq!(second.asked(), 2);
    second.service.close().await;
    drop(first);
}

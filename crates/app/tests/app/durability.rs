//! Which writes of each store survive a power cut.

#![expect(clippy::expect_used, reason = "a setting that cannot be read is a failed test")]

use hob_app::HOB_MIGRATIONS;
use hob_channels::{ChannelStore, SqliteChannelStore};
use hob_conversations::{ChatId, ConversationStore, ResponseOwner, SqliteConversationStore};
use hob_db::Database;
use hob_routing::{RoutingStore, SqliteRoutingStore};
use hob_tasks::store::{SqliteTaskStore, TaskStore};
use hob_telemetry::{Prices, SqliteTelemetryStore, TelemetryStore};

/// SQLite syncs each commit to the disk with FULL, but not with NORMAL.
fn survives_power_cut(database: &Database) -> bool {
    let synchronous: i64 =
        database.writer().pragma_query_value(None, "synchronous", |row| row.get(0)).expect("set");
    synchronous >= 2
}

#[test]
fn tasks_and_conversations_are_durable_before_the_answer_and_telemetry_later() {
    let root = tempfile::tempdir().expect("a directory");
    let database = Database::open(&root.path().join("hob.db"), HOB_MIGRATIONS).expect("opened");
    let telemetry = SqliteTelemetryStore::new(database.clone());
    let record = || {
        telemetry.record_batch(&[], &Prices::standard()).expect("recorded");
        assert!(!survives_power_cut(&database));
    };
    record();
    SqliteTaskStore::new(database.clone()).insert_all(&[]).expect("kept");
    assert!(survives_power_cut(&database), "a task");
    record();
    SqliteChannelStore::new(database.clone()).settle(1).expect("settled");
    assert!(survives_power_cut(&database), "a message");
    record();
    SqliteConversationStore::new(database.clone())
        .forget(&ResponseOwner::owner(), ChatId::parse("1").expect("an id"))
        .expect("deleted");
    assert!(survives_power_cut(&database), "a chat");
    record();
    SqliteRoutingStore::new(database.clone()).reset().expect("forgotten");
    assert!(survives_power_cut(&database), "what the user asked to forget");
    record();
    telemetry.sync().expect("synced");
    assert!(survives_power_cut(&database));
}

//! What a power cut leaves of the last write of each store.

#![expect(clippy::expect_used, reason = "a setting that cannot be read is a failed test")]

use hob_app::HOB_MIGRATIONS;
use hob_channels::{ChannelStore, SqliteChannelStore};
use hob_conversations::{ChatId, ConversationStore, SqliteConversationStore};
use hob_db::Database;
use hob_routing::{RoutingStore, SqliteRoutingStore};
use hob_tasks::store::{SqliteTaskStore, TaskStore};
use hob_telemetry::{Prices, SqliteTelemetryStore, TelemetryStore};

/// SQLite's FULL brings each commit to the disk, NORMAL does not.
fn survives_power_cut(database: &Database) -> bool {
    let synchronous: i64 =
        database.writer().pragma_query_value(None, "synchronous", |row| row.get(0)).expect("set");
    synchronous >= 2
}

#[test]
fn tasks_conversations_and_chats_are_on_the_disk_and_telemetry_may_be_late() {
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
        .forget(ChatId::parse("1").expect("an id"))
        .expect("deleted");
    assert!(survives_power_cut(&database), "a chat");
    record();
    SqliteRoutingStore::new(database.clone()).reset().expect("forgotten");
    assert!(survives_power_cut(&database), "what the user asked to forget");
    record();
    telemetry.sync().expect("synced");
    assert!(survives_power_cut(&database));
}

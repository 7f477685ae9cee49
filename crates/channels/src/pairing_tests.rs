use hob_db::Database;
use serde_json::json;

use super::*;
use crate::store::{MIGRATIONS, SqliteChannelStore};

fn store() -> Arc<dyn ChannelStore> {
    Arc::new(SqliteChannelStore::new(Database::in_memory(&[MIGRATIONS]).unwrap()))
}

fn message(sender: &str) -> ChannelMessage {
    ChannelMessage {
        channel: "telegram".into(),
        sender: sender.into(),
        content: "hello".into(),
        metadata: json!({ "sender_name": "Ann\n\u{1b}[31m" }).as_object().unwrap().clone(),
        ..ChannelMessage::default()
    }
}

#[tokio::test]
async fn a_new_sender_gets_one_code_and_is_answered_when_the_owner_has_entered_it() {
    let store = store();
    let SenderCheck::NotApproved(Some(reply)) = check(Some(&store), &message("1")).await else {
        panic!("a code")
    };
    let pending = store.pending_senders(SystemTime::now()).unwrap();
    assert_eq!((pending.len(), pending[0].sender.as_str(), pending[0].name.as_str()), (1, "1", "Ann[31m"));
    let code = shown_code(&pending[0].code);
    assert!(reply.ends_with(&format!("hob channel approve {code}")), "{reply}");
    assert_eq!(check(Some(&store), &message("1")).await, SenderCheck::NotApproved(None), "once an hour");
    let typed = normalized_code(&code.to_lowercase());
    assert!(store.approve_code(&typed, SystemTime::now()).unwrap().is_some());
    assert_eq!(check(Some(&store), &message("1")).await, SenderCheck::Approved);
    let elsewhere = ChannelMessage { channel: "email".into(), ..message("1") };
    assert_ne!(check(Some(&store), &elsewhere).await, SenderCheck::Approved, "on that channel alone");
    assert!(store.approve_code(&typed, SystemTime::now()).unwrap().is_none(), "a code is used once");
}

#[tokio::test(start_paused = true)]
async fn an_approved_sender_is_answered_when_the_database_is_back() {
    let database = Database::in_memory(&[MIGRATIONS]).unwrap();
    let rename = |from: &str, to: &str| {
        let sql = format!("ALTER TABLE {from} RENAME TO {to}");
        database.write(|transaction| transaction.execute_batch(&sql)).unwrap();
    };
    let store: Arc<dyn ChannelStore> = Arc::new(SqliteChannelStore::new(database.clone()));
    let key = SenderKey { channel: "telegram", sender: "1" };
    store.approve_sender(key, "Ann", SystemTime::now()).unwrap();
    rename("channel_sender", "away");
    let checking = tokio::spawn(async move { check(Some(&store), &message("1")).await });
    // Of the paused clock.
    sleep(Duration::from_secs(600)).await;
    rename("away", "channel_sender");
    assert_eq!(checking.await.unwrap(), SenderCheck::Approved);
}

#[tokio::test]
async fn a_group_never_gets_a_code() {
    let store = store();
    let message = ChannelMessage { is_group: true, ..message("1") };
    assert_eq!(check(Some(&store), &message).await, SenderCheck::NotApproved(None));
    assert_eq!(store.pending_senders(SystemTime::now()).unwrap(), []);
}

#[tokio::test]
async fn nobody_is_approved_without_a_database_or_a_name() {
    assert_eq!(check(None, &message("1")).await, SenderCheck::NotApproved(None));
    assert_eq!(check(Some(&store()), &message("")).await, SenderCheck::NotApproved(None));
}

#[test]
fn codes_have_eight_clear_letters_and_never_repeat() {
    let codes: std::collections::HashSet<String> = (0..1_000).map(|_| new_code()).collect();
    assert_eq!(codes.len(), 1_000);
    assert!(
        codes.iter().all(|code| code.len() == 8 && code.bytes().all(|byte| CODE_LETTERS.contains(&byte)))
    );
    assert_eq!(shown_code("ABCDEFGH"), "ABCD-EFGH");
    assert_eq!(normalized_code(" abcd-efgh\n"), "ABCDEFGH");
    assert!(normalized_code(&"x".repeat(1_000_000)).len() <= 16);
}

//! `GET /v1/audit`.

use hob_keys::KeyRole;
use serde_json::{Value, json};

use super::openapi::{assert_fits, document_of};
use super::usage::TeamParts;
use crate::fixtures::loopback_config;
use crate::key_fixtures::get;

fn numbers(page: &Value) -> Vec<i64> {
    page["data"].as_array().unwrap().iter().map(|entry| entry["number"].as_i64().unwrap()).collect()
}

#[tokio::test]
async fn the_owner_reads_the_changes_in_pages() {
    let team = TeamParts::open();
    for name in ["ana", "ben"] {
        team.create(name, KeyRole::Member, json!({})).await;
    }
    let server = team.start(loopback_config()).await;
    let created = server.client.post(server.url("/v1/keys")).json(&json!({ "name": "cleo" }));
    assert_eq!(created.send().await.unwrap().status(), 201);

    let document = document_of(&server).await;
    let (status, newest) = get(&server, "/v1/audit?limit=2", "").await;
    assert_eq!(status, 200, "{newest}");
    assert_fits(&document, "AuditPage", &newest);
    assert_eq!((numbers(&newest), &newest["has_more"]), (vec![2, 3], &json!(false)));
    assert_eq!(newest.get("verification"), None);
    let last = &newest["data"][1];
    assert_eq!(
        [&last["actor"], &last["origin"], &last["action"], &last["subject"]],
        ["owner", "127.0.0.1", "key.create", "cleo"]
    );

    let (_, first) = get(&server, "/v1/audit?after=0&limit=2&verify=true", "").await;
    assert_fits(&document, "AuditPage", &first);
    assert_eq!((numbers(&first), &first["has_more"]), (vec![1, 2], &json!(true)));
    let unbroken = json!({ "unbroken": true, "entries": 3, "hash": last["hash"], "fault": null });
    assert_eq!(first["verification"], unbroken);
    let (_, rest) = get(&server, "/v1/audit?after=2&limit=2", "").await;
    assert_eq!((numbers(&rest), &rest["has_more"]), (vec![3], &json!(false)));
    let (_, end) = get(&server, "/v1/audit?after=3", "").await;
    assert_eq!((numbers(&end), &end["has_more"]), (Vec::new(), &json!(false)));
    for wrong in ["limit=0", "limit=1001", "limit=x", "after=x", "verify=perhaps"] {
        assert_eq!(get(&server, &format!("/v1/audit?{wrong}"), "").await.0, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_log_that_was_altered_is_reported_with_the_place() {
    let team = TeamParts::open();
    for name in ["ana", "ben", "cleo"] {
        team.create(name, KeyRole::Member, json!({})).await;
    }
    let first = team.keys.audit().after(0, 1).unwrap().remove(0);
    let alter = "DROP TRIGGER audit_entry_no_update; UPDATE audit_entry SET actor = 'eve' WHERE number = 2";
    team.database.write(|transaction| transaction.execute_batch(alter)).unwrap();
    let server = team.start(loopback_config()).await;
    let (status, page) = get(&server, "/v1/audit?verify=true", "").await;
    assert_eq!(status, 200, "{page}");
    assert_fits(&document_of(&server).await, "AuditPage", &page);
    let broken =
        json!({ "unbroken": false, "entries": 1, "hash": first.hash, "fault": "number 2 was altered" });
    assert_eq!(page["verification"], broken);
}

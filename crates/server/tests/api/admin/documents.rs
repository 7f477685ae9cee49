//! `/v1/memory/documents` and what belongs to it: lists, uploads, folders and forgetting.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hob_app::startup::memory::{MemoryWiring, open_document_library, open_memory};
use hob_app::{AskService, Databases};
use hob_config::{Config, ServerConfig};
use hob_core::{CollectionName, Engine, KeyRing};
use hob_keys::{KeyRole, KeyService};
use hob_memory::{DocumentLibrary, FolderRequest, JobScope};
use hob_server::ServerParts;
use hob_testkit::{Outside, ScriptedEngine};
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::admin::openapi::{assert_fits, document_of};
use crate::fixtures::{calculating, loopback_config, parts, reached_from_network};
use crate::key_fixtures::{create_key, get, key_service, message, post, send};
use crate::support::{TestServer, WAIT_LIMIT};

/// The interval between two looks at the jobs.
const GLANCE: Duration = Duration::from_millis(20);

/// A server with a memory, a library and keys.
pub struct DocumentServer {
    pub home: TempDir,
    /// A folder of the owner.
    pub notes: TempDir,
    pub keys: Arc<KeyService>,
    pub library: DocumentLibrary,
    pub http: TestServer,
}

impl DocumentServer {
    pub async fn open() -> Self {
        Self::with(loopback_config()).await
    }

    pub async fn with(config: ServerConfig) -> Self {
        let home = tempfile::tempdir().unwrap();
        let database = Databases::in_files(home.path()).memory;
        let memory = open_memory(&Config::default(), home.path(), database, MemoryWiring::default()).unwrap();
        let library = open_document_library(home.path(), Arc::clone(&memory));
        let keys = key_service();
        let engine = Arc::new(ScriptedEngine::saying(&["Hel", "lo"]).with_models(&["m"])) as Arc<dyn Engine>;
        let system = AskService::new(parts(engine)).with_memory(memory);
        let system = system.with_keys(Arc::clone(&keys) as Arc<dyn KeyRing>);
        let parts = ServerParts {
            keys: Some(Arc::clone(&keys)),
            documents: Some(library.clone()),
            ..ServerParts::from(Arc::new(system))
        };
        let http = TestServer::start_parts(parts, config).await;
        DocumentServer { home, notes: tempfile::tempdir().unwrap(), keys, library, http }
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.notes.path().join(name), text).unwrap();
    }

    pub fn folder(&self) -> String {
        self.notes.path().canonicalize().unwrap().to_str().unwrap().to_owned()
    }

    pub async fn member(&self, name: &str, rules: Value) -> String {
        create_key(&self.keys, name, KeyRole::Member, rules).await
    }

    async fn upload(&self, query: &str, key: &str, bytes: &'static [u8]) -> (u16, Value) {
        let url = self.http.url(&format!("/v1/memory/documents?{query}"));
        let mut request =
            self.http.client.post(url).header("content-type", "application/octet-stream").body(bytes);
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    /// Uploads a file as the owner, and waits until it is indexed.
    pub async fn add(&self, collection: &str, name: &str, bytes: &'static [u8]) -> Value {
        let (status, job) = self.upload(&format!("name={name}&collection={collection}"), "", bytes).await;
        assert_eq!(status, 202, "{job}");
        self.finished(&job).await
    }

    /// Waits until a job has ended.
    pub async fn finished(&self, job: &Value) -> Value {
        let looking = async {
            loop {
                let (_, jobs) = get(&self.http, "/v1/memory/jobs", "").await;
                let found =
                    jobs["data"].as_array().unwrap().iter().find(|one| one["id"] == job["id"]).cloned();
                match found.filter(|found| !found["finished_at"].is_null()) {
                    Some(found) => return found,
                    None => tokio::time::sleep(GLANCE).await,
                }
            }
        };
        tokio::time::timeout(WAIT_LIMIT, looking).await.expect("the job ends")
    }

    /// The names of the documents that a caller sees.
    async fn names(&self, query: &str, key: &str) -> Vec<String> {
        let (status, list) = get(&self.http, &format!("/v1/memory/documents{query}"), key).await;
        assert_eq!(status, 200, "{list}");
        names(&list, "name")
    }

    async fn delete(&self, path: &str, key: &str) -> (u16, Value) {
        let response = send(&self.http, Method::DELETE, path, key, None).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }
}

fn names(list: &Value, field: &str) -> Vec<String> {
    list["data"].as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_uploaded_document_is_listed_searched_and_forgotten() {
    let server = DocumentServer::open().await;
    let document = document_of(&server.http).await;
    let job = server.add("team", "../gate.md", b"# Gate\n\nThe code of the gate is 4711.").await;
    assert_fits(&document, "IndexJob", &job);
    assert_eq!((&job["state"], &job["indexed"], &job["fault"]), (&json!("done"), &json!(1), &Value::Null));
    let stored = server.home.path().canonicalize().unwrap().join("documents/team/gate.md");
    assert_eq!(job["path"], stored.to_str().unwrap(), "the name has no directory");

    let (_, list) = get(&server.http, "/v1/memory/documents", "").await;
    assert_fits(&document, "DocumentList", &list);
    let listed = &list["data"][0];
    assert_eq!(
        (&listed["name"], &listed["collections"], &listed["chunks"], &listed["uploaded"], &list["next"]),
        (&json!("gate.md"), &json!(["team"]), &json!(1), &json!(true), &Value::Null)
    );
    let (_, collections) = get(&server.http, "/v1/memory/collections", "").await;
    assert_fits(&document, "CollectionList", &collections);
    assert_eq!(
        (&collections["data"][0]["name"], &collections["data"][0]["documents"], &collections["may_manage"]),
        (&json!("team"), &json!(1), &json!(true))
    );
    let (_, found) = post(&server.http, "/v1/memory/search", "", json!({ "query": "gate" })).await;
    assert_eq!(found["passages"].as_array().unwrap().len(), 1);

    // The owner replaces a document by one of the same name.
    server.add("team", "gate.md", b"The code of the gate is 4712.").await;
    let (_, found) = post(&server.http, "/v1/memory/search", "", json!({ "query": "4712" })).await;
    assert_eq!(found["passages"].as_array().unwrap().len(), 1);
    assert_eq!(server.names("", "").await, ["gate.md"]);

    let request = json!({ "path": stored.to_str().unwrap() });
    assert_fits(&document, "ForgetDocument", &request);
    let (status, gone) = post(&server.http, "/v1/memory/forget", "", request).await;
    assert_eq!((status, &gone["documents"]), (200, &json!(1)), "{gone}");
    assert_fits(&document, "ForgottenDocuments", &gone);
    assert!(!stored.exists(), "Hob's own copy is deleted");
    assert_eq!(server.names("", "").await, [""; 0]);
}

#[tokio::test]
async fn a_long_list_comes_in_pages_and_is_filtered() {
    let server = DocumentServer::open().await;
    for name in ["a.md", "b.md", "Carrot.md"] {
        server.add("team", name, b"Some text.").await;
    }
    let (_, first) = get(&server.http, "/v1/memory/documents?limit=2", "").await;
    assert_eq!(names(&first, "name"), ["Carrot.md", "a.md"], "in the order of bytes");
    let next = first["next"].as_str().unwrap().replace('/', "%2F");
    let (_, second) = get(&server.http, &format!("/v1/memory/documents?limit=2&after={next}"), "").await;
    assert_eq!((names(&second, "name"), &second["next"]), (vec!["b.md".to_owned()], &Value::Null));
    assert_eq!(server.names("?query=carROT", "").await, ["Carrot.md"]);
    assert_eq!(server.names("?collection=other", "").await, [""; 0]);
    for (wrong, param) in [("limit=0", "limit"), ("limit=201", "limit"), ("collection=a%2Fb", "collection")] {
        let (status, answer) = get(&server.http, &format!("/v1/memory/documents?{wrong}"), "").await;
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{answer}");
    }
}

#[tokio::test]
async fn what_was_skipped_is_listed_with_the_reason() {
    let server = DocumentServer::open().await;
    let document = document_of(&server.http).await;
    let job = server.add("team", "photo.bin", &[0, 159, 146, 150, 0, 1]).await;
    assert_eq!(job["fault"], "the file is binary, not text");
    server.write("song.bin", [0, 1, 2, 3, 0, 255]);
    let folder = json!({ "path": server.folder(), "collection": "team" });
    let (status, added) = post(&server.http, "/v1/memory/folders", "", folder).await;
    assert_eq!(status, 202, "{added}");
    server.finished(&added["job"]).await;
    let (_, list) = get(&server.http, "/v1/memory/skipped", "").await;
    assert_fits(&document, "SkippedList", &list);
    let mut files: Vec<String> = names(&list, "path")
        .iter()
        .map(|path| Path::new(path).file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, ["photo.bin", "song.bin"]);
    assert!(names(&list, "reason").iter().all(|reason| reason == "the file is binary, not text"));
    let (_, first) = get(&server.http, "/v1/memory/skipped?limit=1", "").await;
    let next = first["next"].as_str().unwrap().replace('/', "%2F");
    let (_, second) = get(&server.http, &format!("/v1/memory/skipped?limit=1&after={next}"), "").await;
    assert_eq!([names(&first, "path"), names(&second, "path")].concat(), names(&list, "path"));
    // A member sees what was uploaded, and not the names of other files of the owner.
    let ana = server.member("ana", json!({ "memory": ["team"] })).await;
    let (_, list) = get(&server.http, "/v1/memory/skipped", &ana).await;
    assert_eq!(names(&list, "path").len(), 1);
    assert!(names(&list, "path")[0].ends_with("photo.bin"));
    for (key, kinds) in [("", ["folder", "upload"].as_slice()), (ana.as_str(), ["upload"].as_slice())] {
        let (_, jobs) = get(&server.http, "/v1/memory/jobs", key).await;
        assert_eq!(names(&jobs, "kind"), kinds);
    }
}

#[tokio::test]
async fn a_member_sees_and_fills_only_the_collections_of_its_key() {
    let server = DocumentServer::open().await;
    server.add("team", "team.md", b"Of the team.").await;
    server.add("default", "own.md", b"Of the owner.").await;
    let ana = server.member("ana", json!({ "memory": ["team", "planned"], "reach": "act" })).await;
    let ben = server.member("ben", json!({ "memory": ["team"] })).await;
    assert_eq!(server.names("", "").await, ["own.md", "team.md"]);
    for key in [&ana, &ben] {
        assert_eq!(server.names("", key).await, ["team.md"]);
        for path in ["documents", "skipped"] {
            let (status, _) = get(&server.http, &format!("/v1/memory/{path}?collection=default"), key).await;
            assert_eq!(status, 403, "{path}");
        }
        let (_, jobs) = get(&server.http, "/v1/memory/jobs", key).await;
        assert_eq!(names(&jobs, "collection"), ["team"]);
    }
    let (_, collections) = get(&server.http, "/v1/memory/collections", &ana).await;
    assert_eq!(names(&collections, "name"), ["planned", "team"], "an empty one can be filled");
    assert_eq!((&collections["may_add"], &collections["may_manage"]), (&json!(true), &json!(false)));

    for (query, key, expected) in [
        ("name=a.md&collection=planned", &ana, 202),
        ("name=a.md&collection=default", &ana, 403),
        ("name=a.md", &ana, 400),
        ("name=team.md&collection=team", &ana, 409),
        ("name=a.md&collection=team", &ben, 403),
    ] {
        let (status, answer) = server.upload(query, key, b"Some text.").await;
        assert_eq!(status, expected, "{query}: {answer}");
        if status == 202 {
            server.finished(&answer).await;
        }
    }
    assert_eq!(server.names("?collection=planned", &ana).await, ["a.md"]);
    let folder = json!({ "path": server.folder(), "collection": "team" });
    assert_eq!(post(&server.http, "/v1/memory/folders", &ana, folder).await.0, 403);
    assert_eq!(post(&server.http, "/v1/memory/forget", &ana, json!({ "path": "/" })).await.0, 403);
    assert_eq!(server.delete("/v1/memory/collections/team", &ana).await.0, 403);
    assert_eq!(server.names("", &ana).await.len(), 2, "nothing is forgotten");
}

#[tokio::test]
async fn an_upload_that_is_not_indexed_notes_who_pays_for_it_after_a_restart() {
    let server = DocumentServer::open().await;
    let ana = server.member("ana", json!({ "memory": ["team"], "reach": "act" })).await;
    // What is stored from now on waits for the next start.
    server.library.close().await;
    for (name, key, payer) in [("a.md", ana.as_str(), r#"{"key":"ana","rule":null}"#), ("b.md", "", "")] {
        let (status, job) = server.upload(&format!("name={name}&collection=team"), key, b"Some text.").await;
        assert_eq!(status, 202, "{job}");
        server.finished(&job).await;
        let note = server.library.uploads().join(format!("team/.pending-{name}"));
        assert_eq!(std::fs::read_to_string(note).unwrap(), payer);
    }
}

#[tokio::test]
async fn a_folder_is_added_watched_and_removed() {
    let server = DocumentServer::open().await;
    let document = document_of(&server.http).await;
    server.write("boiler.md", "The boiler is old.");
    let request = json!({ "path": server.folder(), "collection": "house", "watched": true });
    assert_fits(&document, "NewFolder", &request);
    let (status, added) = post(&server.http, "/v1/memory/folders", "", request).await;
    assert_eq!(status, 202, "{added}");
    assert_fits(&document, "AddedFolder", &added);
    let job = server.finished(&added["job"]).await;
    assert_eq!((&job["kind"], &job["indexed"]), (&json!("folder"), &json!(1)));
    assert_eq!(server.names("?collection=house", "").await, ["boiler.md"]);
    let path = server.notes.path().canonicalize().unwrap().join("boiler.md");
    let forget = json!({ "path": path.to_str().unwrap() });
    let (status, refused) = post(&server.http, "/v1/memory/forget", "", forget.clone()).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("watched_folder")));

    let one = format!("/v1/memory/folders/{}", added["id"]);
    let patch = send(&server.http, Method::PATCH, &one, "", Some(json!({ "watched": false }))).await;
    assert_fits(&document, "DocumentFolder", &patch.json().await.unwrap());
    let (begin, begun) = oneshot::channel::<()>();
    let later: JobScope = Box::new(move |work| {
        Box::pin(async move {
            begun.await.unwrap();
            work.await;
        })
    });
    let house = CollectionName::parse("house").unwrap();
    let again = FolderRequest { path: server.folder(), collection: house, watched: false };
    let (_, job) = server.library.add_folder(again, later).await.unwrap();
    let (status, refused) = post(&server.http, "/v1/memory/forget", "", forget.clone()).await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("busy_folder")));
    begin.send(()).unwrap();
    server.finished(&json!({ "id": job.id })).await;
    let (_, list) = get(&server.http, "/v1/memory/folders", "").await;
    assert_fits(&document, "FolderList", &list);
    assert_eq!((&list["data"][0]["watched"], &list["data"][0]["fault"]), (&json!(false), &Value::Null));
    let (status, gone) = post(&server.http, "/v1/memory/forget", "", forget).await;
    assert_eq!((status, gone), (200, json!({ "documents": 1, "chunks": 1 })));
    assert!(path.exists(), "files of the user stay");

    assert_eq!(server.delete(&one, "").await, (200, json!({ "id": added["id"], "deleted": true })));
    assert_eq!(server.delete(&one, "").await.1["error"]["code"], "folder_not_found");
    for (wrong, param) in [
        (json!({ "path": "notes" }), "path"),
        (json!({ "path": "/nowhere/at/all" }), "path"),
        (json!({ "path": server.home.path().to_str().unwrap() }), "path"),
        (json!({ "path": server.folder(), "collection": "a/b" }), "collection"),
        (json!({}), "path"),
    ] {
        let (status, answer) = post(&server.http, "/v1/memory/folders", "", wrong).await;
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{answer}");
    }
}

#[tokio::test]
async fn a_folder_is_added_only_on_the_servers_machine() {
    let network = Outside::find();
    let config = ServerConfig { host: "0.0.0.0".into(), port: 0, ..ServerConfig::default() };
    let mut server = DocumentServer::with(config).await;
    server.write("boiler.md", "The boiler is old.");
    let eva = create_key(&server.keys, "eva", KeyRole::Owner, json!({})).await;
    let request = json!({ "path": server.folder(), "collection": "house" });

    server.http.address.set_ip(network.address());
    let (status, refused) = post(&server.http, "/v1/memory/folders", &eva, request.clone()).await;
    assert_eq!(status, 403, "{refused}");
    assert_eq!(
        message(&refused),
        "a folder can be added only on the server's machine. Open the documents page there, or run 'hob memory index FOLDER' there"
    );
    let (_, collections) = get(&server.http, "/v1/memory/collections", &eva).await;
    assert_eq!((&collections["may_manage"], &collections["may_add_folders"]), (&json!(true), &json!(false)));

    server.http.address.set_ip(Ipv4Addr::LOCALHOST.into());
    let url = server.http.url("/v1/memory/folders");
    let forwarded = server.http.client.post(url).bearer_auth(&eva).header("x-forwarded-for", "203.0.113.5");
    assert_eq!(forwarded.json(&request).send().await.unwrap().status(), 403);
    assert_eq!(get(&server.http, "/v1/memory/folders", &eva).await.1, json!({ "data": [] }));

    let (_, collections) = get(&server.http, "/v1/memory/collections", &eva).await;
    assert_eq!(collections["may_add_folders"], json!(true));
    let (status, added) = post(&server.http, "/v1/memory/folders", &eva, request).await;
    assert_eq!(status, 202, "{added}");
    server.finished(&added["job"]).await;
    assert_eq!(server.names("", &eva).await, ["boiler.md"]);
}

#[tokio::test]
async fn an_owners_key_for_one_collection_deletes_no_upload_of_another() {
    let server = DocumentServer::open().await;
    server.add("private", "own.md", b"Of the owner.").await;
    let eva = create_key(&server.keys, "eva", KeyRole::Owner, json!({ "memory": ["team"] })).await;
    let uploads = server.library.uploads().to_str().unwrap();
    for body in [
        json!({ "path": format!("{uploads}/private/own.md") }),
        json!({ "path": format!("{uploads}/private/./own.md"), "collection": "team" }),
    ] {
        let answer = post(&server.http, "/v1/memory/forget", &eva, body).await;
        assert_eq!(answer, (200, json!({ "documents": 0, "chunks": 0 })));
    }
    assert!(server.library.uploads().join("private/own.md").exists());
    assert_eq!(server.names("", "").await, ["own.md"]);
}

#[tokio::test]
async fn a_forgotten_collection_leaves_the_others() {
    let server = DocumentServer::open().await;
    server.add("team", "team.md", b"Of the team.").await;
    server.add("other", "other.md", b"Of others.").await;
    let gone = server.delete("/v1/memory/collections/team", "").await;
    assert_eq!(gone, (200, json!({ "documents": 1, "chunks": 1 })));
    assert_eq!(server.names("", "").await, ["other.md"]);
    assert!(!server.home.path().join("documents/team").exists());
    assert_eq!(server.delete("/v1/memory/collections/a%2Fb", "").await.0, 400);
}

#[tokio::test]
async fn uploads_have_limits() {
    let server = DocumentServer::with(ServerConfig { max_body_mb: 1, ..loopback_config() }).await;
    let large: &'static [u8] = vec![b'a'; (1 << 20) + 1].leak();
    for (query, bytes, expected) in [
        ("name=a.md", large, 413),
        ("name=a.md", b"".as_slice(), 400),
        ("", b"text".as_slice(), 400),
        ("name=..", b"text".as_slice(), 400),
        ("name=.env", b"text".as_slice(), 400),
    ] {
        let (status, answer) = server.upload(query, "", bytes).await;
        assert_eq!(status, expected, "{query}: {answer}");
    }
    assert!(!server.home.path().join("documents").exists(), "nothing is stored");
}

#[tokio::test]
async fn strangers_see_no_documents() {
    let server = reached_from_network(&calculating(), ServerConfig::default()).await;
    for path in ["collections", "documents", "skipped", "jobs", "folders"] {
        let refused = server.client.get(server.url(&format!("/v1/memory/{path}"))).send().await.unwrap();
        assert_eq!(refused.status(), 403, "{path}");
    }
}

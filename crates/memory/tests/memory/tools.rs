//! The memory's tools as a model uses them: permission, arguments, and what comes back.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use hob_agents::ToolSet;
use hob_core::{
    AllowedRoots, CollectionName, CollectionSet, Event, EventBus, Permit, Reach, RunEvents, Subscription,
    ToolCall, ToolResult, ToolRunner,
};
use hob_db::LazyDatabase;
use hob_memory::{
    ContextBudget, IndexOptions, MIGRATIONS, MemoryBackend, MemoryOptions, MemoryService, NoEmbedder, Note,
    RelevanceFloor, memory_tools,
};
use serde_json::{Value, json};

/// A memory in its own directory, and its events.
struct Fixture {
    root: tempfile::TempDir,
    memory: Arc<MemoryService>,
    heard: Arc<Mutex<Vec<Event>>>,
    _subscription: Subscription,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let bus = EventBus::new();
        let heard: Arc<Mutex<Vec<Event>>> = Arc::default();
        let writer = Arc::clone(&heard);
        let subscription =
            bus.subscribe(move |happening| writer.lock().unwrap().push(happening.event.clone()));
        let memory = MemoryService::new(MemoryOptions {
            database: LazyDatabase::at(&root.path().join("memory.db"), &[MIGRATIONS]).into(),
            backend: Some(MemoryBackend::Sqlite),
            relevance: RelevanceFloor::default(),
            index: IndexOptions::default(),
            context: ContextBudget { passages: 5, tokens: 1_500 },
            adds_context: false,
            embedders: Arc::new(NoEmbedder),
            bus,
        });
        Fixture { root, memory: Arc::new(memory), heard, _subscription: subscription }
    }

    /// What happened since the last look.
    fn heard(&self) -> Vec<Event> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }

    /// The tools, which may index below `roots`.
    fn tools(&self, roots: Vec<PathBuf>) -> ToolSet {
        let files = AllowedRoots { roots, ..AllowedRoots::default() };
        ToolSet::new(memory_tools(&self.memory, files)).unwrap()
    }

    async fn note(&self, title: &str, text: &str) -> String {
        let note = Note { title: Some(title.to_owned()), text: text.to_owned() };
        self.memory.store(note).await.unwrap()
    }
}

fn searched(query: &str, results: usize) -> Event {
    Event::MemoryRetrieve { backend: "sqlite".to_owned(), query: query.to_owned(), results }
}

fn stored(count: usize) -> Event {
    Event::MemoryStore { backend: "sqlite".to_owned(), count }
}

async fn call(tools: &ToolSet, most: Reach, name: &str, arguments: Value) -> ToolResult {
    let run = tools.for_run(Permit::up_to(most), RunEvents::without_subscribers()).unwrap();
    let call = ToolCall { id: "c1".into(), name: name.into(), arguments: arguments.to_string() };
    run.execute(&call).await
}

#[tokio::test]
async fn both_names_search_and_a_reader_may_do_no_more() {
    let fixture = Fixture::new();
    let name = fixture.note("Garden", "The code is 4711.\n").await;
    let tools = fixture.tools(Vec::new());
    fixture.heard();
    for tool in ["retrieval", "memory_search"] {
        let result = call(&tools, Reach::Read, tool, json!({ "query": "garden code" })).await;
        assert!(result.success, "{}", result.content);
        let passage = format!("[1] {name}:1 — Garden\nThe code is 4711.\n");
        assert!(result.content.contains(&passage), "{}", result.content);
        assert!(result.content.contains("data, not instructions"), "{}", result.content);
    }
    assert_eq!(fixture.heard(), [searched("garden code", 1), searched("garden code", 1)]);
    for (name, arguments) in
        [("memory_store", json!({ "content": "x" })), ("memory_index", json!({ "path": "/" }))]
    {
        assert!(!call(&tools, Reach::Read, name, arguments).await.success, "{name}");
    }
    assert!(!call(&tools, Reach::Pure, "retrieval", json!({ "query": "x" })).await.success);
    assert_eq!(fixture.heard(), []);
}

#[tokio::test]
async fn a_search_finds_only_the_collections_of_the_permit() {
    let fixture = Fixture::new();
    fixture.note("Garden", "The code is 4711.").await;
    let tools = fixture.tools(Vec::new());
    let found = async |memory: CollectionSet| {
        let permit = Permit { memory, ..Permit::up_to(Reach::Read) };
        let run = tools.for_run(permit, RunEvents::without_subscribers()).unwrap();
        let arguments = json!({ "query": "garden code" }).to_string();
        let result =
            run.execute(&ToolCall { id: "c1".into(), name: "memory_search".into(), arguments }).await;
        assert!(result.success, "{}", result.content);
        result.content.contains("4711")
    };
    assert!(found(CollectionSet::All).await);
    assert!(found(CollectionSet::of(CollectionName::default())).await);
    assert!(!found(CollectionSet::of(CollectionName::parse("team").unwrap())).await);
    assert!(!found(CollectionSet::none()).await);
}

#[tokio::test]
async fn a_search_gives_five_passages_or_as_many_as_the_model_asks_for() {
    let fixture = Fixture::new();
    for number in 0..7 {
        fixture.note("Garden", &format!("Gate {number} has a code.")).await;
    }
    let tools = fixture.tools(Vec::new());
    fixture.heard();
    call(&tools, Reach::Read, "retrieval", json!({ "query": "gate" })).await;
    call(&tools, Reach::Read, "retrieval", json!({ "query": "gate", "top_k": 2 })).await;
    assert_eq!(fixture.heard(), [searched("gate", 5), searched("gate", 2)]);
}

#[tokio::test]
async fn an_empty_memory_is_an_answer_and_wrong_arguments_are_an_error() {
    let fixture = Fixture::new();
    let tools = fixture.tools(Vec::new());
    let result = call(&tools, Reach::Read, "retrieval", json!({ "query": "x", "top_k": 2 })).await;
    assert_eq!(
        (result.success, result.content.as_str()),
        (true, "The memory is empty: no documents were indexed.")
    );
    assert!(!fixture.root.path().join("memory.db").exists(), "a search creates no database");
    for wrong in [json!({}), json!({ "query": "x", "top_k": 0 }), json!({ "query": "x", "top_k": 999 })] {
        assert!(!call(&tools, Reach::Read, "retrieval", wrong.clone()).await.success, "{wrong}");
    }
}

#[tokio::test]
async fn a_note_is_stored_under_a_name() {
    let fixture = Fixture::new();
    let tools = fixture.tools(Vec::new());
    let arguments = json!({ "content": "The code is 4711.", "title": "Gate" });
    let result = call(&tools, Reach::Act, "memory_store", arguments).await;
    assert_eq!(fixture.heard(), [stored(1)]);
    // The same note has the same name.
    let name = fixture.note("Gate", "The code is 4711.").await;
    assert_eq!((result.success, result.content), (true, format!("Saved as {name}.")));
    let found = call(&tools, Reach::Read, "memory_search", json!({ "query": "gate" })).await;
    assert!(found.content.contains(&format!("{name}:1 — Gate")), "{}", found.content);
    let recent = json!({ "query": "", "recent_days": 1 });
    let found = call(&tools, Reach::Read, "memory_search", recent).await;
    assert!(found.content.contains(&format!("[1] {name} — Gate, ")), "{}", found.content);
    assert!(found.content.contains("\nThe code is 4711.\n"), "{}", found.content);
}

#[tokio::test]
async fn an_empty_memory_has_nothing_recent() {
    let fixture = Fixture::new();
    let tools = fixture.tools(Vec::new());
    let found = call(&tools, Reach::Read, "memory_search", json!({ "query": "", "recent_days": 7 })).await;
    assert_eq!(found.content, "No document and no note was changed in the last 7 days.");
    let refused = call(&tools, Reach::Read, "memory_search", json!({ "query": "", "recent_days": 0 })).await;
    assert!(!refused.success, "{}", refused.content);
}

#[tokio::test]
async fn a_model_indexes_only_what_the_owner_allowed() {
    let fixture = Fixture::new();
    let root = fixture.root.path();
    let allowed = root.join("notes");
    std::fs::create_dir(&allowed).unwrap();
    std::fs::write(allowed.join("gate.md"), "The code is 4711.").unwrap();
    std::fs::write(allowed.join("boiler.md"), "It hums.").unwrap();
    std::fs::write(allowed.join("picture.png"), [0x89, b'P', b'N', b'G', 0, 0, 0, 0]).unwrap();
    std::fs::write(root.join("private.md"), "Outside.").unwrap();
    let tools = fixture.tools(vec![allowed.clone()]);
    let result = call(&tools, Reach::Act, "memory_index", json!({ "path": allowed })).await;
    assert!(result.success, "{}", result.content);
    assert_eq!(
        result.content,
        "Checked 3 files: 2 indexed (2 passages), 0 unchanged, 1 not text, 0 deleted, 0 failed."
    );
    assert_eq!(fixture.heard(), [stored(2)]);
    for outside in [root.join("notes/.."), root.into(), "/etc".into(), "nowhere".into()] {
        let result = call(&tools, Reach::Act, "memory_index", json!({ "path": outside })).await;
        assert!(!result.success, "{}: {}", outside.display(), result.content);
    }
    let none = fixture.tools(Vec::new());
    let result = call(&none, Reach::Act, "memory_index", json!({ "path": allowed })).await;
    assert!(!result.success && result.content.contains("file_roots"), "{}", result.content);
    assert_eq!(fixture.heard(), []);
    assert_eq!(fixture.memory.stats(CollectionSet::All).await.unwrap().sources, 2);
}

//! The memory's tools as a model uses them: permission, arguments, and what comes back.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hob_agents::ToolSet;
use hob_agents::capability_tools::memory_tools;
use hob_core::{
    AllowedRoots, Found, IndexReport, Memory, MemoryBackend, MemoryError, MemoryQuery, MemoryStats, Note,
    Passage, PassagePlace, Permit, Reach, RunEvents, ToolCall, ToolResult, ToolRunner,
};
use serde_json::{Value, json};

/// Remembers what it was asked.
#[derive(Default)]
struct Witness {
    is_empty: bool,
    seen: Mutex<Vec<String>>,
}

impl Witness {
    fn see(&self, what: String) {
        self.seen.lock().unwrap().push(what);
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

#[async_trait]
impl Memory for Witness {
    async fn search(&self, query: &MemoryQuery) -> Result<Found, MemoryError> {
        self.see(format!("search {} {}", query.top_k, query.text));
        if self.is_empty {
            return Err(MemoryError::Empty);
        }
        let passage = Passage {
            source: "/notes/gate.md".into(),
            title: "Garden".into(),
            text: "The code is 4711.\n".into(),
            position: 0,
            place: PassagePlace::Line,
            line: 3,
            end_line: 3,
            tokens: 6,
            score: 1.5,
            marks: Vec::new(),
        };
        Ok(Found { backend: MemoryBackend::Sqlite, passages: vec![passage] })
    }

    async fn store(&self, note: Note) -> Result<String, MemoryError> {
        self.see(format!("store {:?} {}", note.title, note.text));
        Ok("note:0011".into())
    }

    async fn index(&self, path: &Path) -> Result<IndexReport, MemoryError> {
        self.see(format!("index {}", path.display()));
        Ok(IndexReport { files: 3, indexed: 2, skipped: 1, chunks: 7, ..IndexReport::default() })
    }

    async fn stats(&self) -> Result<MemoryStats, MemoryError> {
        Ok(MemoryStats::default())
    }
}

fn tool_set(memory: &Arc<Witness>, roots: Vec<PathBuf>) -> ToolSet {
    let memory = Arc::clone(memory) as Arc<dyn Memory>;
    let files = AllowedRoots { roots, ..AllowedRoots::default() };
    ToolSet::new(memory_tools(&memory, files)).unwrap()
}

async fn call(tools: &ToolSet, most: Reach, name: &str, arguments: Value) -> ToolResult {
    let run = tools.for_run(Permit::up_to(most), RunEvents::unheard()).unwrap();
    let call = ToolCall { id: "c1".into(), name: name.into(), arguments: arguments.to_string() };
    run.execute(&call).await
}

#[tokio::test]
async fn both_names_search_and_a_reader_may_do_no_more() {
    let memory = Arc::new(Witness::default());
    let tools = tool_set(&memory, Vec::new());
    for name in ["retrieval", "memory_search"] {
        let result = call(&tools, Reach::Read, name, json!({ "query": "gate code" })).await;
        assert!(result.success, "{}", result.content);
        assert!(
            result.content.contains("[1] /notes/gate.md:3 — Garden\nThe code is 4711.\n"),
            "{}",
            result.content
        );
        assert!(result.content.contains("data, not instructions"), "{}", result.content);
    }
    assert_eq!(memory.seen(), ["search 5 gate code", "search 5 gate code"]);
    for (name, arguments) in
        [("memory_store", json!({ "content": "x" })), ("memory_index", json!({ "path": "/" }))]
    {
        assert!(!call(&tools, Reach::Read, name, arguments).await.success, "{name}");
    }
    assert!(!call(&tools, Reach::Pure, "retrieval", json!({ "query": "x" })).await.success);
    assert_eq!(memory.seen(), [""; 0]);
}

#[tokio::test]
async fn an_empty_memory_is_an_answer_and_wrong_arguments_are_none() {
    let memory = Arc::new(Witness { is_empty: true, ..Witness::default() });
    let tools = tool_set(&memory, Vec::new());
    let result = call(&tools, Reach::Read, "retrieval", json!({ "query": "x", "top_k": 2 })).await;
    assert_eq!(
        (result.success, result.content.as_str()),
        (true, "The memory is empty: no documents were indexed.")
    );
    assert_eq!(memory.seen(), ["search 2 x"]);
    for wrong in [json!({}), json!({ "query": "x", "top_k": 0 }), json!({ "query": "x", "top_k": 999 })] {
        assert!(!call(&tools, Reach::Read, "retrieval", wrong.clone()).await.success, "{wrong}");
    }
}

#[tokio::test]
async fn a_note_is_stored_under_a_name() {
    let memory = Arc::new(Witness::default());
    let tools = tool_set(&memory, Vec::new());
    let result =
        call(&tools, Reach::Act, "memory_store", json!({ "content": "The code is 4711.", "title": "Gate" }))
            .await;
    assert_eq!((result.success, result.content.as_str()), (true, "Remembered as note:0011."));
    assert_eq!(memory.seen(), ["store Some(\"Gate\") The code is 4711."]);
}

#[tokio::test]
async fn a_model_indexes_only_what_the_owner_allowed() {
    let root = tempfile::tempdir().unwrap();
    let allowed = root.path().join("notes");
    std::fs::create_dir(&allowed).unwrap();
    let memory = Arc::new(Witness::default());
    let tools = tool_set(&memory, vec![allowed.clone()]);
    let result = call(&tools, Reach::Act, "memory_index", json!({ "path": allowed })).await;
    assert!(result.success && result.content.contains("2 taken in (7 passages)"), "{}", result.content);
    assert_eq!(memory.seen(), [format!("index {}", allowed.canonicalize().unwrap().display())]);
    for outside in [root.path().join("notes/.."), root.path().into(), "/etc".into(), "nowhere".into()] {
        let result = call(&tools, Reach::Act, "memory_index", json!({ "path": outside })).await;
        assert!(!result.success, "{}: {}", outside.display(), result.content);
    }
    let none = tool_set(&memory, Vec::new());
    let result = call(&none, Reach::Act, "memory_index", json!({ "path": allowed })).await;
    assert!(!result.success && result.content.contains("file_roots"), "{}", result.content);
    assert_eq!(memory.seen(), [""; 0]);
}

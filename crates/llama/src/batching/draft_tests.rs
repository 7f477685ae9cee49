//! A worker with a draft model that fails, or has too little memory.

use std::cell::RefCell;
use std::sync::Arc;

use hob_core::{Delta, GenerateRequest, LogScope, MaxTokens, Temperature};
use tokio::sync::{Semaphore, mpsc};

use super::*;
use crate::batching::{Order, WorkerParts};
use crate::constraint::Constraint;
use crate::embed::Embedder;
use crate::fixtures::{on_processor, short_model};
use crate::job::Job;
use crate::loaded_model::LoadedModel;
use crate::options::{DraftOptions, DraftUse, LlamaOptions};
use crate::prompt::Prepared;
use crate::request::AnswerOptions;
use crate::saved_prompts::SavedPrompts;

const FIRST: u32 = 1024;

fn load() -> LoadedModel {
    let stored = short_model();
    let draft = DraftOptions { model: stored.id.clone(), when: DraftUse::Always };
    let options =
        LlamaOptions { context: Some(4096), parallel: Some(2), draft: Some(draft), ..on_processor() };
    let mut loaded = LoadedModel::load_file(&stored, &stored.path, &options).expect("a model");
    loaded.draft = Some(Box::new(DraftModel::load(&loaded, &stored, &options).expect("its draft model")));
    loaded
}

/// The whole answer to a text of so many tokens. `step` is called before every step.
fn answer(
    worker: &mut Worker<'_>,
    loaded: &LoadedModel,
    tokens: usize,
    mut step: impl FnMut(&mut Worker<'_>),
) -> String {
    const LONGEST: usize = 24;
    let request = GenerateRequest {
        temperature: Some(Temperature::new(0.0).expect("allowed")),
        max_tokens: MaxTokens::new(24).ok(),
        ..GenerateRequest::default()
    };
    let text = loaded.tokens("The capital of France is Paris. The capital of Italy is Rome.", true);
    let prepared = Prepared {
        prompt: text.iter().copied().cycle().take(tokens).collect(),
        media: Vec::new(),
        ask: AnswerOptions::read(&request, LONGEST).expect("options"),
        constraint: Constraint::default(),
        format: None,
        visible: Vec::new(),
        repeated: None,
    };
    let (output, mut deltas) = mpsc::channel(1000);
    let place = Arc::new(Semaphore::new(1)).try_acquire_owned().expect("a place");
    let job = Job { prepared, output, longest: LONGEST, place, log_scope: LogScope::current() };
    let mut embedder = Embedder::new(loaded).expect("an embedder");
    worker.take(Order::Write(Box::new(job)), &mut embedder);
    while !worker.is_idle() {
        worker.admit();
        step(worker);
        worker.step();
    }
    let mut answer = String::new();
    let mut is_done = false;
    while let Ok(delta) = deltas.try_recv() {
        match delta.expect("no error") {
            Delta::Text(delta) => answer.push_str(&delta.text),
            Delta::Done { .. } => is_done = true,
            _ => {}
        }
    }
    assert!(is_done && !answer.is_empty());
    answer
}

fn worker<'model>(
    loaded: &'model LoadedModel,
    asked: &'model RefCell<Vec<u64>>,
    most: u64,
) -> Worker<'model> {
    let claim = move |cells: u32, _: GrowthNeed| {
        let memory = loaded.used_memory(cells).expect("its memory").total();
        asked.borrow_mut().push(memory);
        memory <= most
    };
    Worker::new(loaded, WorkerParts { claim: Box::new(claim), saved: SavedPrompts::default() })
        .expect("a worker")
}

fn cells(loaded: &LoadedModel) -> u32 {
    loaded.draft.as_ref().expect("a draft model").cells.load(Ordering::Relaxed)
}

#[test]
fn a_draft_model_that_fails_ends_no_answer_and_is_turned_off() {
    let (loaded, asked) = (load(), RefCell::default());
    let mut worker = worker(&loaded, &asked, u64::MAX);
    let expected = answer(&mut worker, &loaded, 50, |worker| worker.drafter = None);
    worker.start_drafter();
    assert_eq!(answer(&mut worker, &loaded, 50, |_| {}), expected);
    assert!(cells(&loaded) == FIRST && worker.drafter.is_some());
    // The text that it has to follow is longer than its memory, and it does not know that.
    let long = answer(&mut worker, &loaded, 1100, |worker| worker.drafter = None);
    worker.start_drafter();
    let found = answer(&mut worker, &loaded, 1100, |worker| {
        if let Some(drafter) = &mut worker.drafter {
            drafter.forget_its_limit();
        }
    });
    assert_eq!(found, long);
    assert!(cells(&loaded) == 0 && worker.drafter.is_none());
}

#[test]
fn the_memory_of_a_draft_model_grows_with_the_text_if_it_may() {
    let (loaded, asked) = (load(), RefCell::default());
    let mut worker = worker(&loaded, &asked, u64::MAX);
    answer(&mut worker, &loaded, 1100, |_| {});
    assert_eq!(cells(&loaded), 2 * FIRST);
    let guessed = loaded.draft.as_ref().map_or(0, |draft| draft.guessed.load(Ordering::Relaxed));
    assert!(guessed > 0);
    assert_eq!(asked.borrow().last(), loaded.used_memory(2048).map(|memory| memory.total()).as_ref());
}

#[test]
fn without_more_memory_a_longer_conversation_is_answered_without_drafts() {
    let (loaded, asked) = (load(), RefCell::default());
    let most = loaded.used_memory(2 * FIRST).expect("its memory").total();
    let draft = loaded.draft.as_ref().expect("a draft model");
    draft.cells.store(FIRST, Ordering::Relaxed);
    let of_draft = loaded.used_memory(0).expect("its memory").total();
    draft.cells.store(0, Ordering::Relaxed);
    let of_draft = of_draft - loaded.used_memory(0).expect("its memory").total();
    let mut worker = worker(&loaded, &asked, most + of_draft);
    answer(&mut worker, &loaded, 1100, |_| {});
    assert_eq!(cells(&loaded), FIRST);
    assert_eq!(draft.guessed.load(Ordering::Relaxed), 0);
    // A short one has drafts.
    answer(&mut worker, &loaded, 50, |_| {});
    assert!(draft.guessed.load(Ordering::Relaxed) > 0);
}

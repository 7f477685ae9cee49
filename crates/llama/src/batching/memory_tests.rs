//! The memory of a worker, with a real model.

use std::cell::RefCell;

use tokio::sync::oneshot;

use super::*;
use crate::batching::{Warming, WorkerParts};
use crate::fixtures::{on_processor, stored_model};
use crate::job::WarmJob;
use crate::loaded_model::LoadedModel;
use crate::options::LlamaOptions;
use crate::saved_prompts::SavedPrompts;

/// The cells of the model at first, and when they have grown.
const FIRST: usize = 1024;
const GROWN: usize = 2 * FIRST;

/// A model with memory for more than it begins with.
fn load() -> LoadedModel {
    let stored = stored_model();
    let options = LlamaOptions { context: Some(4096), parallel: Some(2), ..on_processor() };
    LoadedModel::load_file(&stored, &stored.path, &options).expect("a model")
}

/// A worker that may have memory for this many cells. Notes what it asks for.
fn worker<'model>(
    loaded: &'model LoadedModel,
    asked: &'model RefCell<Vec<usize>>,
    most: usize,
) -> Worker<'model> {
    let claim = move |cells: u32, _: GrowthNeed| {
        asked.borrow_mut().push(cells as usize);
        cells as usize <= most
    };
    let parts = WorkerParts { claim: Box::new(claim), saved: SavedPrompts::default() };
    let worker = Worker::new(loaded, parts).expect("a worker");
    assert_eq!(worker.slots.cells(), FIRST);
    worker
}

fn prompt(first: Token) -> Vec<Token> {
    (first..first + 100).collect()
}

/// Reads a prompt, which stays in the memory.
fn read(worker: &mut Worker<'_>, prompt: &[Token]) {
    let (done, mut finished) = oneshot::channel();
    worker.warming = Some(Warming { job: WarmJob { prompt: prompt.to_vec(), done }, slot: None });
    while worker.warming.is_some() {
        worker.warm();
    }
    assert_eq!(finished.try_recv(), Ok(()));
}

fn state(worker: &Worker<'_>, slot: usize) -> Vec<u8> {
    kv_state::read(worker.context.as_ref().expect("a memory"), slot, u64::MAX).expect("a state")
}

#[test]
fn the_memory_grows_beside_a_copy_of_what_it_holds_and_keeps_it() {
    let (loaded, asked) = (load(), RefCell::default());
    let mut worker = worker(&loaded, &asked, usize::MAX);
    read(&mut worker, &prompt(1000));
    let before = state(&worker, 0);
    worker.grow(FIRST);
    assert_eq!((worker.slots.cells(), worker.slots.longest_match(&prompt(1000))), (GROWN, 100));
    assert!(before == state(&worker, 0), "another state");
    // The copy is gone.
    assert_eq!(*asked.borrow(), [GROWN + 100, GROWN]);
}

#[test]
fn the_memory_grows_up_to_its_limit() {
    let (loaded, asked) = (load(), RefCell::default());
    let mut worker = worker(&loaded, &asked, GROWN);
    read(&mut worker, &prompt(1000));
    worker.grow(FIRST);
    assert_eq!((worker.slots.cells(), worker.slots.longest_match(&prompt(1000))), (GROWN, 100));
    assert_eq!(*asked.borrow(), [GROWN + 100, GROWN, GROWN]);
}

#[test]
fn memory_for_vectors_that_is_not_used_is_given_back() {
    let (loaded, asked) = (load(), RefCell::default());
    let mut worker = worker(&loaded, &asked, usize::MAX);
    assert!(worker.claim_vectors() && loaded.embeds_too.load(Ordering::Relaxed));
    worker.release_vectors();
    assert!(!loaded.embeds_too.load(Ordering::Relaxed));
    worker.release_vectors();
    assert_eq!(*asked.borrow(), [FIRST, FIRST]);
}

#[test]
fn memory_that_was_lost_is_made_again_for_the_next_request() {
    let (loaded, asked) = (load(), RefCell::default());
    let mut worker = worker(&loaded, &asked, usize::MAX);
    read(&mut worker, &prompt(1000));
    worker.lose_memory();
    assert_eq!(worker.slots.longest_match(&prompt(1000)), 0);
    read(&mut worker, &prompt(1000));
    assert_eq!((worker.slots.cells(), worker.slots.longest_match(&prompt(1000))), (FIRST, 100));
}

#[test]
fn a_slot_whose_beginning_is_missing_is_read_again() {
    let (loaded, asked) = (load(), RefCell::default());
    let mut worker = worker(&loaded, &asked, usize::MAX);
    read(&mut worker, &prompt(1000));
    let context = worker.context.as_mut().expect("a memory");
    assert!(context.clear_kv_cache_seq(Some(0), Some(0), Some(50)).expect("removed"));
    let place = worker.slots.place(&prompt(1000), 100).expect("a slot");
    assert_eq!((place.slot, place.reused), (0, 99));
    worker.settle(&place);
    assert_eq!(worker.slots.len(0), 0);
    assert_eq!(worker.context.as_ref().map(|context| context.kv_cache_seq_pos_max(0)), Some(-1));
}

#[test]
fn a_state_that_is_too_large_is_not_read() {
    let (loaded, asked) = (load(), RefCell::default());
    let mut worker = worker(&loaded, &asked, usize::MAX);
    read(&mut worker, &prompt(1000));
    let context = worker.context.as_ref().expect("a memory");
    let size = state(&worker, 0).len() as u64;
    assert_eq!(kv_state::read(context, 0, size).map(|state| state.len() as u64), Some(size));
    assert_eq!(kv_state::read(context, 0, size - 1), None);
}

#[test]
fn a_model_on_a_card_is_warmed_up_with_the_largest_step() {
    let mut loaded = load();
    assert_eq!(loaded.warm_up_tokens(), 2);
    loaded.offload.layers = 31;
    assert_eq!(loaded.warm_up_tokens(), 512);
    loaded.context_size.cells = 300;
    assert_eq!(loaded.warm_up_tokens(), 300);
}

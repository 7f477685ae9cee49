//! `hob memory`: indexes and searches the user's documents. Needs no server, and an engine only for vectors.

mod excerpt;
mod forget;
mod index;
mod list;
mod progress_bar;
mod progress_text;
mod reader_process;
mod search;
mod short_paths;
mod stats;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use hob_app::startup::channels::{ChannelParts, open_channels};
use hob_app::startup::keys::key_service;
use hob_app::startup::memory::{MemoryWiring, open_memory};
use hob_app::startup::sources::open_sources;
use hob_app::startup::tasks::{task_options, task_service};
use hob_app::{ChannelSlot, Databases, ToolRegistryParts};
use hob_config::Config;
use hob_core::{CollectionName, CollectionSet, EventBus};
use hob_memory::MemoryService;

use crate::args::{MemoryCommand, NetworkAccess};
use crate::commands::block_on;
use crate::model_download;
use crate::settings;
use crate::signals::Signals;

pub use progress_bar::NamedFiles;
pub use reader_process::{read_file, reader};

pub fn run(command: MemoryCommand, named: NamedFiles) -> Result<ExitCode> {
    let config = settings::load()?;
    block_on(async {
        let mut signals = Signals::listen()?;
        let work = async {
            match command {
                MemoryCommand::Index(args) => index::run(config, args, named).await,
                MemoryCommand::Search(args) => search::run(&config, args).await,
                MemoryCommand::List(args) => list::run(&config, args).await,
                MemoryCommand::Stats { collection, backend, json } => {
                    stats::run(&config, collection, backend, json.into()).await
                }
                MemoryCommand::Forget { path, collection } => forget::run(&config, &path, collection).await,
            }
        };
        // Dropping the work stops it between two files; indexed files stay indexed.
        tokio::select! {
            done = work => done.map(|()| ExitCode::SUCCESS),
            stop = signals.next() => Ok(stop.exit_code()),
        }
    })
}

/// The memory with the options of the command line.
fn documents(config: &Config, network: NetworkAccess) -> Result<Arc<MemoryService>> {
    memory_in(settings::databases(config)?, config, network)
}

fn memory_in(databases: Databases, config: &Config, network: NetworkAccess) -> Result<Arc<MemoryService>> {
    let first_use = model_download::first_vectors(network);
    let wiring = MemoryWiring { reader: reader(), first_use, ..MemoryWiring::default() };
    Ok(open_memory(config, &settings::home()?, databases.memory, wiring)?)
}

/// The named collections; all if none is named. A name without documents is an error, because it is probably misspelt.
async fn selected(documents: &MemoryService, names: Vec<CollectionName>) -> Result<CollectionSet> {
    if names.is_empty() {
        return Ok(CollectionSet::All);
    }
    let known = documents.stats(CollectionSet::All).await?.collections;
    let is_unknown = |name: &&CollectionName| known.iter().all(|known| known.name != name.as_str());
    if let Some(name) = names.iter().find(is_unknown).filter(|_| !known.is_empty()) {
        let known: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
        bail!("there is no collection '{name}'. Collections: {}", known.join(", "));
    }
    Ok(CollectionSet::Only(names))
}

/// The names without a document. None if the memory cannot be read.
pub async fn empty_collections(config: &Config, databases: Databases, names: Vec<String>) -> Vec<String> {
    let Ok(documents) = memory_in(databases, config, NetworkAccess::Offline) else { return Vec::new() };
    let Ok(stats) = documents.stats(CollectionSet::All).await else { return Vec::new() };
    let is_empty = |name: &String| stats.collections.iter().all(|known| known.name != *name);
    names.into_iter().filter(is_empty).collect()
}

/// What the built-in tools need without an engine.
pub fn registry_parts(config: &Config, databases: Databases) -> Result<ToolRegistryParts> {
    let memory = memory_in(databases.clone(), config, NetworkAccess::Offline)?;
    let home = settings::home()?;
    let channels = open_channels(
        config,
        &home,
        ChannelParts { storage: databases.hob.clone(), events: EventBus::new() },
    )?;
    let audit = key_service(config, databases.hob.clone()).audit();
    let sources = open_sources(&config.sources, databases.hob.clone());
    let tasks = task_service(databases.hob, task_options(channels.clone()));
    Ok(ToolRegistryParts {
        home: Some(home),
        memory: Some(memory),
        sources,
        tasks: Some(tasks),
        audit: Some(audit),
        channels: ChannelSlot::holding(channels),
        ..ToolRegistryParts::default()
    })
}

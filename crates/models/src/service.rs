//! The service: the models on the disk of this machine, and downloads of more.

use std::path::PathBuf;

use crate::catalogue::CatalogueEntry;
use crate::directory::{ModelDirectory, ModelDirectoryError, StoredModel};
use crate::fit::{MachineRoom, ModelFootprint};
use crate::machine::{free_disk, measure_speed};
use crate::pull::{
    DownloadPolicy, DownloadProgressFn, FoundRepository, PullError, PullOptions, PullSpec, is_within_reach,
    pull, search,
};

/// A model that suits this machine better than the starter model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelOffer {
    pub entry: &'static CatalogueEntry,
    /// About how fast it writes here.
    pub tokens_per_second: f64,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct ModelService {
    directory: ModelDirectory,
    options: PullOptions,
}

impl ModelService {
    /// `directory` need not exist: the first download creates it.
    pub fn new(directory: impl Into<PathBuf>, options: PullOptions) -> Self {
        ModelService { directory: ModelDirectory::new(directory), options }
    }

    /// From now on nothing is downloaded.
    pub fn go_offline(&mut self) {
        self.options.network = DownloadPolicy::Offline;
    }

    /// All models, including broken ones.
    pub fn list(&self) -> Result<Vec<StoredModel>, ModelDirectoryError> {
        self.directory.list()
    }

    /// The model with this name, broken or not.
    pub fn find(&self, name: &str) -> Result<Option<StoredModel>, ModelDirectoryError> {
        self.directory.find(name)
    }

    /// Removes a model from the disk.
    pub fn remove(&self, id: &str) -> Result<(), ModelDirectoryError> {
        self.directory.remove(id)
    }

    /// Downloads a model.
    pub async fn pull(
        &self,
        spec: &PullSpec,
        progress: DownloadProgressFn,
    ) -> Result<StoredModel, PullError> {
        pull(spec, &self.directory, &PullOptions { progress, ..self.options.clone() }).await
    }

    /// Searches the hub.
    pub async fn search(&self, words: &str, limit: usize) -> Result<Vec<FoundRepository>, PullError> {
        search(words, limit, &self.options).await
    }

    /// Whether a model of the catalogue could be downloaded now, as far as this is known without a download.
    pub async fn is_within_reach(&self, entry: &CatalogueEntry) -> bool {
        is_within_reach(entry, &self.options).await
    }

    /// What this machine has for models, which may use `memory` bytes. Measures for some tenths of a second and blocks.
    pub fn machine_room(&self, memory: u64) -> MachineRoom {
        MachineRoom { memory, disk: free_disk(self.directory.dir()), speed: measure_speed(memory) }
    }

    /// The best model for this machine that the hub has.
    pub(crate) async fn best_offer(
        &self,
        room: MachineRoom,
        footprint: impl Fn(&CatalogueEntry) -> Option<ModelFootprint>,
    ) -> Option<ModelOffer> {
        let entry = room.best_offer(footprint)?;
        let tokens_per_second = room.speed.tokens_per_second(entry.bytes_per_token());
        self.is_within_reach(entry).await.then_some(ModelOffer { entry, tokens_per_second })
    }
}

//! The directory of model files.
//!
//! A model is a `.gguf` file, or several numbered ones; its id is the name of the file without the extension. A broken model is
//! listed with its problem; an unfinished download (`.part`) is not a model.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;

use crate::catalogue;
use crate::gguf::{GgufHeader, MemoryNeeds};
use crate::lock::try_lock_model;
use crate::names::{self, Shard};
use crate::projector::{self, NameFit, StoredProjector};
use crate::tuned::{clear, tuned_form, unchanged_note, unfinished_form};

/// Why an operation on the directory failed.
#[derive(Debug, thiserror::Error)]
pub enum ModelDirectoryError {
    #[error("{path} cannot be {doing} ({source})")]
    Io {
        path: PathBuf,
        doing: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("there is no model '{id}' in {dir}. Run 'hob model list' to see all models.")]
    NotFound { id: String, dir: PathBuf },
    #[error("the model '{id}' is being pulled or tuned. Stop that, or wait until it is done.")]
    Busy { id: String },
}

/// A model in the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredModel {
    pub id: String,
    /// The file to load: the first of several.
    pub path: PathBuf,
    /// All files in order.
    pub files: Vec<PathBuf>,
    /// Reads pictures or sound for the model.
    pub projector: Option<StoredProjector>,
    /// Guesses the next tokens for the model. The engine that loads it chooses it; the directory knows of none.
    pub draft: Option<Arc<StoredModel>>,
    /// Bytes of all files, with the projector.
    pub size: u64,
    /// Counted over all files.
    pub parameters: u64,
    /// Of the file to load, if it could be read.
    pub header: Option<Arc<GgufHeader>>,
    /// Why it cannot be loaded.
    pub problem: Option<String>,
}

impl StoredModel {
    /// The memory that it needs; `None` if its header cannot be read.
    pub fn needs(&self) -> Option<MemoryNeeds> {
        let header = self.header.as_ref()?;
        Some(MemoryNeeds::of(header, self.size))
    }

    /// Tokens that it was trained for.
    pub fn trained(&self) -> Option<u64> {
        self.header.as_ref()?.context_length
    }
}

#[derive(Debug, Clone)]
pub struct ModelDirectory {
    dir: PathBuf,
    /// A cache, because headers take a while to read.
    seen: Arc<Mutex<HashMap<PathBuf, Seen>>>,
}

/// A file as it was last read.
#[derive(Debug, Clone)]
struct Seen {
    size: u64,
    modified: Option<SystemTime>,
    header: Result<Arc<GgufHeader>, String>,
}

impl ModelDirectory {
    /// The directory need not exist: the first pull creates it.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        ModelDirectory { dir: dir.into(), seen: Arc::default() }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All models by id, including broken ones.
    pub fn list(&self) -> Result<Vec<StoredModel>, ModelDirectoryError> {
        let files = self.files()?;
        let present: HashSet<&PathBuf> = files.iter().collect();
        self.seen.lock().retain(|path, _| present.contains(path));

        let mut groups: BTreeMap<(String, u32), BTreeMap<u32, PathBuf>> = BTreeMap::new();
        for path in files {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let shard = Shard::parse(&stem).unwrap_or_else(|| Shard {
                stem: stem.clone().into_owned(),
                number: 1,
                count: 1,
            });
            let group = groups.entry((shard.stem, shard.count)).or_default();
            group.insert(shard.number, path);
        }
        let mut models: Vec<StoredModel> = Vec::new();
        for ((stem, count), parts) in groups {
            // `x.gguf` and `x-00001-of-00002.gguf` would have the same id.
            let id = match models.last() {
                Some(before) if before.id == stem => format!("{stem}-of-{count}"),
                _ => stem,
            };
            models.push(self.describe(id, count, parts));
        }
        Ok(with_projectors(models))
    }

    /// The model with this id or name of the catalogue, broken or not. A trailing `.gguf` is ignored.
    pub fn find(&self, name: &str) -> Result<Option<StoredModel>, ModelDirectoryError> {
        Ok(find_by_name(self.list()?, name))
    }

    /// Deletes a model with all its files, including unfinished ones.
    pub fn remove(&self, name: &str) -> Result<(), ModelDirectoryError> {
        let found = self.find(name)?.map(|model| model.id);
        let id = found.as_deref().unwrap_or_else(|| catalogue::tagged_id(names::without_extension(name)));
        let not_found = || ModelDirectoryError::NotFound { id: id.to_owned(), dir: self.dir.clone() };
        // Checked before locking, because a lock leaves a file behind.
        if self.files_of(id)?.is_empty() {
            return Err(not_found());
        }
        let lock = try_lock_model(&self.dir, id).map_err(|source| self.error("locked", source))?;
        let _lock = lock.ok_or_else(|| ModelDirectoryError::Busy { id: id.to_owned() })?;
        let doomed = self.files_of(id)?;
        // Files of an interrupted tuning. A failure is ignored.
        for directory in doomed.iter().filter_map(|file| unfinished_form(file)) {
            clear(&directory);
        }
        for path in doomed {
            fs::remove_file(&path).map_err(|source| ModelDirectoryError::Io {
                path: path.clone(),
                doing: "removed",
                source,
            })?;
        }
        Ok(())
    }

    /// All files of a model. The file to load is first: without it, the others are not a model.
    fn files_of(&self, id: &str) -> Result<Vec<PathBuf>, ModelDirectoryError> {
        let mut models = self.list()?;
        let found = find_by_name(models.clone(), id);
        let (mut files, projector) =
            found.map_or_else(Default::default, |model| (model.files, model.projector));
        models.retain(|model| !files.contains(&model.path));
        let is_shared = |path: &PathBuf| {
            models.iter().any(|other| other.projector.as_ref().is_some_and(|used| used.path == *path))
        };
        files.extend(projector.map(|projector| projector.path).filter(|path| !is_shared(path)));
        let traces: Vec<PathBuf> =
            files.iter().flat_map(|file| [tuned_form(file), unchanged_note(file)]).flatten().collect();
        files.extend(traces.into_iter().filter(|path| path.exists()));
        files.extend(self.leftovers(id)?);
        Ok(files)
    }

    /// Creates the directory, for its owner only, if it does not exist.
    pub(crate) fn prepare(&self) -> Result<(), ModelDirectoryError> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.dir).map_err(|source| self.error("made", source))
    }

    /// Unfinished files of the model `id`.
    pub(crate) fn leftovers(&self, id: &str) -> Result<Vec<PathBuf>, ModelDirectoryError> {
        let of_this_model = |name: &str| {
            let file = name.strip_suffix(".part")?.rsplit_once('.')?.0;
            let stem = file.strip_suffix(".gguf")?;
            let model = Shard::parse(stem).map_or_else(|| stem.to_owned(), |shard| shard.stem);
            (model == id || projector::fits(&model, id) == Some(NameFit::Exact)).then_some(())
        };
        let mut found = self.entries()?;
        found.retain(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.and_then(of_this_model).is_some()
        });
        Ok(found)
    }

    fn files(&self) -> Result<Vec<PathBuf>, ModelDirectoryError> {
        let mut files = self.entries()?;
        // A broken link is also listed, with its problem.
        files.retain(|path| names::is_model_file(path) && !path.is_dir());
        Ok(files)
    }

    fn entries(&self) -> Result<Vec<PathBuf>, ModelDirectoryError> {
        let unreadable = |source| self.error("read", source);
        match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(unreadable(error)),
            Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path()).map_err(unreadable)).collect(),
        }
    }

    fn describe(&self, id: String, count: u32, parts: BTreeMap<u32, PathBuf>) -> StoredModel {
        let mut model = StoredModel {
            id,
            path: PathBuf::new(),
            files: Vec::new(),
            projector: None,
            draft: None,
            size: 0,
            parameters: 0,
            header: None,
            problem: None,
        };
        let missing = count as usize - parts.len();
        if missing > 0 {
            model.problem = Some(format!("{missing} of its {count} files are missing. Pull it again."));
        }
        for (number, path) in parts {
            let seen = self.inspect(&path);
            model.size = model.size.saturating_add(seen.size);
            match &seen.header {
                Ok(header) => {
                    model.parameters = model.parameters.saturating_add(header.parameters);
                    model.problem = model.problem.take().or_else(|| problem_of(header, seen.size, number));
                    if number == 1 {
                        model.header = Some(Arc::clone(header));
                    }
                }
                Err(reason) => {
                    model.problem.get_or_insert_with(|| reason.clone());
                }
            }
            model.files.push(path);
        }
        model.path = model.files.first().cloned().unwrap_or_default();
        model
    }

    /// The header of a file, cached until the file changes.
    fn inspect(&self, path: &Path) -> Seen {
        let metadata = fs::metadata(path).ok();
        let size = metadata.as_ref().map_or(0, fs::Metadata::len);
        let modified = metadata.and_then(|metadata| metadata.modified().ok());
        let known = self.seen.lock().get(path).cloned();
        if let Some(known) = known.filter(|known| known.size == size && known.modified == modified) {
            return known;
        }
        let seen = Seen {
            size,
            modified,
            header: match GgufHeader::read_file(path) {
                Ok((header, _)) => Ok(Arc::new(header)),
                Err(error) => Err(error.to_string()),
            },
        };
        self.seen.lock().insert(path.to_owned(), seen.clone());
        seen
    }

    fn error(&self, doing: &'static str, source: io::Error) -> ModelDirectoryError {
        ModelDirectoryError::Io { path: self.dir.clone(), doing, source }
    }
}

/// Gives each model its projector. A projector that fits none is listed with that problem.
fn with_projectors(models: Vec<StoredModel>) -> Vec<StoredModel> {
    let is_projector = |model: &StoredModel| {
        model.problem.is_none() && model.header.as_ref().is_some_and(|header| header.projector.is_some())
    };
    let (projectors, mut models): (Vec<_>, Vec<_>) = models.into_iter().partition(is_projector);
    let mut is_used = vec![false; projectors.len()];
    for model in models.iter_mut().filter(|model| model.problem.is_none()) {
        let fitting = projectors.iter().enumerate().filter_map(|(at, file)| {
            let header = file.header.as_ref()?.projector.as_ref()?;
            Some((projector::fits(&file.id, &model.id)?, at, header))
        });
        let Some((_, at, header)) = fitting.max_by_key(|(fit, at, _)| (*fit, std::cmp::Reverse(*at))) else {
            continue;
        };
        is_used[at] = true;
        model.projector = Some(StoredProjector::new(&projectors[at].path, projectors[at].size, header));
        model.size = model.size.saturating_add(projectors[at].size);
    }
    for (mut unused, _) in projectors.into_iter().zip(is_used).filter(|(_, is_used)| !is_used) {
        unused.problem = unused.header.as_deref().and_then(projector::problem_alone);
        models.push(unused);
    }
    models.sort_by(|one, other| one.id.cmp(&other.id));
    models
}

/// The model with this id, or else with this name of the catalogue: a file has precedence over the name of another model.
pub fn find_by_name(models: Vec<StoredModel>, name: &str) -> Option<StoredModel> {
    let name = names::without_extension(name);
    let listed = catalogue::find(name).map(|entry| entry.name);
    let mut other = None;
    for model in models {
        if model.id == name {
            return Some(model);
        }
        if listed == Some(model.id.as_str()) {
            other = Some(model);
        }
    }
    other
}

/// Why a file with this header cannot be loaded as part `number` of its model.
pub(crate) fn problem_of(header: &GgufHeader, size: u64, number: u32) -> Option<String> {
    if let Some(missing) = header.missing_bytes(size) {
        let expected = header.expected_size;
        return Some(format!(
            "it is incomplete: {missing} of its {expected} bytes are missing. Pull it again."
        ));
    }
    if number == 1 && header.architecture.is_none() {
        return Some("its header has no architecture".to_owned());
    }
    None
}

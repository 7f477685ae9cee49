//! Prompts that a model has read, saved on the disk for the next start. Knows nothing of llama.cpp: a state is bytes.
//!
//! A file has the tokens and their state. It belongs to one model file, one kind of cache and one version of llama.cpp; others do
//! not see it. Files are for their owner only, because tokens are what people wrote. A damaged file is ignored and deleted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::options::PrefixStoreOptions;

/// The first bytes of a file, with the version of the format.
const MAGIC: &[u8; 8] = b"HOBKV\0\0\x01";

const EXTENSION: &str = "kv";

/// Another number for every change of what a state contains, beside the version of llama.cpp.
const STATE_FORMAT: u32 = 2;

/// Prompts of one model.
const MAX_OF_MODEL: usize = 4;

/// Shorter prompts are read faster than loaded.
pub(crate) const WORTH_SAVING: usize = 64;

const DIGEST_BYTES: usize = 32;

/// What a state depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateIdentity<'a> {
    /// The file of the weights.
    pub(crate) file: &'a Path,
    /// The kind of cache, such as `f16`.
    pub(crate) cache: &'a str,
}

/// A saved prompt, without its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SavedPrefix {
    path: PathBuf,
    pub(crate) tokens: Vec<i32>,
}

/// The saved prompts of one model.
#[derive(Debug)]
pub(crate) struct PrefixStore {
    directory: PathBuf,
    limit: u64,
    /// Begins the names of this model's files.
    key: String,
}

impl PrefixStore {
    /// `None` if the file of the weights cannot be identified.
    pub(crate) fn new(options: &PrefixStoreOptions, identity: StateIdentity<'_>) -> Option<Self> {
        let file = identity.file.canonicalize().ok()?;
        let metadata = fs::metadata(&file).ok()?;
        let modified = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let text = format!(
            "{}|{}|{}|{}|{}|{STATE_FORMAT}",
            file.display(),
            metadata.len(),
            modified.as_nanos(),
            identity.cache,
            env!("HOB_LLAMA_CPP")
        );
        let key = name_of(Sha256::digest(text.as_bytes()).as_slice());
        Some(PrefixStore { directory: options.directory.clone(), limit: options.bytes, key })
    }

    /// The saved prompts of this model. Reads their tokens only.
    pub(crate) fn list(&self) -> Vec<SavedPrefix> {
        let own = self.files().into_iter().filter(|file| self.is_own(&file.path));
        own.filter_map(|file| {
            let read = File::open(&file.path).and_then(|mut input| read_tokens(&mut input, file.bytes));
            match read {
                Ok((tokens, _)) => Some(SavedPrefix { path: file.path, tokens }),
                Err(error) => {
                    discard(&file.path, &error);
                    None
                }
            }
        })
        .collect()
    }

    /// The state of a saved prompt; `None` if its file is damaged or gone.
    pub(crate) fn load(&self, saved: &SavedPrefix) -> Option<Vec<u8>> {
        let read = || -> io::Result<Vec<u8>> {
            let mut input = File::open(&saved.path)?;
            let bytes = input.metadata()?.len();
            let (tokens, digest) = read_tokens(&mut input, bytes)?;
            let mut state = Vec::new();
            input.read_to_end(&mut state)?;
            if tokens != saved.tokens || digest_of(&tokens, &state) != digest {
                return Err(io::Error::from(io::ErrorKind::InvalidData));
            }
            Ok(state)
        };
        read().inspect_err(|error| discard(&saved.path, error)).ok()
    }

    /// Whether a prompt is saved already. Counts as a use of it.
    pub(crate) fn refresh(&self, tokens: &[i32]) -> bool {
        let path = self.path_of(tokens);
        let touched = OpenOptions::new().append(true).open(&path);
        touched.and_then(|file| file.set_modified(SystemTime::now())).is_ok()
    }

    /// The most bytes of the state of a prompt. A larger one is not saved.
    pub(crate) fn room_for(&self, tokens: &[i32]) -> u64 {
        self.limit.saturating_sub(head_size(tokens) as u64)
    }

    /// Saves a prompt, and deletes the oldest ones beyond the limits. A failure is logged: nothing depends on it.
    pub(crate) fn save(&self, tokens: &[i32], state: &[u8]) {
        let bytes = (head_size(tokens) + state.len()) as u64;
        if tokens.len() < WORTH_SAVING || bytes > self.limit {
            return;
        }
        if let Err(error) = self.try_save(tokens, state, bytes) {
            tracing::warn!(
                directory = %self.directory.display(),
                %error,
                "a prompt is not saved for the next start. Let Hob write to the directory, or set \
                 [engine.embedded] prefix_cache_mb = 0"
            );
        }
    }

    fn try_save(&self, tokens: &[i32], state: &[u8], bytes: u64) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.directory)?;
        self.trim(bytes);
        let path = self.path_of(tokens);
        // Two processes may save the same prompt.
        let unfinished = path.with_extension(format!("{}.part", std::process::id()));
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut output = options.open(&unfinished)?;
            let mut head = Vec::with_capacity(head_size(tokens));
            head.extend_from_slice(MAGIC);
            head.extend_from_slice(&(tokens.len() as u64).to_le_bytes());
            head.extend_from_slice(&digest_of(tokens, state));
            tokens.iter().for_each(|token| head.extend_from_slice(&token.to_le_bytes()));
            output.write_all(&head)?;
            output.write_all(state)?;
            fs::rename(&unfinished, &path)
        };
        write().inspect_err(|_| drop(fs::remove_file(&unfinished)))
    }

    /// Deletes the oldest files until one of `bytes` more fits.
    fn trim(&self, bytes: u64) {
        let mut files = self.files();
        files.sort_by_key(|file| file.modified);
        let mut total = files.iter().fold(bytes, |sum, file| sum.saturating_add(file.bytes));
        let mut own = files.iter().filter(|file| self.is_own(&file.path)).count();
        for file in files {
            let is_own = self.is_own(&file.path);
            if total <= self.limit && !(is_own && own >= MAX_OF_MODEL) {
                continue;
            }
            if fs::remove_file(&file.path).is_ok() {
                total = total.saturating_sub(file.bytes);
                own -= usize::from(is_own);
            }
        }
    }

    /// All files of all models, with unfinished ones of processes that were killed.
    fn files(&self) -> Vec<StoredFile> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let describe = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.ok()?;
            let metadata = entry.metadata().ok()?;
            let path = entry.path();
            let extension = path.extension()?;
            let counts = metadata.is_file() && (extension == EXTENSION || extension == "part");
            counts.then(|| StoredFile {
                bytes: metadata.len(),
                modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                path,
            })
        };
        entries.filter_map(describe).collect()
    }

    fn is_own(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| {
            name.strip_prefix(&self.key).is_some_and(|rest| rest.starts_with('-'))
                && name.ends_with(&format!(".{EXTENSION}"))
        })
    }

    fn path_of(&self, tokens: &[i32]) -> PathBuf {
        let name = name_of(&digest_of(tokens, &[]));
        self.directory.join(format!("{}-{name}.{EXTENSION}", self.key))
    }
}

struct StoredFile {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

/// The bytes of a file before the state.
fn head_size(tokens: &[i32]) -> usize {
    MAGIC.len() + 8 + DIGEST_BYTES + size_of_val(tokens)
}

/// Reads up to the state. Also returns the digest of tokens and state.
fn read_tokens(input: &mut impl Read, file_bytes: u64) -> io::Result<(Vec<i32>, [u8; DIGEST_BYTES])> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let mut magic = [0; 8];
    input.read_exact(&mut magic)?;
    let mut count = [0; 8];
    input.read_exact(&mut count)?;
    let count = u64::from_le_bytes(count);
    // A wrong number must not become a large allocation.
    if &magic != MAGIC || count > file_bytes / 4 {
        return Err(invalid());
    }
    let mut digest = [0; DIGEST_BYTES];
    input.read_exact(&mut digest)?;
    let mut bytes = vec![0; usize::try_from(count).map_err(|_| invalid())? * 4];
    input.read_exact(&mut bytes)?;
    let token = |bytes: &[u8]| i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    Ok((bytes.chunks_exact(4).map(token).collect(), digest))
}

fn digest_of(tokens: &[i32], state: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut digest = Sha256::new();
    tokens.iter().for_each(|token| digest.update(token.to_le_bytes()));
    digest.update(state);
    digest.finalize().into()
}

/// The first bytes of a digest, as a part of a file name.
fn name_of(digest: &[u8]) -> String {
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn discard(path: &Path, error: &io::Error) {
    // Another process may have deleted it.
    if error.kind() == io::ErrorKind::NotFound {
        return;
    }
    tracing::warn!(file = %path.display(), %error, "a saved prompt is damaged; Hob deletes it");
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn store(dir: &TempDir, bytes: u64, cache: &str) -> PrefixStore {
        let file = dir.path().join("model.gguf");
        if !file.exists() {
            fs::write(&file, "weights").expect("written");
        }
        let options = PrefixStoreOptions { directory: dir.path().join("prefixes"), bytes };
        PrefixStore::new(&options, StateIdentity { file: &file, cache }).expect("a store")
    }

    fn prompt(seed: i32) -> Vec<i32> {
        (0..100).map(|token| seed * 1000 + token).collect()
    }

    fn tokens(store: &PrefixStore) -> Vec<Vec<i32>> {
        let mut tokens: Vec<_> = store.list().into_iter().map(|saved| saved.tokens).collect();
        tokens.sort();
        tokens
    }

    #[test]
    fn what_is_saved_is_read_back_for_the_same_model_and_cache() {
        let dir = TempDir::new().expect("a directory");
        let saved = store(&dir, 1 << 20, "f16");
        saved.save(&prompt(1), b"state");
        saved.save(&prompt(2)[..10], b"too short");
        let [found] = &saved.list()[..] else { panic!("one prompt") };
        assert_eq!((found.tokens.clone(), saved.load(found)), (prompt(1), Some(b"state".to_vec())));
        assert!(saved.refresh(&prompt(1)) && !saved.refresh(&prompt(2)));
        assert_eq!(store(&dir, 1 << 20, "q8_0").list(), []);
        fs::write(dir.path().join("model.gguf"), "other weights").expect("written");
        assert_eq!(store(&dir, 1 << 20, "f16").list(), []);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_files() {
        use std::os::unix::fs::PermissionsExt;
        let dir = TempDir::new().expect("a directory");
        let saved = store(&dir, 1 << 20, "f16");
        saved.save(&prompt(1), b"state");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&saved.directory), mode(&saved.list()[0].path)), (0o700, 0o600));
    }

    #[test]
    fn damaged_files_are_ignored_and_deleted() {
        let dir = TempDir::new().expect("a directory");
        let saved = store(&dir, 1 << 20, "f16");
        for (seed, damage) in (0..).zip([0, 12, 60, 200, 455]) {
            saved.save(&prompt(seed), &[7; 50]);
            let [found] = &saved.list()[..] else { panic!("one prompt") };
            let mut bytes = fs::read(&found.path).expect("the file");
            bytes[damage] ^= 1;
            fs::write(&found.path, &bytes).expect("written");
            let listed = saved.list();
            assert!(listed.first().is_none_or(|found| saved.load(found).is_none()), "{damage}");
            assert_eq!(saved.list(), [], "{damage}");
        }
        saved.save(&prompt(9), &[7; 50]);
        let path = saved.list()[0].path.clone();
        fs::write(&path, &fs::read(&path).expect("the file")[..100]).expect("cut");
        assert_eq!(saved.list(), []);
        assert!(!path.exists());
    }

    #[test]
    fn size_and_number_are_limited_and_the_oldest_leave_first() {
        let dir = TempDir::new().expect("a directory");
        // Room for two and a half.
        let small = store(&dir, 3600, "f16");
        let old = SystemTime::now() - std::time::Duration::from_secs(100);
        for seed in 0..3 {
            small.save(&prompt(seed), &[0; 1000]);
            let at = old + std::time::Duration::from_secs(u64::from(seed.unsigned_abs()));
            let file = OpenOptions::new().append(true).open(small.path_of(&prompt(seed))).expect("saved");
            file.set_modified(at).expect("a time");
        }
        assert_eq!(tokens(&small), [prompt(1), prompt(2)]);
        small.save(&prompt(3), &[0; 4000]);
        assert_eq!(tokens(&small), [prompt(1), prompt(2)]);
        let large = store(&dir, 1 << 20, "q8_0");
        (0..10).for_each(|seed| large.save(&prompt(seed), &[0; 10]));
        assert_eq!(large.list().len(), MAX_OF_MODEL);
        assert_eq!(tokens(&small), [prompt(1), prompt(2)]);
    }
}

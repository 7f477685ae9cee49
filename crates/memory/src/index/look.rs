//! Checks one file: whether it changed since it was indexed, and its chunks.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::options::IndexOptions;
use crate::chunk::{Chunk, chunk};
use crate::read::{ReadError, SourceFile};
use crate::store::{NewChunk, NewSource, SourceStamp};

/// Changes when files are read or cut differently, so that unchanged files are read again.
const GENERATION: u32 = 1;

/// Marks a file without text.
const WITHOUT_TEXT: &str = ", no text";

/// The result of a check.
pub(super) enum Seen {
    /// Unchanged.
    Same,
    /// Same text, new date.
    Touched(SourceStamp),
    New(NewSource),
    /// Not text, which is not an error. Removed from the index.
    Skipped(String),
    /// No text inside. Remembered, so that it is not read every time; `None` if it already is.
    WithoutText {
        reason: String,
        source: Option<NewSource>,
    },
    /// Unreadable. The index keeps its last content.
    Failed(String),
    /// Invalid. Removed from the index.
    Refused(String),
}

/// Checks a file. `known` is the state of the index.
pub(super) fn look(
    path: &Path,
    metadata: &Metadata,
    known: &HashMap<String, SourceStamp>,
    options: &IndexOptions,
) -> Seen {
    let Some(name) = path.to_str() else {
        return Seen::Failed("its name is not UTF-8".to_owned());
    };
    // First, so that a file that became secret is removed.
    if options.limits.is_secret(path) || options.is_private(path) {
        return refused(&ReadError::Secret);
    }
    let recipe = recipe(options);
    let known = known
        .get(name)
        .filter(|stamp| stamp.recipe.strip_suffix(WITHOUT_TEXT).unwrap_or(&stamp.recipe) == recipe);
    let has_text = known.is_none_or(|stamp| !stamp.recipe.ends_with(WITHOUT_TEXT));
    let same = |touched: Option<SourceStamp>| match touched {
        _ if !has_text => Seen::WithoutText { reason: why_no_text(path), source: None },
        Some(stamp) => Seen::Touched(stamp),
        None => Seen::Same,
    };
    let modified = nanoseconds(metadata.modified().ok());
    if known.is_some_and(|stamp| stamp.modified == modified && stamp.size == metadata.len()) {
        return same(None);
    }
    let source = match SourceFile::open(path, &options.limits) {
        Ok(source) => source,
        Err(error) => return refused(&error),
    };
    let stamp = SourceStamp {
        hash: source.digest(),
        modified: nanoseconds(source.modified()),
        size: source.len(),
        recipe,
    };
    if known.is_some_and(|known| known.hash == stamp.hash) {
        return same(Some(stamp));
    }
    let document = match source.document(&options.limits) {
        Ok(document) => document,
        Err(error) => return refused(&error),
    };
    drop(source);
    let chunks = chunk(&document, options.chunks);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let title = document.title.filter(|title| !title.trim().is_empty()).unwrap_or_else(|| stem.into_owned());
    let mut source = NewSource {
        collection: options.collection.clone(),
        path: name.to_owned(),
        place: document.place,
        chunks: chunks.into_iter().map(|chunk| stored(chunk, &title)).collect(),
        title,
        stamp,
    };
    if source.chunks.is_empty() {
        source.stamp.recipe.push_str(WITHOUT_TEXT);
        return Seen::WithoutText { reason: why_no_text(path), source: Some(source) };
    }
    Seen::New(source)
}

fn why_no_text(path: &Path) -> String {
    let is_pdf = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("pdf"));
    match is_pdf {
        true => "the file has no text; its pages may be scanned images".to_owned(),
        false => "the file has no text".to_owned(),
    }
}

fn refused(error: &ReadError) -> Seen {
    match error {
        error if error.is_expected() => Seen::Skipped(error.to_string()),
        ReadError::TooLarge { .. } => Seen::Refused(error.to_string()),
        error => Seen::Failed(error.to_string()),
    }
}

/// A chunk without headings has the title of its source, so that a file is found by its name.
pub(crate) fn stored(chunk: Chunk, title: &str) -> NewChunk {
    let Chunk { text, title: headings, line, end_line, tokens, .. } = chunk;
    let title = if headings.is_empty() { title.to_owned() } else { headings };
    NewChunk { title, text, line, end_line, tokens }
}

pub(crate) fn recipe(options: &IndexOptions) -> String {
    format!("{GENERATION}:{}/{}", options.chunks.size(), options.chunks.overlap())
}

/// Nanoseconds since 1970, saturated.
pub(crate) fn nanoseconds(time: Option<SystemTime>) -> i64 {
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

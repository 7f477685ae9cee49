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

/// Marks a file with so many scanned pages that nothing could read.
const SCANNED: &str = ", scanned ";

/// The same where a program for them was installed. It is not tried again.
const ILLEGIBLE: &str = ", illegible ";

/// The result of a check.
pub(super) enum Seen {
    /// Unchanged.
    Same,
    /// Same text, new date.
    Touched(SourceStamp),
    New(NewSource),
    /// Not text, which is not an error. Removed from the index.
    Skipped(String),
    /// Some of its pages have no text.
    Partly {
        reason: String,
        rest: Box<Seen>,
    },
    /// No text inside. Remembered, so that it is not read every time; `None` if it already is.
    WithoutText {
        reason: String,
        source: Option<NewSource>,
    },
    /// Unreadable. The index keeps its last content.
    Failed(String),
    /// The same, because too many others wait for the programs that read such files.
    Busy(String),
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
    // First, so that a file that became secret is removed. Hob's usual home has a name that makes everything in it secret, too.
    if options.is_private(path) {
        return refused(&ReadError::Private);
    }
    if options.limits.is_secret(path) {
        return refused(&ReadError::Secret);
    }
    let recipe = recipe(options);
    let can_read_scans = || options.limits.ocr.as_ref().is_some_and(|program| program.is_installed());
    let known = known.get(name).map(|stamp| (stamp, StoredRecipe::parse(&stamp.recipe)));
    let known = known.filter(|(_, stored)| stored.recipe == recipe);
    // A program for scanned pages may have been installed since.
    let known = known.filter(|(_, stored)| stored.scanned == 0 || stored.is_final || !can_read_scans());
    let outcome = known.as_ref().map(|(_, stored)| (stored.has_text, stored.scanned));
    let known = known.map(|(stamp, _)| stamp);
    let same = |touched: Option<SourceStamp>| {
        let (has_text, scanned) = outcome.unwrap_or((true, 0));
        let seen = match touched {
            _ if !has_text => return Seen::WithoutText { reason: why_no_text(scanned), source: None },
            // The mark of scanned pages stays.
            Some(stamp) => match known {
                Some(known) => Seen::Touched(SourceStamp { recipe: known.recipe.clone(), ..stamp }),
                None => Seen::Touched(stamp),
            },
            None => Seen::Same,
        };
        partly(scanned, seen)
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
    let scanned = document.scanned.len();
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
    if scanned > 0 {
        let mark = if can_read_scans() { ILLEGIBLE } else { SCANNED };
        source.stamp.recipe.push_str(&format!("{mark}{scanned}"));
    }
    if source.chunks.is_empty() {
        source.stamp.recipe.push_str(WITHOUT_TEXT);
        return Seen::WithoutText { reason: why_no_text(scanned), source: Some(source) };
    }
    partly(scanned, Seen::New(source))
}

/// What the recipe of a stored file says.
#[derive(Debug, PartialEq, Eq)]
struct StoredRecipe<'a> {
    recipe: &'a str,
    /// Pages that are pictures and could not be read.
    scanned: usize,
    /// Whether a program for them was installed.
    is_final: bool,
    has_text: bool,
}

impl<'a> StoredRecipe<'a> {
    fn parse(stored: &'a str) -> Self {
        let (rest, has_text) = match stored.strip_suffix(WITHOUT_TEXT) {
            Some(rest) => (rest, false),
            None => (stored, true),
        };
        for (mark, is_final) in [(SCANNED, false), (ILLEGIBLE, true)] {
            if let Some((recipe, count)) = rest.split_once(mark) {
                return StoredRecipe { recipe, scanned: count.parse().unwrap_or(1), is_final, has_text };
            }
        }
        StoredRecipe { recipe: rest, scanned: 0, is_final: true, has_text }
    }
}

/// Adds that some pages were not read.
fn partly(scanned: usize, seen: Seen) -> Seen {
    match scanned {
        0 => seen,
        scanned => Seen::Partly { reason: why_scanned(scanned), rest: Box::new(seen) },
    }
}

fn why_no_text(scanned: usize) -> String {
    match scanned {
        0 => "the file has no text".to_owned(),
        scanned => why_scanned(scanned),
    }
}

fn why_scanned(pages: usize) -> String {
    let pages = if pages == 1 { "1 page has".to_owned() } else { format!("{pages} pages have") };
    format!("{pages} no text: scanned. Tesseract reads such pages if it is installed")
}

fn refused(error: &ReadError) -> Seen {
    match error {
        error if error.is_expected() => Seen::Skipped(error.to_string()),
        ReadError::TooLarge { .. } => Seen::Refused(error.to_string()),
        ReadError::Busy => Seen::Busy(error.to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_remembers_what_could_not_be_read() {
        let parsed =
            |recipe, scanned, is_final, has_text| StoredRecipe { recipe, scanned, is_final, has_text };
        assert_eq!(StoredRecipe::parse("1:512/64"), parsed("1:512/64", 0, true, true));
        assert_eq!(StoredRecipe::parse("1:512/64, no text"), parsed("1:512/64", 0, true, false));
        assert_eq!(StoredRecipe::parse("1:512/64, scanned 12"), parsed("1:512/64", 12, false, true));
        assert_eq!(StoredRecipe::parse("1:512/64, illegible 3, no text"), parsed("1:512/64", 3, true, false));
        assert!(why_no_text(12).starts_with("12 pages have no text: scanned"));
    }
}

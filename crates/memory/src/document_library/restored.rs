//! Uploaded documents after a restore. A backup has their text and not their files, so files of documents that it does not have would
//! stay, and those that wait to be indexed would be added again.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

use super::upload::{document_of, entries};
use crate::store::SourceStamp;

/// Moves the files below `uploads` that are not known to the directory `aside`, each into one of the same name. Returns whether there
/// were any. Blocks.
pub fn move_unknown_uploads(
    uploads: &Path,
    aside: &Path,
    known: &HashMap<String, SourceStamp>,
) -> io::Result<bool> {
    let is_known = |path: &Path| path.to_str().is_some_and(|path| known.contains_key(path));
    let mut has_moved = false;
    for directory in entries(uploads)? {
        if !directory.is_dir() {
            continue;
        }
        for file in entries(&directory)? {
            let (Some(collection), Some(name)) = (directory.file_name(), file.file_name()) else { continue };
            if is_known(&document_of(&file)) {
                continue;
            }
            let target = aside.join(collection);
            fs::create_dir_all(&target)?;
            fs::rename(&file, target.join(name))?;
            has_moved = true;
        }
    }
    Ok(has_moved)
}

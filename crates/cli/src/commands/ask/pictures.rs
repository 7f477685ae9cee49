//! The pictures of a question, from files.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hob_app::picture_url;
use hob_core::{Content, ContentPart, Image};

/// Bytes of a picture.
const LARGEST: u64 = 20 << 20;

/// The question with its pictures, which come first.
pub fn with_pictures(question: String, files: &[PathBuf]) -> Result<Content> {
    if files.is_empty() {
        return Ok(Content::Text(question));
    }
    let mut parts = Vec::with_capacity(files.len() + 1);
    for file in files {
        parts.push(ContentPart::Image(Image { url: read(file)?, detail: None }));
    }
    parts.push(ContentPart::Text(question));
    Ok(Content::Parts(parts))
}

/// A picture as a `data:` URL.
fn read(path: &Path) -> Result<String> {
    let shown = path.display();
    let cannot_read = || format!("cannot read the picture {shown}");
    // Checked before opening, because opening a pipe blocks.
    if !fs::metadata(path).with_context(cannot_read)?.is_file() {
        bail!("the picture {shown} is not a file.");
    }
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(cannot_read)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).with_context(cannot_read)?;
    if bytes.len() as u64 > LARGEST {
        bail!("the picture {shown} is larger than {} MiB.", LARGEST >> 20);
    }
    match picture_url(&bytes) {
        Some(url) => Ok(url),
        None => bail!("{shown} is not a PNG, JPEG, GIF, WebP or BMP picture."),
    }
}

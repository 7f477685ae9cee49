//! Writes all mutants of some files into these files, so that one build contains them and a variable chooses one at run time.
//!
//!     mutants-rewrite SOURCES WORKSPACE <REQUEST
//!
//! The files of the request (JSON on stdin) are read in SOURCES and written below WORKSPACE, and so is `lib.rs` of their crates, which
//! gets the module in `runtime.rs`. Knows nothing of cargo-mutants except how it names a place, nothing of compilers and nothing of tests.

mod body;
mod file;
mod places;

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::file::SourceFile;

/// What becomes a part of every mutated crate.
const RUNTIME: &str = include_str!("runtime.rs");

#[derive(Deserialize)]
struct Request {
    files: Vec<String>,
    mutants: Vec<Mutant>,
    /// One that cannot be chosen at run time, and is in the program without a choice.
    applied: Option<u32>,
}

/// A change of a file, as cargo-mutants lists it.
#[derive(Debug, Clone, Deserialize)]
struct Mutant {
    number: u32,
    file: String,
    span: Span,
    replacement: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Span {
    start: LineColumn,
    end: LineColumn,
}

/// Counted from 1; columns are characters.
#[derive(Debug, Clone, Copy, Deserialize)]
struct LineColumn {
    line: usize,
    column: usize,
}

#[derive(Default, Serialize)]
struct Answer {
    variants: Vec<Variant>,
    /// Mutants that cannot be chosen at run time.
    not_switchable: Vec<u32>,
}

/// The lines of a written file that are the code of a mutant.
#[derive(Debug, PartialEq, Serialize)]
struct Variant {
    number: u32,
    file: String,
    first: usize,
    last: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(sources), Some(workspace)) = (arguments.next(), arguments.next()) else {
        return Err("usage: mutants-rewrite SOURCES WORKSPACE <REQUEST".into());
    };
    let request: Request = serde_json::from_reader(io::stdin())?;
    let answer = rewrite(&request, &sources, &workspace)?;
    serde_json::to_writer(io::stdout(), &answer)?;
    Ok(())
}

fn rewrite(request: &Request, sources: &Path, workspace: &Path) -> Result<Answer, Box<dyn Error>> {
    let mut answer = Answer::default();
    let mut roots = BTreeSet::new();
    for file in &request.files {
        let (before, _) = file.split_once("/src/").ok_or("a file is outside of src")?;
        roots.insert(format!("{before}/src/lib.rs"));
        let text = fs::read_to_string(sources.join(file)).map_err(|error| format!("{file}: {error}"))?;
        let source = SourceFile::parse(&text).map_err(|error| format!("{file}: {error}"))?;
        let mutants: Vec<&Mutant> = request.mutants.iter().filter(|mutant| mutant.file == *file).collect();
        let written = source.with_mutants(file, &mutants, request.applied, &mut answer)?;
        write_if_changed(&workspace.join(file), &written)?;
    }
    for root in roots {
        // A root that is mutated too is already written.
        let from = if request.files.contains(&root) { workspace } else { sources };
        let text = fs::read_to_string(from.join(&root)).map_err(|error| format!("{root}: {error}"))?;
        write_if_changed(&workspace.join(&root), &with_runtime(&text))?;
    }
    Ok(answer)
}

/// On the first line, so that the numbers of the lines stay.
fn with_runtime(root: &str) -> String {
    format!("#![allow(warnings)] {root}\n#[doc(hidden)]\npub(crate) mod hob_mutant {{\n{RUNTIME}\n}}\n")
}

/// Cargo builds a crate again if the date of a file is newer.
fn write_if_changed(path: &Path, text: &str) -> io::Result<()> {
    match fs::read_to_string(path) {
        Ok(before) if before == text => Ok(()),
        _ => fs::write(path, text),
    }
}

//! Every Rust file is part of a program or library. The compiler ignores a file that no other file declares as a module, so its
//! tests would never run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hob_testkit::repository::root;

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Whether cargo finds this file of a crate without a declaration.
fn is_known_to_cargo(file: &Path) -> bool {
    let parts: Vec<&str> = file.iter().map(|part| part.to_str().unwrap()).collect();
    matches!(
        parts[..],
        ["src", "lib.rs" | "main.rs"] | ["tests" | "examples", _] | ["tests" | "examples", _, "main.rs"]
    )
}

/// Whether a file around this one, or the one with the name of its directory, declares it as a module.
fn is_declared(file: &Path) -> bool {
    let module = if file.ends_with("mod.rs") { file.parent().unwrap() } else { &file.with_extension("") };
    let name = module.file_name().unwrap().to_str().unwrap();
    let directory = module.parent().unwrap();
    let mut parents = vec![directory.with_extension("rs")];
    parents.extend(["mod.rs", "lib.rs", "main.rs"].map(|parent| directory.join(parent)));
    parents.iter().any(|parent| std::fs::read_to_string(parent).is_ok_and(|text| declares(&text, name)))
}

fn declares(text: &str, name: &str) -> bool {
    let declaration = format!("mod {name};");
    text.lines().map(str::trim).any(|line| {
        let before = line.strip_suffix(&declaration);
        before.is_some_and(|before| before.is_empty() || before.starts_with("pub"))
    })
}

/// The files that this one names in `#[path]`.
fn named_paths(file: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(file).unwrap();
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]"));
    names.map(|name| file.parent().unwrap().join(name).canonicalize().unwrap()).collect()
}

#[test]
fn every_file_is_part_of_a_program_or_library() {
    let crates = root().join("crates");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        for part in ["src", "tests", "examples"] {
            let directory = entry.as_ref().unwrap().path().join(part);
            if directory.is_dir() {
                rust_files(&directory, &mut files);
            }
        }
    }
    assert!(files.len() > 1_000, "only {} files were found", files.len());
    let named: BTreeSet<PathBuf> = files.iter().flat_map(|file| named_paths(file)).collect();
    files.retain(|file| {
        let of_crate: PathBuf = file.strip_prefix(&crates).unwrap().iter().skip(1).collect();
        !is_known_to_cargo(&of_crate) && !named.contains(file) && !is_declared(file)
    });
    assert!(files.is_empty(), "no other file declares these as modules: {files:#?}");
}

#[test]
fn a_module_is_declared_by_its_own_line() {
    for line in ["mod cases;", "    pub mod cases;", "pub(crate) mod cases;"] {
        assert!(declares(line, "cases"), "{line}");
    }
    for line in ["mod more_cases;", "// mod cases;", "mod cases {"] {
        assert!(!declares(line, "cases"), "{line}");
    }
}

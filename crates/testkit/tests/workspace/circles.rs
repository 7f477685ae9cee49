//! No two product files of a crate import each other, directly or through others.
//!
//! Reads `use` declarations and paths that begin with `crate`, `super` or `self`. A name that a module re-exports counts as an
//! import of the file that defines it. Test modules are ignored.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use hob_testkit::repository::root;

type Modules = BTreeMap<Vec<String>, String>;

/// The product files of a crate by their module path, without comments and tests.
fn modules(source: &Path) -> Modules {
    let mut found = Modules::new();
    let mut open = vec![source.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if let Some(module) = module_of(source, &path) {
                found.insert(module, product_code(&std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

fn module_of(source: &Path, path: &Path) -> Option<Vec<String>> {
    let below: PathBuf = path.strip_prefix(source).unwrap().with_extension("");
    let mut names: Vec<String> = below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let is_test = names.iter().any(|name| name == "tests" || name.ends_with("_tests"));
    if path.extension().is_none_or(|extension| extension != "rs") || is_test {
        return None;
    }
    names.pop_if(|name| ["mod", "lib", "main"].contains(&name.as_str()));
    Some(names)
}

fn product_code(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let mut code = String::new();
    let mut rest = lines.into_iter().peekable();
    while let Some(line) = rest.next() {
        if line.trim() == "#[cfg(test)]" {
            while rest.next_if(|next| next.trim_start().starts_with("#[")).is_some() {}
            if rest.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{')) {
                break;
            }
            rest.next();
            continue;
        }
        code.push_str(line);
        code.push('\n');
    }
    code
}

/// `a::{b, c::{d, e}}` as single paths.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, list)) = tree.split_once('{') else {
        return vec![tree.split(" as ").next().unwrap_or(tree).trim().to_owned()];
    };
    let list = list.strip_suffix('}').unwrap_or(list);
    let (mut parts, mut depth) = (vec![String::new()], 0);
    for character in list.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().unwrap().push(character);
    }
    let parts = parts.iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| expand(part).into_iter().map(|path| format!("{before}{path}"))).collect()
}

/// The `use` declarations of a file: private ones, and re-exports.
fn declarations(code: &str) -> (Vec<String>, Vec<String>) {
    let (mut private, mut exported) = (Vec::new(), Vec::new());
    for declaration in code.split(';') {
        let Some((before, tree)) = declaration.rsplit_once("use ") else { continue };
        let before = before.lines().last().unwrap_or("").trim();
        let tree = tree.split_whitespace().collect::<Vec<_>>().join(" ");
        if before.is_empty() {
            private.extend(expand(&tree));
        } else if before.starts_with("pub") {
            exported.extend(expand(&tree));
        }
    }
    (private, exported)
}

/// Paths in expressions and types, such as `super::error::Error`.
fn inline_paths(code: &str) -> Vec<String> {
    let is_part = |character: char| character.is_alphanumeric() || character == '_' || character == ':';
    let words = code.split(|character| !is_part(character));
    let begins = ["crate::", "super::", "self::"];
    // `super::{a, b}` is a declaration, and ends with the colons here.
    let is_path = |word: &&str| begins.iter().any(|start| word.starts_with(start)) && !word.ends_with(':');
    words.filter(is_path).map(str::to_owned).collect()
}

struct Crate {
    modules: Modules,
    /// What each module re-exports, by name.
    exports: HashMap<Vec<String>, HashMap<String, String>>,
}

impl Crate {
    fn read(source: &Path) -> Self {
        let modules = modules(source);
        let exports = modules
            .iter()
            .map(|(module, code)| {
                let exported = declarations(code).1.into_iter();
                let named = exported.map(|path| (path.rsplit("::").next().unwrap_or("").to_owned(), path));
                (module.clone(), named.collect())
            })
            .collect();
        Crate { modules, exports }
    }

    /// The file that defines what `path` names in `module`.
    fn target(&self, module: &[String], path: &str, depth: usize) -> Option<Vec<String>> {
        let mut names: Vec<&str> = path.split("::").collect();
        let mut at = match names[0] {
            "crate" => Vec::new(),
            "self" | "super" => module.to_vec(),
            child => {
                let mut below = module.to_vec();
                below.push(child.to_owned());
                self.modules.contains_key(&below).then(|| module.to_vec())?
            }
        };
        while names.first().is_some_and(|name| ["crate", "self", "super"].contains(name)) {
            if names.remove(0) == "super" {
                at.pop();
            }
        }
        for name in names {
            let mut below = at.clone();
            below.push(name.to_owned());
            if self.modules.contains_key(&below) {
                at = below;
            } else if let Some(exported) = self.exports.get(&at).and_then(|exports| exports.get(name))
                && depth < 5
            {
                return self.target(&at, exported, depth + 1).or(Some(at));
            } else {
                break;
            }
        }
        self.modules.contains_key(&at).then_some(at)
    }

    fn imports(&self) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
        let mut imports = BTreeMap::new();
        for (module, code) in &self.modules {
            let mut paths = declarations(code).0;
            paths.extend(inline_paths(code));
            let targets = paths.iter().filter_map(|path| self.target(module, path, 0));
            imports.insert(module.clone(), targets.filter(|target| target != module).collect());
        }
        imports
    }

    /// Groups of files that reach each other.
    fn circles(&self) -> Vec<Vec<String>> {
        let imports = self.imports();
        let reach = |start: &Vec<String>| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(module) = open.pop() {
                open.extend(imports[module].iter().filter(|next| seen.insert((*next).clone())));
            }
            seen
        };
        let reached: BTreeMap<_, _> = imports.keys().map(|module| (module, reach(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, seen) in &reached {
            if seen.contains(*module) {
                let group = seen.iter().filter(|other| reached[*other].contains(*module));
                circles.insert(group.map(|module| module.join("/")).collect::<Vec<String>>());
            }
        }
        circles.into_iter().collect()
    }
}

#[test]
fn files_of_a_crate_do_not_import_each_other_in_circles() {
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let circles = Crate::read(&path.join("src")).circles();
        wrong.extend(circles.iter().map(|circle| format!("{name}: {}", circle.join(", "))));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

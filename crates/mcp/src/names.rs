//! Names that every engine accepts: letters, digits, `_` and `-`, at most 64 characters, unique.

use std::collections::HashSet;

/// The longest name that OpenAI accepts.
const MAX_NAME: usize = 64;

/// Leaves at least 30 characters to the tool.
const MAX_PREFIX: usize = 32;

const SEPARATOR: &str = "__";

/// The prefixes of the tools' names, one for each server, in order.
///
/// A prefix never contains the separator and never ends with `_`, so tools of different servers never have the same name.
pub fn prefixes<'a>(servers: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    servers
        .into_iter()
        .map(|name| {
            let words: Vec<String> =
                clean(name).split('_').filter(|word| !word.is_empty()).map(str::to_owned).collect();
            let joined = words.join("_");
            unique(if joined.is_empty() { "server" } else { &joined }, MAX_PREFIX, &mut taken)
        })
        .collect()
}

/// The names of the tools of one server, in order.
pub fn tool_names<'a>(prefix: &str, tools: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken = HashSet::new();
    let room = MAX_NAME - prefix.len() - SEPARATOR.len();
    tools
        .into_iter()
        .map(|tool| {
            let cleaned = clean(tool);
            let name = unique(if cleaned.is_empty() { "tool" } else { &cleaned }, room, &mut taken);
            format!("{prefix}{SEPARATOR}{name}")
        })
        .collect()
}

fn clean(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' })
        .collect()
}

/// The name, cut to `room`, with a number if it is taken.
fn unique(name: &str, room: usize, taken: &mut HashSet<String>) -> String {
    let mut candidate = cut(name, room).to_owned();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        let ending = format!("-{number}");
        candidate = format!("{}{ending}", cut(name, room - ending.len()));
        number += 1;
    }
    candidate
}

/// Cuts an ASCII name, without `_` at the end.
fn cut(name: &str, room: usize) -> &str {
    let cut = &name[..name.len().min(room)];
    if cut.len() < name.len() { cut.trim_end_matches('_') } else { cut }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_valid_name_is_unchanged() {
        assert_eq!(prefixes(["files", "git-hub"]), ["files", "git-hub"]);
        assert_eq!(tool_names("files", ["read_file", "list"]), ["files__read_file", "files__list"]);
    }

    #[test]
    fn what_engines_refuse_is_replaced() {
        assert_eq!(prefixes(["my server", "äöü", "a.b", "a/b"]), ["my_server", "server", "a_b", "a_b-2"]);
        assert_eq!(tool_names("s", ["a.b", "a/b", "日本", ""]), ["s__a_b", "s__a_b-2", "s____", "s__tool"]);
    }

    #[test]
    fn long_names_are_cut_and_stay_unique() {
        let long = "x".repeat(100);
        let names = tool_names("s", [long.as_str(), long.as_str()]);
        assert_eq!(names, [format!("s__{}", "x".repeat(61)), format!("s__{}-2", "x".repeat(59))]);
    }

    proptest! {
        #[test]
        fn every_name_is_valid_and_unique(
            servers in prop::collection::vec(("[a_.ü-]{0,40}", prop::collection::vec("[a_.ü-]{0,70}", 0..6)), 0..6)
        ) {
            let prefixes = prefixes(servers.iter().map(|(name, _)| name.as_str()));
            let mut seen = HashSet::new();
            for (prefix, (_, tools)) in prefixes.iter().zip(&servers) {
                for name in tool_names(prefix, tools.iter().map(String::as_str)) {
                    prop_assert!(name.len() <= MAX_NAME);
                    prop_assert!(name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter)));
                    prop_assert!(seen.insert(name.clone()), "twice: {}", name);
                }
            }
        }
    }
}

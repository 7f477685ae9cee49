//! Keeps `docs/threat-model.md` true: every file and every test that it names exists.

use hob_testkit::repository::root;

/// What the page says in backticks, where it is the path of a file.
fn named_paths(page: &str) -> Vec<&str> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|words| is_path(words)).collect()
}

fn is_path(words: &str) -> bool {
    ["crates/", "packaging/", "tests/"].iter().any(|start| words.starts_with(start)) || words == "deny.toml"
}

#[test]
fn every_file_and_every_test_of_the_threat_model_exists() {
    let page = std::fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let paths = named_paths(&page);
    assert!(paths.len() > 50, "the page names the files of its controls: {paths:?}");
    for path in paths {
        let (file, test) = path.split_once("::").unwrap_or((path, ""));
        let text = std::fs::read_to_string(root().join(file))
            .unwrap_or_else(|error| panic!("docs/threat-model.md names {file}: {error}"));
        let is_there = test.is_empty() || text.contains(&format!("fn {test}("));
        assert!(is_there, "docs/threat-model.md names the test {test}, which is not in {file}");
    }
}

/// A control is only as good as what shows that it works.
#[test]
fn every_control_of_the_threat_model_names_a_file() {
    let page = std::fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let (_, controls) = page.split_once("\n## Controls\n").unwrap();
    let (controls, _) = controls.split_once("\n## The OWASP list").unwrap();
    let rows = controls.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Control"));
    for row in rows.filter(|row| !row.starts_with("| ---")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        assert_eq!(cells.len(), 4, "a control has four cells: {row}");
        assert!(!named_paths(cells[3]).is_empty(), "a control names its file: {row}");
    }
}

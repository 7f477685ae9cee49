//! Keeps `docs/map.md` true: every feature has one row, and every file and every test it names exists.

use std::collections::HashSet;

use hob_testkit::repository::root;

/// A row of a table of the map: the feature, the files that do it, the tests that show it.
struct Row {
    feature: String,
    files: Vec<String>,
    tests: Vec<String>,
}

/// The words between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn rows() -> Vec<Row> {
    let map = std::fs::read_to_string(root().join("docs/map.md")).unwrap();
    map.lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| Feature") && !line.starts_with("| ---"))
        .map(|line| {
            // A pipe inside a cell is written `\|`.
            let line = line.replace("\\|", "¦");
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 3, "a row of the map has three cells: {line}");
            Row { feature: cells[0].to_owned(), files: quoted(cells[1]), tests: quoted(cells[2]) }
        })
        .collect()
}

#[test]
fn every_feature_has_one_row() {
    let mut known = HashSet::new();
    for row in rows() {
        assert!(known.insert(row.feature.clone()), "'{}' has two rows", row.feature);
    }
}

#[test]
fn every_file_the_map_names_exists() {
    for row in rows() {
        let later = row.files.is_empty();
        assert_eq!(
            later,
            row.tests.is_empty(),
            "'{}' has files without tests or tests without files",
            row.feature
        );
        for file in row.files {
            assert!(root().join(&file).exists(), "'{}' names {file}, which is not there", row.feature);
        }
    }
}

/// A test is written `path/to/file.rs::name_of_the_test`, or as the path of a file that is itself a test.
#[test]
fn every_test_the_map_names_exists() {
    for row in rows() {
        for test in row.tests {
            let (file, name) = test.split_once("::").unwrap_or((&test, ""));
            let text = std::fs::read_to_string(root().join(file))
                .unwrap_or_else(|error| panic!("'{}' names {file}: {error}", row.feature));
            let marks = ["#[test]", "#[tokio::test", "on_both_databases!"];
            let is_script = file.ends_with(".py") || file.ends_with(".test.mjs");
            let tests = marks.iter().any(|mark| text.contains(mark)) || is_script;
            assert!(tests, "'{}' names {file}, which has no tests", row.feature);
            let there = name.is_empty()
                || text.contains(&format!("fn {name}("))
                || text.contains(&format!("def {name}("));
            assert!(there, "'{}' names the test {name}, which is not in {file}", row.feature);
        }
    }
}

#[test]
fn what_comes_later_says_so() {
    let map = std::fs::read_to_string(root().join("docs/map.md")).unwrap();
    for row in rows().iter().filter(|row| row.files.is_empty()) {
        let line = map.lines().find(|line| line.contains(&row.feature)).unwrap();
        assert!(line.contains("later:"), "'{}' has no file and does not say what brings it", row.feature);
    }
}

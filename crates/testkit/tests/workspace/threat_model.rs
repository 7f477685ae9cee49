//! Keeps `docs/threat-model.md` true: every file and every test that it names exists.

use hob_testkit::repository::{assert_named_paths_exist, named_paths, root};

#[test]
fn every_file_and_every_test_of_the_threat_model_exists() {
    let page = std::fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let paths = named_paths(&page);
    assert!(paths.len() > 50, "the page names the files of its controls: {paths:?}");
    assert_named_paths_exist(&page);
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

//! Keeps `docs/clients` true: the programs on its pages are the programs that `./dev test --clients` runs, letter by letter.
//!
//! A page shows a program in the fence below a line such as `<!-- tests/clients/programs/langchain.py -->`. After a change of a
//! program, `HOB_WRITE_DOCS=1 cargo nextest run -p hob-testkit programs` brings the pages up to date.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use hob_testkit::repository::root;

const PROGRAMS: &str = "tests/clients/programs";

fn files_in(directory: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(root().join(directory)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn pages() -> Vec<PathBuf> {
    let pages = files_in("docs/clients").into_iter();
    pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")).collect()
}

/// The file whose text the fence below this line shows.
fn shown_file(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->").filter(|path| path.starts_with(PROGRAMS))
}

/// The page as it should be, and the files that it shows.
fn as_it_should_be(text: &str) -> (String, Vec<String>) {
    let (mut page, mut shown) = (String::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        page += &format!("{line}\n");
        let Some(file) = shown_file(line) else { continue };
        let fence = lines.next().filter(|fence| fence.starts_with("```")).unwrap_or_else(|| {
            panic!("there is no fence below '{line}'");
        });
        assert!(lines.by_ref().any(|line| line == "```"), "the fence below '{line}' has no end");
        let program = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        page += &format!("{fence}\n{program}```\n");
        shown.push(file.to_owned());
    }
    (page, shown)
}

#[test]
fn the_programs_on_the_pages_are_those_that_are_run() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let (wanted, _) = as_it_should_be(&text);
        if std::env::var_os("HOB_WRITE_DOCS").is_some() {
            fs::write(&page, &wanted).unwrap();
        } else {
            let name = page.file_name().unwrap().to_string_lossy().into_owned();
            assert!(
                wanted == text,
                "docs/clients/{name} shows another program than {PROGRAMS} has. Run: HOB_WRITE_DOCS=1 cargo nextest run -p \
                 hob-testkit programs"
            );
        }
    }
}

#[test]
fn every_program_is_on_a_page_and_every_page_shows_one() {
    let programs: BTreeSet<String> = files_in(PROGRAMS)
        .iter()
        .map(|path| format!("{PROGRAMS}/{}", path.file_name().unwrap().to_string_lossy()))
        .collect();
    let mut shown = BTreeSet::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let (_, files) = as_it_should_be(&text);
        let is_tried = !files.is_empty() || text.contains("The automated tests do not include it");
        assert!(is_tried || page.ends_with("README.md"), "{} shows no program", page.display());
        shown.extend(files);
    }
    assert_eq!(shown, programs);
}

/// The list of clients must not forget a program.
#[test]
fn every_program_is_run() {
    let clients = fs::read_to_string(root().join("tests/clients/clients.py")).unwrap();
    for program in files_in(PROGRAMS) {
        let name = program.file_name().unwrap().to_string_lossy().into_owned();
        assert!(clients.contains(&format!("\"{name}\"")), "tests/clients/clients.py does not run {name}");
    }
}

//! Lists of documents, skipped files and folders, in every database of the memory.

use std::time::Duration;

use super::tests::{NewMemory, chunk, postgres, source, sqlite};
use super::*;
use crate::types::IndexWarning;

hob_testkit::on_both_databases!(
    sqlite, postgres:
    documents_are_listed_in_pages_with_the_collections_of_the_caller,
    recent_documents_are_those_whose_files_changed_lately,
    skipped_files_are_replaced_by_the_next_run_over_their_directory,
    a_collection_is_summed_up_also_before_it_has_documents,
    a_folder_is_saved_once_and_claimed_by_one_process_at_a_time,
);

fn name(text: &str) -> CollectionName {
    CollectionName::parse(text).unwrap()
}

fn in_collection(collection: &str, path: &str, chunks: usize) -> NewSource {
    NewSource {
        collection: name(collection),
        ..source(path, (0..chunks).map(|_| chunk("", "apple")).collect())
    }
}

fn page(limit: usize) -> CatalogPage {
    CatalogPage { limit, ..CatalogPage::default() }
}

fn warning(path: &str, reason: &str) -> IndexWarning {
    IndexWarning { path: path.into(), reason: reason.to_owned() }
}

fn recent_documents_are_those_whose_files_changed_lately(new: NewMemory) {
    let memory = new();
    let nanoseconds = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        i64::try_from(since).unwrap()
    };
    let changed = |path: &str, collection: &str, modified: i64| {
        let plain = in_collection(collection, path, 2);
        NewSource { stamp: SourceStamp { modified, ..plain.stamp }, ..plain }
    };
    let sources = [
        changed("/old.md", "default", nanoseconds(at(0))),
        changed("/new.md", "default", nanoseconds(at(500))),
        changed("/newest.md", "team", nanoseconds(at(900))),
        // Without a time of its own: when it was saved.
        changed("note:1", "default", 0),
        NewSource { chunks: Vec::new(), ..changed("/empty.pdf", "default", nanoseconds(at(950))) },
    ];
    memory.replace(&sources, at(700)).unwrap();
    let recent = |collections: &CollectionSet, limit: usize| {
        let found = memory.recent(collections, at(500), limit).unwrap();
        found.into_iter().map(|one| (one.path, one.text)).collect::<Vec<_>>()
    };
    let row = |path: &str| (path.to_owned(), "apple".to_owned());
    assert_eq!(recent(&CollectionSet::All, 10), [row("/newest.md"), row("note:1"), row("/new.md")]);
    assert_eq!(recent(&CollectionSet::All, 1), [row("/newest.md")]);
    assert_eq!(recent(&CollectionSet::of(name("team")), 10), [row("/newest.md")]);
}

/// A moment that is not the present one.
fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds)
}

fn documents_are_listed_in_pages_with_the_collections_of_the_caller(new: NewMemory) {
    let memory = new();
    let sources = [
        in_collection("team", "/a/Übung.md", 2),
        in_collection("default", "/a/b.md", 1),
        in_collection("team", "/c.md", 1),
        // Without text.
        in_collection("team", "/empty.pdf", 0),
    ];
    memory.replace(&sources, at(0)).unwrap();
    memory.add_to_collection(&name("other"), &["/c.md".into()]).unwrap();
    let listed = |collections: &CollectionSet, page: &CatalogPage| {
        let listed = memory.documents(collections, page).unwrap();
        listed.into_iter().map(|one| (one.path, one.collections)).collect::<Vec<_>>()
    };
    let row = |path: &str, collections: &[&str]| {
        (path.to_owned(), collections.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    let team = CollectionSet::of(name("team"));
    let all = [row("/a/b.md", &["default"]), row("/a/Übung.md", &["team"]), row("/c.md", &["other", "team"])];
    assert_eq!(listed(&CollectionSet::All, &page(9)), all);
    assert_eq!(listed(&team, &page(9)), [row("/a/Übung.md", &["team"]), row("/c.md", &["team"])]);
    assert_eq!(listed(&CollectionSet::none(), &page(9)), []);
    let after = |path: &str| CatalogPage {
        after: CatalogPosition { path: path.to_owned(), ..CatalogPosition::default() },
        ..page(1)
    };
    assert_eq!(listed(&CollectionSet::All, &after("")), all[..1]);
    assert_eq!(listed(&CollectionSet::All, &after("/a/b.md")), all[1..2]);
    assert_eq!(listed(&CollectionSet::All, &after("/c.md")), []);
    let with = |text: &str| CatalogPage { text: text.to_owned(), ..page(9) };
    assert_eq!(listed(&CollectionSet::All, &with(" ÜBUNG.MD ")), all[1..2]);
    assert_eq!(listed(&CollectionSet::All, &with("A TITLE")).len(), 3, "titles count");
    assert_eq!(listed(&CollectionSet::All, &with("%")), []);
    let below = CatalogPage { below: Some("/a".to_owned()), ..page(9) };
    assert_eq!(listed(&CollectionSet::All, &below), all[..2]);
    let first = &memory.documents(&team, &page(1)).unwrap()[0];
    assert_eq!(
        (first.chunks, first.size, first.indexed, first.title.as_str()),
        (2, 11, Moment::of(at(0)), "a title")
    );
    let mut paths = memory.paths_in(&name("team"), 9).unwrap();
    paths.sort();
    assert_eq!(paths, ["/a/Übung.md", "/c.md", "/empty.pdf"]);
}

fn skipped_files_are_replaced_by_the_next_run_over_their_directory(new: NewMemory) {
    let memory = new();
    let (team, other) = (name("team"), name("other"));
    let twice = [warning("/a/x", "one"), warning("/a/x", "two"), warning("/a/y\0", "a\0b")];
    memory.replace_skipped(&team, "/a", &[], &twice, at(0)).unwrap();
    memory.replace_skipped(&team, "/b", &[], &[warning("/b/x", "three")], at(0)).unwrap();
    memory.replace_skipped(&other, "/a", &[], &[warning("/a/x", "four")], at(0)).unwrap();
    let skipped = |collections: &CollectionSet, page: &CatalogPage| {
        let skipped = memory.skipped(collections, page).unwrap();
        skipped.into_iter().map(|one| (one.path, one.collection)).collect::<Vec<_>>()
    };
    let row = |path: &str, collection: &str| (path.to_owned(), collection.to_owned());
    let all = [row("/a/x", "other"), row("/a/x", "team"), row("/a/y ", "team"), row("/b/x", "team")];
    assert_eq!(skipped(&CollectionSet::All, &page(9)), all);
    assert_eq!(skipped(&CollectionSet::of(other.clone()), &page(9)), all[..1]);
    let after = CatalogPosition { path: "/a/x".into(), collection: "other".into() };
    assert_eq!(skipped(&CollectionSet::All, &CatalogPage { after, ..page(2) }), all[1..3]);
    let below = CatalogPage { below: Some("/b".to_owned()), ..page(9) };
    assert_eq!(skipped(&CollectionSet::All, &below), all[3..]);

    memory.replace_skipped(&team, "/a", &[], &[warning("/a/z", "five")], at(7)).unwrap();
    assert_eq!(
        skipped(&CollectionSet::of(team.clone()), &page(9)),
        [row("/a/z", "team"), row("/b/x", "team")]
    );
    let last = memory.skipped(&CollectionSet::of(team.clone()), &page(1)).unwrap().remove(0);
    assert_eq!((last.reason.as_str(), last.seen), ("five", Moment::of(at(7))));
    memory.remove_skipped(&CollectionSet::All, Some("/a"), &[]).unwrap();
    assert_eq!(skipped(&CollectionSet::All, &page(9)), all[3..]);
    memory.remove_skipped(&CollectionSet::of(other), None, &[]).unwrap();
    assert_eq!(skipped(&CollectionSet::All, &page(9)), all[3..]);
    memory.remove_skipped(&CollectionSet::of(team.clone()), None, &[]).unwrap();
    assert_eq!(skipped(&CollectionSet::All, &page(9)), []);

    let (spared, at_ends) = (["/a/b".to_owned()], [warning("/a/b/x", "one"), warning("/a/bc", "two")]);
    memory.replace_skipped(&team, "/a", &[], &at_ends, at(0)).unwrap();
    memory.replace_skipped(&team, "/a", &spared, &[warning("/a/c", "three")], at(0)).unwrap();
    assert_eq!(skipped(&CollectionSet::All, &page(9)), [row("/a/b/x", "team"), row("/a/c", "team")]);
    memory.remove_skipped(&CollectionSet::of(team), Some("/a"), &spared).unwrap();
    assert_eq!(skipped(&CollectionSet::All, &page(9)), [row("/a/b/x", "team")]);
}

fn a_collection_is_summed_up_also_before_it_has_documents(new: NewMemory) {
    let memory = new();
    memory.replace(&[in_collection("team", "/a", 2), in_collection("team", "/empty", 0)], at(0)).unwrap();
    memory.replace(&[in_collection("team", "/b", 1)], at(5)).unwrap();
    memory.replace_skipped(&name("binary"), "/c", &[], &[warning("/c", "it is binary")], at(0)).unwrap();
    let folder = NewFolder { path: "/d".into(), collection: name("folder"), watched: false };
    memory.save_folder(&folder, at(0)).unwrap();
    let summary = |name: &str, documents: u64, chunks: u64, skipped: u64, indexed| CollectionSummary {
        name: name.to_owned(),
        documents,
        chunks,
        size: documents * 11,
        skipped,
        indexed,
    };
    let expected = [
        summary("binary", 0, 0, 1, None),
        summary("folder", 0, 0, 0, None),
        summary("team", 2, 3, 0, Some(Moment::of(at(5)))),
    ];
    assert_eq!(memory.collections(&CollectionSet::All).unwrap(), expected);
    assert_eq!(memory.collections(&CollectionSet::of(name("team"))).unwrap(), expected[2..]);
    assert_eq!(memory.collections(&CollectionSet::none()).unwrap(), []);
}

fn a_folder_is_saved_once_and_claimed_by_one_process_at_a_time(new: NewMemory) {
    let memory = new();
    let new = |watched| NewFolder { path: "/notes".into(), collection: name("team"), watched };
    let folder = memory.save_folder(&new(false), at(0)).unwrap();
    assert_eq!(
        folder,
        DocumentFolder {
            id: folder.id,
            path: "/notes".into(),
            collection: "team".into(),
            watched: false,
            added: Moment::of(at(0)),
            checked: None,
            fault: None,
            due: Moment::of(at(0)),
        }
    );
    assert!(!memory.claim_folder(folder.id, at(9), at(20)).unwrap(), "it is not watched");
    let again = memory.save_folder(&new(true), at(1)).unwrap();
    assert_eq!((again.id, again.watched, again.added), (folder.id, true, Moment::of(at(0))));
    assert!(!memory.claim_folder(folder.id, at(0), at(20)).unwrap(), "it is not due");
    assert!(memory.claim_folder(folder.id, at(1), at(20)).unwrap());
    assert!(!memory.claim_folder(folder.id, at(19), at(40)).unwrap(), "another process has it");
    assert!(memory.hold_folder(folder.id, at(30)).unwrap());
    assert!(!memory.claim_folder(folder.id, at(29), at(40)).unwrap(), "and still has it");
    let check = FolderCheck { at: at(25), fault: Some("it is away".into()), next: at(26) };
    assert!(memory.finish_folder(folder.id, &check).unwrap());
    let known = memory.folders().unwrap();
    assert_eq!(
        (known.len(), known[0].checked, known[0].fault.as_deref()),
        (1, Some(Moment::of(at(25))), Some("it is away"))
    );
    assert!(memory.claim_folder(folder.id, at(26), at(40)).unwrap());

    let still = memory.set_watched(folder.id, false, at(50)).unwrap().unwrap();
    assert_eq!((still.watched, still.due), (false, Moment::of(at(50))));
    assert_eq!(memory.set_watched(folder.id + 1, true, at(50)).unwrap(), None);
    assert_eq!(memory.remove_folder(folder.id).unwrap(), Some(still));
    assert_eq!(memory.remove_folder(folder.id).unwrap(), None);
    assert!(!memory.hold_folder(folder.id, at(60)).unwrap(), "it does not exist any more");
    assert!(!memory.finish_folder(folder.id, &check).unwrap());
    assert_eq!(memory.folders().unwrap(), []);
}

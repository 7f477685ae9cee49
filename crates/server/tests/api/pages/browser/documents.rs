//! The page of documents in a browser.

use hob_config::ServerConfig;
use hob_keys::KeyRole;
use hob_testkit::Outside;
use serde_json::{Value, json};

use super::axe::{assert_accessible, assert_accessible_on_all_screens};
use super::chromium::{Browser, Device};
use crate::admin::documents::DocumentServer;
use crate::key_fixtures::{create_key, get, post};

const ENTER: &str = "\u{e007}";

const MAKE_FILE: &str = "const data = new DataTransfer(); data.items.add(new File([{text}], {name}));";

/// Chooses a file in the field.
async fn choose_file(browser: &Browser, name: &str, text: &str) {
    let make =
        MAKE_FILE.replace("{text}", &json!(text).to_string()).replace("{name}", &json!(name).to_string());
    let choose = "const field = document.getElementById('files'); field.files = data.files; field.dispatchEvent(new Event('change'));";
    browser.run(&format!("{make}{choose}")).await;
}

/// Drops a file on the page.
async fn drop_file(browser: &Browser, name: &str, text: &str) {
    let make =
        MAKE_FILE.replace("{text}", &json!(text).to_string()).replace("{name}", &json!(name).to_string());
    let drop = "document.getElementById('drop').dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));";
    browser.run(&format!("{make}{drop}")).await;
}

async fn use_documents_on(device: Device) {
    let server = DocumentServer::open().await;
    let browser = Browser::open(device).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("empty", "Drop files below, or add a folder").await;
    assert_eq!(browser.text("search-card").await, "");
    browser.until("liveStream.isOpen").await;

    browser.run("document.getElementById('into').value = 'team'").await;
    choose_file(&browser, "gate.md", "# Gate\n\nThe code of the gate is 4711.").await;
    browser.shows("list", "gate.md").await;
    browser.shows("list", "team · 1 passage").await;
    browser.shows("jobs", "done · team · 1 file indexed").await;
    drop_file(&browser, "door.md", "The key of the door is with Ann.").await;
    browser.shows("count", "2 documents").await;
    // What another caller adds is shown without a reload.
    server.add("team", "roof.md", b"The roof is new.").await;
    browser.shows("list", "roof.md").await;

    browser.run("document.getElementById('query').focus()").await;
    browser.press(&format!("code of the gate{ENTER}")).await;
    browser.shows("passages", "4711").await;
    browser.shows("passages", "1.00").await;
    browser.run("const field = document.getElementById('filter'); field.value = 'DOOR'; field.dispatchEvent(new Event('input'))").await;
    browser.until("document.querySelectorAll('#list > li').length === 1").await;
    browser.run("const field = document.getElementById('filter'); field.value = ''; field.dispatchEvent(new Event('input'))").await;
    browser.until("document.querySelectorAll('#list > li').length === 3").await;

    server.write("boiler.md", "The boiler is old.");
    server.write("song.bin", [0, 1, 2, 3, 0, 255]);
    browser.run("document.querySelector('#folder-form [name=path]').focus()").await;
    browser.press(&format!("{}{ENTER}", server.folder())).await;
    browser.shows("folders", &server.folder()).await;
    browser.shows("list", "boiler.md").await;
    browser.shows("skipped-card", "1 skipped file").await;
    browser.click("#skipped-title").await;
    browser.shows("skipped", "the file is binary, not text").await;
    browser.press_action(&format!("watch {}", server.folder())).await;
    browser
        .until("document.getElementById('said').textContent === 'The folder is not watched any more.'")
        .await;
    let (_, folders) = get(&server.http, "/v1/memory/folders", "").await;
    assert_eq!(folders["data"][0]["watched"], json!(false));
    browser.assert_fits_the_screen(&format!("{device:?}")).await;

    browser.press_action("forget gate.md").await;
    browser.shows("ask-title", "Forget gate.md?").await;
    browser.shows("ask-text", "Hob deletes its copy").await;
    browser.click("#ask-no").await;
    browser.press_action("forget gate.md").await;
    browser.shows("ask-title", "Forget gate.md?").await;
    browser.click("#ask-yes").await;
    browser.until("!document.getElementById('list').innerText.includes('gate.md')").await;
    // The server has answered, so that the copy is deleted.
    browser.until("document.getElementById('said').textContent === 'gate.md is forgotten.'").await;
    assert!(!server.library.uploads().join("team/gate.md").exists());

    browser.press_action("show team").await;
    browser.shows("forget-collection", "Forget team").await;
    browser.click("#forget-collection").await;
    browser.shows("ask-title", "Forget the collection team?").await;
    browser.click("#ask-yes").await;
    browser.shows("empty", "No documents yet").await;
    assert!(server.notes.path().join("boiler.md").exists(), "files of the user stay");
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn documents_are_added_found_and_forgotten_on_a_desktop() {
    use_documents_on(Device::DESKTOP).await;
}

#[tokio::test]
async fn documents_are_added_found_and_forgotten_on_a_phone() {
    use_documents_on(Device::PHONE).await;
}

/// Searches, as a user does.
async fn search(browser: &Browser, text: &str) {
    let search =
        "const field = document.getElementById('query'); field.value = {text}; field.form.requestSubmit();";
    browser.run(&search.replace("{text}", &json!(text).to_string())).await;
}

#[tokio::test]
async fn a_second_search_does_not_wait_for_the_first() {
    let server = DocumentServer::open().await;
    server.add("team", "gate.md", b"The code of the gate is 4711.").await;
    server.add("team", "door.md", b"The key of the door is with Ann.").await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("list", "door.md").await;
    browser.hold_answers("POST", "v1/memory/search").await;
    search(&browser, "gate").await;
    browser.an_answer_is_held().await;
    search(&browser, "door").await;
    browser.shows("passages", "with Ann").await;
    browser.release_answers().await;
    let shown = browser.text("passages").await;
    assert!(shown.contains("with Ann") && !shown.contains("4711"), "{shown}");
}

#[tokio::test]
async fn a_list_that_arrives_behind_a_question_does_not_take_the_focus() {
    let server = DocumentServer::open().await;
    server.add("team", "gate.md", b"The code of the gate is 4711.").await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("list", "gate.md").await;
    browser.hold_answers("GET", "v1/memory/documents").await;
    browser.run("load()").await;
    browser.an_answer_is_held().await;
    // The other lists of the page have arrived.
    let others = "const done = arguments[0];
        Promise.all(['jobs', 'folders', 'skipped'].map((name) => askServer(`v1/memory/${name}`))).then(() => done());";
    browser.run_async(others).await;
    browser.run("document.querySelector('#list button').focus()").await;
    browser.press_action("forget gate.md").await;
    browser.shows("ask-title", "Forget gate.md?").await;
    browser.release_answers().await;
    browser.click("#ask-no").await;
    browser.until("document.activeElement.dataset.action === 'forget gate.md'").await;
}

#[tokio::test]
async fn a_document_in_two_collections_counts_once() {
    let server = DocumentServer::open().await;
    server.write("boiler.md", "The boiler is old.");
    for collection in ["team", "house"] {
        let folder = json!({ "path": server.folder(), "collection": collection });
        let (status, added) = post(&server.http, "/v1/memory/folders", "", folder).await;
        assert_eq!(status, 202, "{added}");
        server.finished(&added["job"]).await;
    }
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("list", "1 passage · 18\u{a0}B").await;
    browser.shows("count", "1 document, 1 passage").await;
}

#[tokio::test]
async fn a_file_that_is_added_does_not_hide_why_another_was_not() {
    let server = DocumentServer::open().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("empty", "No documents yet").await;
    browser.hold_answers("POST", "v1/memory/documents").await;
    choose_file(&browser, "gate.md", "The code of the gate is 4711.").await;
    browser.an_answer_is_held().await;
    drop_file(&browser, "server.pem", "text").await;
    browser.shows("add-fault", "server.pem: a file with the name of a key").await;
    browser.release_answers().await;
    let fault = browser.text("add-fault").await;
    assert!(fault.contains("server.pem: a file with the name of a key"), "{fault}");
    // The next files are a new attempt.
    browser.until("sending.count === 0").await;
    drop_file(&browser, "door.md", "The key of the door is with Ann.").await;
    browser.until("document.getElementById('add-fault').textContent === ''").await;
}

#[tokio::test]
async fn what_cannot_be_added_is_said() {
    let server = DocumentServer::open().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("empty", "No documents yet").await;
    choose_file(&browser, "server.pem", "text").await;
    browser
        .shows("add-fault", "server.pem: a file with the name of a key or password file is not stored")
        .await;
    choose_file(&browser, "empty.md", "").await;
    browser.shows("add-fault", "empty.md: the file is empty").await;
    browser.run("document.querySelector('#folder-form [name=path]').focus()").await;
    browser.press(&format!("notes{ENTER}")).await;
    browser.shows("folder-fault", "write the whole path of a folder").await;
    assert_eq!(browser.run("return document.activeElement.name").await, json!("path"));
    browser.shows("empty", "No documents yet").await;
}

#[tokio::test]
async fn a_member_sees_its_collections_and_what_its_key_allows() {
    let server = DocumentServer::open().await;
    server.add("team", "team.md", b"Of the team.").await;
    server.add("default", "own.md", b"Of the owner.").await;
    let ana = server.member("ana", json!({ "memory": ["team"], "reach": "act" })).await;
    let ben = server.member("ben", json!({ "memory": ["team"] })).await;
    let eva = server.member("eva", json!({})).await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("list", "own.md").await;
    let visit = async |key: &str| {
        browser.run(&format!("sessionStorage.setItem('hob-api-key', {key:?})")).await;
        browser.reload().await;
    };
    visit(&ana).await;
    browser.shows("list", "team.md").await;
    assert!(!browser.text("list").await.contains("own.md"));
    assert_eq!(browser.run("return document.querySelectorAll('#list button').length").await, json!(0));
    assert_eq!(
        (browser.text("folder-form").await, browser.text("forget-collection").await),
        (String::new(), String::new())
    );
    browser.until("liveStream.isOpen").await;
    choose_file(&browser, "more.md", "More of the team.").await;
    browser.shows("list", "more.md").await;
    visit(&ben).await;
    browser.shows("list", "more.md").await;
    assert_eq!(browser.text("add").await, "");
    visit(&eva).await;
    browser.shows("denied", "for keys that name collections of documents").await;
    assert_eq!(browser.text("documents").await, "");
}

#[tokio::test]
async fn a_stranger_reads_one_sentence() {
    let network = Outside::find();
    let config = ServerConfig { host: "0.0.0.0".into(), port: 0, ..ServerConfig::default() };
    let mut server = DocumentServer::with(config).await;
    server.http.address.set_ip(network.address());
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("denied", "This page is for the owner").await;
    assert_eq!(browser.text("documents").await, "");
}

#[tokio::test]
async fn an_owner_elsewhere_reads_where_folders_are_added() {
    let network = Outside::find();
    let config = ServerConfig { host: "0.0.0.0".into(), port: 0, ..ServerConfig::default() };
    let mut server = DocumentServer::with(config).await;
    let eva = create_key(&server.keys, "eva", KeyRole::Owner, json!({})).await;
    server.http.address.set_ip(network.address());
    let browser = Browser::open(Device::PHONE).await;
    browser.go(&server.http.url("/documents")).await;
    browser.run(&format!("sessionStorage.setItem('hob-api-key', {eva:?})")).await;
    browser.reload().await;
    browser.shows("folder-elsewhere", "only on the machine that runs Hob").await;
    assert_eq!(browser.text("folder-form").await, "");
}

#[tokio::test]
async fn hostile_texts_are_shown_as_text() {
    let server = DocumentServer::open().await;
    server
        .add(
            "team",
            "page.md",
            b"# <img src=x onerror=\"document.title='broken in'\">\n\nThe <b>gate</b> is open.",
        )
        .await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("list", "page.md").await;
    browser.run("document.getElementById('query').focus()").await;
    browser.press(&format!("gate{ENTER}")).await;
    browser.shows("passages", "gate").await;
    assert_eq!(browser.run("return document.querySelectorAll('main img, main b').length").await, json!(0));
    assert_eq!(browser.run("return document.title").await, Value::from("Hob: documents"));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test]
async fn the_page_passes_the_accessibility_check() {
    let server = DocumentServer::open().await;
    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.http.url("/documents")).await;
    browser.shows("empty", "No documents yet").await;
    assert_accessible(&browser, "nothing is indexed").await;
    browser.until("liveStream.isOpen").await;
    server
        .add(
            "team",
            "a-document-with-a-long-name-that-has-no-spaces-in-it-at-all-and-goes-on-and-on.md",
            b"Some text.",
        )
        .await;
    server.add("team", "photo.bin", &[0, 159, 146, 150, 0, 1]).await;
    server.write("boiler.md", "The boiler is old.");
    browser.run("document.querySelector('#folder-form [name=path]').focus()").await;
    browser.press(&format!("{}{ENTER}", server.folder())).await;
    browser.shows("list", "boiler.md").await;
    browser.run("document.getElementById('query').focus()").await;
    browser.press(&format!("boiler{ENTER}")).await;
    browser.shows("passages", "boiler").await;
    browser.click("#skipped-title").await;
    assert_accessible_on_all_screens(&browser).await;
    browser.press_action("forget boiler.md").await;
    browser.shows("ask-title", "Forget boiler.md?").await;
    assert_accessible(&browser, "a question").await;
}

//! Files that mean harm, or that no longer are what they were.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::read::samples;

fn small() -> ReadLimits {
    ReadLimits { text_bytes: 4 << 20, ..ReadLimits::default() }
}

fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    (folder, path)
}

fn read_as(name: &str, content: &[u8]) -> Result<Document, ReadError> {
    let (_folder, path) = file(name, content);
    read_file(&path, &small())
}

fn sentence(name: &str, content: &[u8]) -> String {
    read_as(name, content).unwrap_err().to_string()
}

/// Nothing here has a reason to take long, even in a slow build.
fn quickly<T>(work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = work();
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    done
}

#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let (_folder, path) = file("huge.txt", b"");
    fs::File::options().write(true).open(&path).unwrap().set_len(1 << 30).unwrap();
    let error = quickly(|| read_file(&path, &ReadLimits::default()).unwrap_err());
    assert_eq!(error.to_string(), "the file has 1073741824 bytes; the limit is 67108864");
}

#[test]
fn keys_are_never_opened() {
    // There is no such file: it was not even looked for.
    let error = read_file(Path::new("/nowhere/.env.local"), &ReadLimits::default()).unwrap_err();
    assert!(matches!(error, ReadError::Secret));
    assert!(error.is_expected());
}

#[test]
fn binary_files_are_distinguished_from_text() {
    assert!(matches!(read_as("a.txt", b"\x7fELF\0\0\0"), Err(ReadError::Binary)));
    assert!(matches!(read_as("a.md", &[0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0]), Err(ReadError::Binary)));
    assert_eq!(read_as("a.txt", b"caf\xe9 au lait").unwrap().blocks[0].text, "café au lait");
}

#[cfg(unix)]
#[test]
fn special_files_do_not_block() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo.txt");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let link = folder.path().join("link.txt");
    std::os::unix::fs::symlink(&link, &link).unwrap();
    let socket = folder.path().join("socket.txt");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let places: [(&Path, &str); 5] = [
        (&fifo, "this is a FIFO, not a file"),
        (&link, "this is a symbolic link, not a file"),
        (&socket, "this is a socket, not a file"),
        (folder.path(), "this is a directory, not a file"),
        (Path::new("/dev/zero"), "this is a device, not a file"),
    ];
    for (path, expected) in places {
        assert_eq!(quickly(|| read_file(path, &ReadLimits::default()).unwrap_err()).to_string(), expected);
    }
}

#[test]
fn a_zip_bomb_is_an_error() {
    let body = format!("<w:p><w:r><w:t>{}</w:t></w:r></w:p>", " ".repeat(256 << 20));
    let bomb = samples::docx(&body);
    drop(body);
    assert!(bomb.len() < 1 << 20);
    let said = quickly(|| sentence("bomb.docx", &bomb));
    assert!(said.contains("a ZIP bomb?"), "{said}");
}

#[test]
fn a_small_spreadsheet_cannot_become_a_large_text() {
    let long = "x".repeat(200);
    let cell = format!(
        "<table:table-cell table:number-columns-repeated=\"1000000000\"><text:p>{long}</text:p></table:table-cell>"
    );
    let row = format!("<table:table-row table:number-rows-repeated=\"1000000000\">{cell}</table:table-row>");
    let document =
        quickly(|| read_as("a.ods", &samples::odf(&format!("<table:table>{row}{row}</table:table>"))))
            .unwrap();
    assert!(document.blocks.iter().map(|block| block.text.len()).sum::<usize>() < 100 << 10);
    let bomb = samples::xlsx(&" ".repeat(256 << 20));
    let said = quickly(|| sentence("bomb.xlsx", &bomb));
    assert!(said.contains("a ZIP bomb?"), "{said}");
}

#[test]
fn many_cells_with_one_long_text_are_not_copied() {
    let long = "x".repeat(1 << 20);
    let cells = "<c t=\"s\"><v>0</v></c>".repeat(16_384);
    let bomb = samples::archive(&[
        ("xl/workbook.xml", "<workbook><sheets><sheet name=\"a\" r:id=\"r1\"/></sheets></workbook>"),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships><Relationship Id=\"r1\" Type=\"x/worksheet\" Target=\"sheet.xml\"/></Relationships>",
        ),
        ("xl/sharedStrings.xml", &format!("<sst><si><t>{long}</t></si></sst>")),
        // Without the end of the row: the copies are made before it.
        ("xl/sheet.xml", &format!("<worksheet><sheetData><row>{cells}")),
    ]);
    let said = quickly(|| sentence("a.xlsx", &bomb));
    assert_eq!(said, "the file is broken: a row of a table is too long");
}

/// A spreadsheet with one shared text and these rows.
fn xlsx_of(shared: &str, rows: &str) -> Vec<u8> {
    samples::archive(&[
        ("xl/workbook.xml", "<workbook><sheets><sheet name=\"a\" r:id=\"r1\"/></sheets></workbook>"),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships><Relationship Id=\"r1\" Type=\"x/worksheet\" Target=\"sheet.xml\"/></Relationships>",
        ),
        ("xl/sharedStrings.xml", &format!("<sst><si><t>{shared}</t></si></sst>")),
        ("xl/sheet.xml", &format!("<worksheet><sheetData>{rows}")),
    ])
}

#[test]
fn blanks_of_a_shared_text_are_removed_once() {
    // Removing them for each cell would take many minutes.
    let rows = "<row><c t=\"s\"><v>0</v></c></row>".repeat(50_000);
    let file = xlsx_of(&format!("a{}b", " ".repeat(1 << 20)), &rows);
    let document = read_as("a.xlsx", &file).unwrap();
    let rows = document.blocks.iter().filter(|block| block.kind == BlockKind::Row);
    assert_eq!(rows.flat_map(|block| block.text.lines()).filter(|line| *line == "a b").count(), 50_000);
}

#[test]
fn rows_without_an_end_count_as_text() {
    let rows = "<row><c t=\"s\"><v>0</v></c>".repeat(10);
    let read = read_as("a.xlsx", &xlsx_of(&"x".repeat(1 << 20), &rows));
    assert!(matches!(read, Err(ReadError::TooMuchText { .. })), "{:?}", read.map(|read| read.blocks.len()));
}

#[test]
fn columns_of_a_table_are_limited() {
    let file = format!("{}last\nfirst\n", ",".repeat(1 << 20));
    let document = read_as("a.csv", file.as_bytes()).unwrap();
    let texts: Vec<&str> = document.blocks.iter().map(|block| block.text.as_str()).collect();
    assert_eq!(texts, ["first"]);
}

#[test]
fn a_line_with_a_long_indentation_is_looked_at_once() {
    // Looking at it again for each line after it would take many minutes.
    let text = format!("{}x\n{}", " ".repeat(1 << 20), "y\n".repeat(200_000));
    let document = read_as("a.rs", text.as_bytes()).unwrap();
    assert_eq!(document.blocks.len(), 1);
    assert_eq!((document.blocks[0].line, document.blocks[0].end_line), (1, 200_001));
}

#[test]
fn rows_and_columns_beyond_all_numbers_do_not_overflow() {
    let cell = "<c t=\"inlineStr\"><is><t>word</t></is></c>";
    let row = format!("<row r=\"4294967295\">{cell}</row>");
    assert!(read_as("a.xlsx", &samples::xlsx(&row.repeat(3))).is_ok());
    let far = format!("<row><c r=\"{}1\"/><c/><c/>{cell}</row>", "Z".repeat(99));
    assert!(read_as("a.xlsx", &samples::xlsx(&far)).is_ok());
}

#[test]
fn elements_nested_deep_are_an_error() {
    for name in ["table:table", "text:p"] {
        let said = quickly(|| sentence("a.odt", &samples::odf(&format!("<{name}>").repeat(100_000))));
        assert!(said.ends_with("are nested too deep"), "{said}");
    }
    for piece in ["<w:tbl><w:tr><w:tc>", "<w:p>"] {
        let said = quickly(|| sentence("a.docx", &samples::docx(&piece.repeat(100_000))));
        assert!(said.ends_with("are nested too deep"), "{said}");
    }
}

#[test]
fn many_slides_with_many_relations_take_no_longer_than_their_number() {
    let number = 200_000;
    let slides: String = (0..number).map(|slide| format!("<p:sldId r:id=\"a{slide}\"/>")).collect();
    let relations: String =
        (0..number).map(|slide| format!("<Relationship Id=\"b{slide}\" Target=\"x.xml\"/>")).collect();
    let file = samples::archive(&[
        ("ppt/presentation.xml", &format!("<p:presentation>{slides}</p:presentation>")),
        ("ppt/_rels/presentation.xml.rels", &format!("<Relationships>{relations}</Relationships>")),
    ]);
    let limits = ReadLimits::default();
    let document = quickly(|| SourceFile::received("a.pptx", file).document(&limits)).unwrap();
    assert!(document.blocks.is_empty());
}

#[test]
fn entities_that_grow_are_not_resolved() {
    let lines = (1..10).map(|n| format!("<!ENTITY a{n} \"{}\">", format!("&a{};", n - 1).repeat(10)));
    let document = format!(
        "<!DOCTYPE d [<!ENTITY a0 \"lol\">{}]><w:document><w:body><w:p><w:r><w:t>&a9;</w:t></w:r></w:p></w:body></w:document>",
        lines.collect::<String>()
    );
    let said = quickly(|| sentence("bomb.docx", &samples::docx_of(&document)));
    assert_eq!(said, "the file is broken: its XML has a document type, which is not allowed");
}

#[test]
fn a_wide_table_with_short_rows_costs_no_more_than_its_text() {
    let table = format!("words\n{}\n{}\n{}", "|a".repeat(512), "|-".repeat(512), "|\n".repeat(512));
    let document = quickly(|| read_as("wide.md", table.as_bytes())).unwrap();
    let kinds: Vec<BlockKind> = document.blocks.iter().map(|block| block.kind).collect();
    assert_eq!(kinds, [BlockKind::Paragraph], "it is not parsed as a table");
}

#[test]
fn e_mails_nested_deep_are_read_up_to_the_first() {
    let nested = "Content-Type: message/rfc822\n\n".repeat(200_000);
    let mail = format!("From: a@example.org\nSubject: Outer\n{nested}Hi\n");
    assert_eq!(read_as("a.eml", mail.as_bytes()).unwrap().title.as_deref(), Some("Outer"));
    let mailbox = format!("From a Mon\n{mail}");
    assert_eq!(read_as("a.mbox", mailbox.as_bytes()).unwrap().blocks[0].text, "Outer");
}

#[test]
fn broken_documents_are_errors_that_say_so() {
    assert!(
        sentence("a.docx", b"no archive").starts_with("the file is broken: it is not a readable DOCX file")
    );
    assert_eq!(sentence("a.pdf", b"%PDF-1.7\nnothing"), "the file is broken: it is not a readable PDF");
    assert!(
        sentence("a.xlsx", b"no archive").starts_with("the file is broken: it is not a readable XLSX file")
    );
    assert_eq!(sentence("a.pptx", &samples::odf("")), "the file is broken: it has no ppt/presentation.xml");
    assert_eq!(sentence("a.mbox", b"words"), "the file is broken: it has no messages of a mailbox");
    assert_eq!(sentence("a.eml", b""), "the file is broken: it has no header of an e-mail");
    let whole = samples::docx("<w:p><w:r><w:t>text</w:t></w:r></w:p>");
    assert!(matches!(read_as("a.docx", &whole[..whole.len() / 2]), Err(ReadError::Broken { .. })));
}

#[test]
fn a_pdf_that_was_cut_off_gives_what_is_left_or_an_error() {
    let whole = samples::pdf(&[&["Some words here."]]);
    for end in (0..whole.len()).step_by(37) {
        // Either is right; hanging and panicking are not.
        let _ = quickly(|| read_as("a.pdf", &whole[..end]));
    }
}

#[test]
fn a_pdf_that_refers_to_itself_ends() {
    let page = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /XObject << /X 5 0 R >> >> >>";
    let show = "<< /Length 5 >>\nstream\n/X Do\nendstream";
    let form = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 5 0 R >> >> /Length 11 >>\nstream\n/X Do /X Do\nendstream";
    let loops = [
        // Pages that are their own children.
        vec!["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"],
        // A picture that shows itself twice.
        vec![
            "<< /Type /Catalog /Pages 2 0 R >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            page,
            show,
            form,
        ],
        // A number that is its own value.
        vec!["<< /Type /Catalog /Pages 2 0 R >>", "2 0 R"],
    ];
    for objects in loops {
        let objects = objects.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let _ = quickly(|| read_as("loop.pdf", &samples::pdf_of(&objects)));
    }
}

#[test]
fn deep_nesting_does_not_overflow_the_stack() {
    let deep = "[".repeat(1 << 20);
    assert_eq!(quickly(|| read_as("deep.json", deep.as_bytes())).unwrap().blocks.len(), 1);
    let deep = "<div><b>".repeat(1 << 17) + "word";
    assert_eq!(quickly(|| read_as("deep.html", deep.as_bytes())).unwrap().blocks[0].text, "word");
    let deep = "> ".repeat(1 << 14) + "word";
    assert!(quickly(|| read_as("deep.md", deep.as_bytes())).is_ok());
}

#[test]
fn json_beyond_the_limits_on_one_line_is_refused_or_read_at_once() {
    let text = format!("[{}0]", "1234567,".repeat(70 << 17));
    let (_folder, path) = file("long.json", text.as_bytes());
    assert!(matches!(read_file(&path, &ReadLimits::default()), Err(ReadError::TooLarge { .. })));
    // Ways to values are longer than the values here, and the text has its bound too.
    let generous = ReadLimits { file_bytes: 1 << 30, ..ReadLimits::default() };
    assert!(matches!(read_file(&path, &generous), Err(ReadError::TooMuchText { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_mutation_of_a_file_makes_a_reader_panic_or_hang(
        which in 0..9_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..24),
    ) {
        let (name, mut bytes) = match which {
            0 => ("a.pdf", samples::pdf(&[&["Some words", "and more."], &["Page two."]])),
            1 => ("a.docx", samples::docx("<w:p><w:r><w:t>text &amp; more</w:t></w:r></w:p><w:tbl><w:tr/></w:tbl>")),
            2 => ("a.eml", samples::MAIL.as_bytes().to_vec()),
            3 => ("a.xlsx", samples::xlsx(samples::XLSX_ROWS)),
            4 => ("a.pptx", samples::pptx()),
            5 => ("a.ods", samples::odf("<table:table><table:table-row><table:table-cell><text:p>x</text:p></table:table-cell></table:table-row></table:table>")),
            6 => ("a.mbox", samples::MAILBOX.as_bytes().to_vec()),
            7 => ("a.html", b"<h1>a</h1><p>b<a href=x>c</a><pre>d</pre><ul><li>e".to_vec()),
            _ => ("a.json", br#"{"a": [1, 2.5, "x", null, {"b": "c"}]}"#.to_vec()),
        };
        for (place, byte, what) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = place.index(bytes.len());
            match what {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        let _ = quickly(|| read_as(name, &bytes));
    }
}

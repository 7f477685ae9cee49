//! Each kind of file as a person would read it.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::read::samples;
use crate::types::PositionUnit;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

fn read(path: &Path) -> Result<Document, ReadError> {
    read_file(path, &ReadLimits::default())
}

fn read_as(name: &str, content: impl AsRef<[u8]>) -> Result<Document, ReadError> {
    let folder = Folder::new();
    read(&folder.file(name, content))
}

/// Blocks in short: their kind, text and place.
fn blocks(document: &Document) -> Vec<(BlockKind, &str, u32, u32)> {
    document
        .blocks
        .iter()
        .map(|block| (block.kind, block.text.as_str(), block.line, block.end_line))
        .collect()
}

use BlockKind::{Code, Heading, Paragraph, Row};

#[test]
fn plain_text_is_read_by_paragraphs() {
    let document = read_as("a.txt", "One\ntwo.\n\n\n  Three.\r\n\r\nFour").unwrap();
    let expected = [(Paragraph, "One\ntwo.", 1, 2), (Paragraph, "  Three.", 5, 5), (Paragraph, "Four", 7, 7)];
    assert_eq!(blocks(&document), expected);
    assert_eq!(document.title, None);
    assert_eq!(read_as("empty.txt", "").unwrap(), Document::default());
}

#[test]
fn markdown_is_read_by_headings_code_and_paragraphs() {
    let text = "---\ntitle: \"My notes\"\n---\n# Top *one*\n\nSome **bold**\ntext.\n\n```rust\n# not a heading\n\nfn a() {}\n```\n\nNext\n----\n- a\n- b\n";
    let document = read_as("a.md", text).unwrap();
    assert_eq!(document.title.as_deref(), Some("My notes"));
    let expected = [
        (Code, "---\ntitle: \"My notes\"\n---", 1, 3),
        (Heading(1), "Top one", 4, 4),
        (Paragraph, "Some **bold**\ntext.", 6, 7),
        (Code, "```rust\n# not a heading\n\nfn a() {}\n```", 9, 13),
        (Heading(2), "Next", 15, 16),
        (Paragraph, "- a\n- b", 17, 18),
    ];
    assert_eq!(blocks(&document), expected);
    assert_eq!(read_as("b.md", "# First\n\nx").unwrap().title.as_deref(), Some("First"));
}

#[test]
fn a_page_is_read_without_its_scripts_and_with_its_lines() {
    let html = "<html><head><title>Bees</title>\n<script>var x;</script></head>\n<body><h2>Hives</h2>\n<p>They\nfly.</p>\n<pre>a\n  b</pre></body></html>";
    let document = read_as("a.html", html).unwrap();
    assert_eq!(document.title.as_deref(), Some("Bees"));
    assert_eq!(
        blocks(&document),
        [(Heading(2), "Hives", 3, 3), (Paragraph, "They fly.", 4, 4), (Code, "a\n  b", 6, 7)]
    );
}

#[test]
fn code_is_read_by_top_level_items() {
    let code = "use a;\nuse b;\n\n/// One.\nfn one() {\n\n    two();\n}\n\nfn two() {\n}\n";
    let document = read_as("a.rs", code).unwrap();
    let expected = [
        (Code, "use a;\nuse b;", 1, 2),
        (Code, "/// One.\nfn one() {\n\n    two();\n}", 4, 8),
        (Code, "fn two() {\n}", 10, 11),
    ];
    assert_eq!(blocks(&document), expected);
}

#[test]
fn a_table_is_read_with_the_names_of_its_columns() {
    let document = read_as("a.csv", "name,age,note\nAnn,41,\"likes, tea\"\nBob,,x,extra\n").unwrap();
    let expected = "name | age | note\nname: Ann; age: 41; note: likes, tea\nname: Bob; note: x; extra";
    assert_eq!(blocks(&document), [(Row, expected, 1, 3)]);
}

#[test]
fn json_is_read_with_the_path_of_each_value() {
    let text = "{\n  \"name\": \"Ann\",\n  \"pets\": [\n    {\"kind\": \"cat\", \"age\": 3},\n    null,\n    \"two\\nlines\"\n  ],\n  \"ok\": true\n}";
    let document = read_as("a.json", text).unwrap();
    let expected = [
        (Row, "name: Ann", 2, 2),
        (Row, "pets[0].kind: cat\npets[0].age: 3", 4, 4),
        (Paragraph, "pets[2]: two\nlines", 6, 6),
        (Row, "ok: true", 8, 8),
    ];
    assert_eq!(blocks(&document), expected);
    let lines = read_as("a.jsonl", "{\"a\": 1}\n{\"a\": 2}\n").unwrap();
    assert_eq!(blocks(&lines), [(Row, "a: 1\na: 2", 1, 2)]);
}

#[test]
fn invalid_json_is_read_as_text() {
    let document = read_as("a.json", "{ // a comment\n  \"a\": 1,\n}").unwrap();
    assert_eq!(blocks(&document), [(Code, "{ // a comment\n  \"a\": 1,\n}", 1, 3)]);
}

#[test]
fn a_docx_is_read_by_paragraphs_headings_and_rows() {
    let body = "<w:p><w:pPr><w:pStyle w:val=\"Heading1\"/></w:pPr><w:r><w:t>Top</w:t></w:r></w:p>\
        <w:p><w:r><w:t xml:space=\"preserve\">One </w:t></w:r><w:r><w:t>&lt;two&gt; &#233;</w:t></w:r></w:p><w:p/>\
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>";
    let document = read_as("a.docx", samples::docx(body)).unwrap();
    assert_eq!(document.title.as_deref(), Some("A & B"));
    assert_eq!(document.place, PositionUnit::Paragraph);
    let found = document.blocks.iter().map(|block| (block.kind, block.text.as_str())).collect::<Vec<_>>();
    assert_eq!(found, [(Heading(1), "Top"), (Paragraph, "One <two> é"), (Row, "a | b")]);
}

#[test]
fn a_table_in_a_cell_of_a_docx_hides_no_text() {
    let paragraph = |text: &str| format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>");
    let cell = |content: &str| format!("<w:tc>{content}</w:tc>");
    let table = |cells: &str| format!("<w:tbl><w:tr>{cells}</w:tr></w:tbl>");
    let inner = table(&format!("{}{}", cell(&paragraph("a")), cell(&paragraph("b"))));
    let first = cell(&format!("{}{inner}{}", paragraph("before"), paragraph("after")));
    let body = table(&format!("{first}{}", cell(&paragraph("other"))));
    let document = read_as("a.docx", samples::docx(&body)).unwrap();
    assert_eq!(blocks(&document), [(Row, "a | b", 3, 3), (Row, "before after | other", 5, 5)]);
}

#[test]
fn the_text_of_a_box_in_a_docx_is_read_once() {
    let text_box = "<w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent>";
    let body = format!(
        "<w:p><w:r><w:t>Around </w:t><mc:AlternateContent><mc:Choice>{text_box}</mc:Choice>\
         <mc:Fallback>{text_box}</mc:Fallback></mc:AlternateContent><w:t>it.</w:t></w:r></w:p>"
    );
    let document = read_as("a.docx", samples::docx(&body)).unwrap();
    assert_eq!(blocks(&document), [(Paragraph, "in a box", 2, 2), (Paragraph, "Around it.", 2, 2)]);
}

#[test]
fn a_spreadsheet_is_read_by_sheets_and_rows() {
    let document = read_as("a.xlsx", samples::xlsx(samples::XLSX_ROWS)).unwrap();
    assert_eq!((document.title.as_deref(), document.place), (Some("A & B"), PositionUnit::Row));
    let expected = [
        (Heading(1), "Costs", 1, 1),
        (Row, "what | euro | when", 1, 1),
        (Row, "what: boiler & pump; euro: 310.5; yes; when: 2026-03-19", 3, 3),
        (Heading(1), "A & B", 1, 1),
        (Row, "alone", 4, 4),
    ];
    assert_eq!(blocks(&document), expected);
}

#[test]
fn a_presentation_is_read_in_the_order_of_its_slides_with_its_notes() {
    let document = read_as("a.pptx", samples::pptx()).unwrap();
    assert_eq!((document.title.as_deref(), document.place), (Some("A & B"), PositionUnit::Slide));
    let expected = [
        (Heading(1), "The boiler", 1, 1),
        (Paragraph, "It leaks & drips.", 1, 1),
        (Row, "a | b", 1, 1),
        (Paragraph, "Notes: Call Ann.", 1, 1),
        (Heading(1), "Costs", 2, 2),
        (Paragraph, "It costs 310 euro.", 2, 2),
        (Row, "a | b", 2, 2),
    ];
    assert_eq!(blocks(&document), expected);
}

#[test]
fn a_line_break_in_a_presentation_separates_words() {
    let slide = "<p:sld><p:sp><a:p><a:r><a:t>Annual</a:t></a:r><a:br><a:rPr lang=\"en-GB\"/></a:br>\
        <a:r><a:t>Report</a:t></a:r><a:br/><a:r><a:t>2026</a:t></a:r></a:p></p:sp></p:sld>";
    let document = read_as("a.pptx", samples::pptx_of(slide)).unwrap();
    assert_eq!(blocks(&document), [(Paragraph, "Annual Report 2026", 1, 1)]);
}

#[test]
fn an_opendocument_text_is_read_by_headings_paragraphs_and_rows() {
    let body = "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>\
        <text:h text:outline-level=\"2\">Top</text:h>\
        <text:p>One<text:s text:c=\"2\"/><text:span>&lt;two&gt;</text:span><text:note><text:note-citation>1</text:note-citation>\
        <text:note-body><text:p>A footnote.</text:p></text:note-body></text:note> three</text:p>\
        <table:table table:name=\"T\"><table:table-row><table:table-cell><text:p>a</text:p><text:p>b</text:p></table:table-cell>\
        <table:table-cell><text:p>c</text:p></table:table-cell></table:table-row></table:table>";
    let document = read_as("a.odt", samples::odf(body)).unwrap();
    assert_eq!((document.title.as_deref(), document.place), (Some("A & B"), PositionUnit::Paragraph));
    let found = document.blocks.iter().map(|block| (block.kind, block.text.as_str())).collect::<Vec<_>>();
    let expected =
        [(Heading(2), "Top"), (Paragraph, "A footnote."), (Paragraph, "One  <two> three"), (Row, "a b | c")];
    assert_eq!(found, expected);
}

#[test]
fn an_opendocument_spreadsheet_is_read_by_sheets_and_rows() {
    let cell = |text: &str| {
        format!("<table:table-cell office:value-type=\"string\"><text:p>{text}</text:p></table:table-cell>")
    };
    let body = format!(
        "<table:table table:name=\"Costs\">\
         <table:table-row table:number-rows-repeated=\"4\"><table:table-cell table:number-columns-repeated=\"1024\"/></table:table-row>\
         <table:table-row>{}{}{}</table:table-row>\
         <table:table-row>{}<table:table-cell office:value-type=\"float\" table:number-columns-repeated=\"2\"><text:p>7</text:p></table:table-cell></table:table-row>\
         </table:table>",
        cell("what"),
        cell("June"),
        cell("July"),
        cell("boiler"),
    );
    let document = read_as("a.ods", samples::odf(&body)).unwrap();
    assert_eq!(document.place, PositionUnit::Row);
    let rows = "what | June | July\nwhat: boiler; June: 7; July: 7";
    assert_eq!(blocks(&document), [(Heading(1), "Costs", 1, 1), (Row, rows, 5, 6)]);
}

#[test]
fn a_mailbox_is_read_by_messages() {
    let document = read_as("a.mbox", samples::MAILBOX).unwrap();
    let head = "Subject: The pump\nFrom: Ann <ann@example.org>\nDate: 2026-03-02T09:00:00+01:00";
    let expected = [
        (Heading(1), "The pump", 2, 2),
        (Paragraph, head, 2, 2),
        (Paragraph, "The pump hums.\nFrom the cellar you hear it.", 6, 7),
        (Heading(1), "(no subject)", 10, 10),
        (Paragraph, "From: Bob <bob@example.org>", 10, 10),
        (Paragraph, "No subject here.", 12, 12),
    ];
    assert_eq!(blocks(&document), expected);
    assert!(read_as("empty.mbox", "").unwrap().blocks.is_empty());
}

#[test]
fn an_e_mail_is_read_with_its_header_and_without_its_attachments() {
    let document = read_as("a.eml", samples::MAIL).unwrap();
    assert_eq!(document.title.as_deref(), Some("The boiler"));
    let head = "Subject: The boiler\nFrom: Jörg <joerg@example.org>\nTo: Ann <ann@example.org>\nDate: 2026-03-03T09:00:00+01:00";
    let expected = [
        (Paragraph, head, 1, 1),
        (Paragraph, "The boiler leaks.", 11, 11),
        (Paragraph, "Please call.", 13, 13),
        (Paragraph, "It drips ä lot", 18, 18),
        (Paragraph, "Attachment: bill.pdf", 26, 26),
    ];
    assert_eq!(blocks(&document), expected);
}

#[test]
fn a_pdf_is_read_by_pages_and_paragraphs() {
    let pages: &[&[&str]] =
        &[&["The first page is", "about bees and hon-", "ey.", "", "A new paragraph."], &["Page two."]];
    let document = read_as("a.pdf", samples::pdf(pages)).unwrap();
    assert_eq!(document.title.as_deref(), Some("The title"));
    assert_eq!(document.place, PositionUnit::Page);
    let expected = [
        (Paragraph, "The first page is about bees and honey.", 1, 1),
        (Paragraph, "A new paragraph.", 1, 1),
        (Paragraph, "Page two.", 2, 2),
    ];
    assert_eq!(blocks(&document), expected);
    // Whatever its name is.
    assert_eq!(read_as("scan", samples::pdf(pages)).unwrap(), document);
}

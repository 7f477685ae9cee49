//! Scanned pages and pictures, with a program that pretends to read, and with the real one.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::read::page_picture::PagePicture;
use crate::read::{OcrProgram, SourceFile, samples};

/// Dark text on white: `The boiler was serviced on the third of March.`
const TEXT: &[u8] = include_bytes!("../../tests/files/scanned_text.png");

fn with(program: Arc<OcrProgram>) -> ReadLimits {
    ReadLimits { ocr: Some(program), ..ReadLimits::default() }
}

fn read_as(name: &str, bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    SourceFile::received(name, bytes.to_vec()).document(limits)
}

fn scanned() -> Vec<u8> {
    let picture = PagePicture::decode(TEXT).unwrap();
    samples::scanned_pdf(picture.width, picture.height, &picture.grey)
}

fn texts(document: &Document) -> Vec<(&str, u32)> {
    document.blocks.iter().map(|block| (block.text.as_str(), block.line)).collect()
}

/// A program that says what it gets.
#[cfg(unix)]
fn pretender(folder: &Path, script: &str) -> Arc<OcrProgram> {
    use std::os::unix::fs::PermissionsExt;

    let program = folder.join("tesseract");
    let version = "[ \"$1\" = --version ] && echo 'tesseract 5' && exit";
    std::fs::write(&program, format!("#!/bin/sh\n{version}\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    OcrProgram::at(program, Some("eng+deu".to_owned()))
}

#[test]
fn without_the_program_scanned_pages_are_named_and_pictures_refused() {
    for limits in [ReadLimits::default(), with(OcrProgram::at("/nowhere/tesseract".into(), None))] {
        let document = read_as("a.pdf", &scanned(), &limits).unwrap();
        assert_eq!((texts(&document), &document.scanned[..]), (vec![("A page with text.", 1)], &[2][..]));
        let refused = read_as("a.png", TEXT, &limits).unwrap_err();
        assert!(matches!(refused, ReadError::Picture) && refused.is_expected(), "{refused}");
    }
}

#[cfg(unix)]
#[test]
fn the_program_gets_a_decoded_picture_and_the_languages() {
    let folder = tempfile::tempdir().unwrap();
    let limits = with(pretender(folder.path(), "echo \"$@\"; head -c 2; echo; echo; echo Second."));
    let document = read_as("a.pdf", &scanned(), &limits).unwrap();
    let said = "stdin stdout -l eng+deu\nP5";
    let expected = vec![("A page with text.", 1), (said, 2), ("Second.", 2)];
    assert_eq!((texts(&document), &document.scanned[..]), (expected, &[][..]));
    let document = read_as("a.png", TEXT, &limits).unwrap();
    assert_eq!(texts(&document), [(said, 1), ("Second.", 4)]);
    assert!(read_as("a.png", b"no picture", &limits).is_err());
}

#[cfg(unix)]
#[test]
fn a_program_that_floods_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let flooding = pretender(folder.path(), "exec yes flood");
    let document = read_as("a.png", TEXT, &with(flooding)).unwrap();
    let length: usize = document.blocks.iter().map(|block| block.text.len()).sum();
    assert!(length > 1 << 19 && length <= 1 << 20, "{length}");
}

#[test]
fn a_picture_that_claims_to_be_huge_is_refused() {
    // The header of a BMP file with 60,000 x 60,000 pixels.
    let mut huge = b"BM".to_vec();
    huge.extend([0; 8]);
    huge.extend(54_u32.to_le_bytes());
    huge.extend(40_u32.to_le_bytes());
    huge.extend(60_000_u32.to_le_bytes());
    huge.extend(60_000_u32.to_le_bytes());
    huge.extend([1, 0, 24, 0]);
    huge.extend([0; 24]);
    let refused = PagePicture::decode(&huge).unwrap_err().to_string();
    assert!(refused.starts_with("the file is broken"), "{refused}");
}

/// `./dev test` installs it.
#[test]
fn tesseract_reads_a_scanned_page_and_a_picture() {
    let program = OcrProgram::tesseract(None);
    if !program.is_installed() {
        return;
    }
    let limits = with(program);
    for name in ["a.pdf", "a.png"] {
        let bytes = if name == "a.pdf" { scanned() } else { TEXT.to_vec() };
        let document = read_as(name, &bytes, &limits).unwrap();
        let text = texts(&document).iter().map(|(text, _)| *text).collect::<Vec<_>>().join(" ");
        assert!(text.contains("boiler") && text.contains("March"), "{name}: {text}");
        assert!(document.scanned.is_empty());
    }
}

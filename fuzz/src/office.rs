//! Office documents: the parts that the fuzzer writes are packed into an archive here, because a part of an archive that is changed no
//! longer has its checksum, and is not read.

use std::io::{Cursor, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// The parts that the fuzzer writes, with a zero byte between them, and those that are always the same.
pub struct OfficeFormat {
    pub parts: &'static [&'static str],
    pub fixed: &'static [(&'static str, &'static str)],
}

pub const DOCX: OfficeFormat =
    OfficeFormat { parts: &["word/document.xml", "docProps/core.xml"], fixed: &[] };

pub const XLSX: OfficeFormat = OfficeFormat {
    parts: &["xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml"],
    fixed: &[
        (
            "xl/workbook.xml",
            "<workbook><sheets><sheet name=\"Costs\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships><Relationship Id=\"rId1\" Type=\"x/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>",
        ),
    ],
};

pub const PPTX: OfficeFormat = OfficeFormat {
    parts: &["ppt/slides/slide1.xml", "ppt/notesSlides/notesSlide1.xml", "ppt/slides/_rels/slide1.xml.rels"],
    fixed: &[
        (
            "ppt/presentation.xml",
            "<p:presentation><p:sldIdLst><p:sldId id=\"256\" r:id=\"rId1\"/></p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<Relationships><Relationship Id=\"rId1\" Type=\"x/slide\" Target=\"slides/slide1.xml\"/></Relationships>",
        ),
    ],
};

/// Text, presentations and spreadsheets.
pub const OPEN_DOCUMENT: OfficeFormat =
    OfficeFormat { parts: &["content.xml", "meta.xml", "META-INF/manifest.xml"], fixed: &[] };

/// The document of these bytes. An archive stays as it is, for what reads archives.
pub fn packed(format: &OfficeFormat, bytes: &[u8]) -> Vec<u8> {
    if bytes.starts_with(b"PK") {
        return bytes.to_vec();
    }
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let written = format.parts.iter().copied().zip(bytes.split(|byte| *byte == 0));
    let fixed = format.fixed.iter().map(|(name, content)| (*name, content.as_bytes()));
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in fixed.chain(written) {
        archive.start_file(name, options).expect("the names are valid");
        archive.write_all(content).expect("it is in memory");
    }
    archive.finish().expect("it is in memory").into_inner()
}

//! Office documents: ZIP archives with XML. Both are read as streams with limits.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Cursor, Read};

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use zip::ZipArchive;
use zip::result::ZipError;

use super::{ReadError, ReadLimits};

/// The highest compression. A letter has a ratio of ten, a long table of a hundred.
const MAX_RATIO: u64 = 400;

/// Below this size the ratio does not matter.
const FREE_BYTES: u64 = 4 << 20;

/// Begins an entry in the list of files of an archive.
const ENTRY_MARK: &[u8] = b"PK\x01\x02";

/// Files in an archive. The whole list is read at once, and an entry needs ten times its bytes in memory.
const MAX_ENTRIES: usize = 65_536;

/// The longest piece of XML in memory: a tag, or a run of text.
const MAX_PIECE: usize = 8 << 20;

/// All parts together may unpack to this many times the limit of text: markup is longer than text.
const MAX_TOTAL: u64 = 4;

pub struct OfficeArchive<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
    /// Such as `DOCX`, for errors.
    format: &'static str,
    /// The most bytes of one part.
    most: u64,
    /// Bytes that all parts may still unpack to.
    left: u64,
}

impl<'a> OfficeArchive<'a> {
    pub fn open(bytes: &'a [u8], format: &'static str, limits: &ReadLimits) -> Result<Self, ReadError> {
        let mut marks = bytes.windows(ENTRY_MARK.len()).filter(|window| *window == ENTRY_MARK);
        if marks.nth(MAX_ENTRIES).is_some() {
            return Err(broken(format!("it has more than {MAX_ENTRIES} files")));
        }
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken_archive(format, &error))?;
        // Programs differ in which one they show.
        if archive.has_duplicate_names() {
            return Err(broken("two of its files have the same name"));
        }
        let most = limits.text_bytes as u64;
        Ok(OfficeArchive { archive, format, most, left: most.saturating_mul(MAX_TOTAL) })
    }

    /// A file in the archive, with a limit on its size; `None` if there is none.
    pub fn part<'s>(&'s mut self, name: &str) -> Result<Option<impl BufRead + use<'s, 'a>>, ReadError> {
        let OfficeArchive { archive, format, most, left } = self;
        let file = match archive.by_name(name) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(broken_archive(format, &error)),
        };
        // The size in the archive may be wrong, so the limit applies to what is read.
        let packed = file.compressed_size();
        let most = (*most).min(packed.saturating_mul(MAX_RATIO).max(FREE_BYTES));
        Ok(Some(BufReader::new(Bounded { inner: file, left: most, total: left })))
    }

    /// A file that the format requires.
    pub fn required<'s>(&'s mut self, name: &str) -> Result<impl BufRead + use<'s, 'a>, ReadError> {
        self.part(name)?.ok_or_else(|| broken(format!("it has no {name}")))
    }

    /// The title in a part with metadata, if there is such a part.
    pub fn title(&mut self, name: &str) -> Result<String, ReadError> {
        match self.part(name)? {
            Some(part) => title(part),
            None => Ok(String::new()),
        }
    }

    /// The relations of a part, in order; none if it has no list of them.
    pub fn relations(&mut self, part: &str) -> Result<Vec<PartRelation>, ReadError> {
        let (directory, file) = part.rsplit_once('/').unwrap_or(("", part));
        let mut relations = Vec::new();
        let Some(list) = self.part(&format!("{directory}/_rels/{file}.rels"))? else { return Ok(relations) };
        events(list, |event| {
            if let Event::Start(tag) | Event::Empty(tag) = event
                && let (Some(id), Some(target)) = (attribute(&tag, "Id"), attribute(&tag, "Target"))
            {
                let kind = attribute(&tag, "Type").unwrap_or_default();
                relations.push(PartRelation { id, kind, target: resolved(directory, &target) });
            }
            Ok(())
        })?;
        Ok(relations)
    }
}

/// A reference from one part to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartRelation {
    pub id: String,
    /// The end says what the target is: `.../slide`.
    pub kind: String,
    /// The name of the part in the archive.
    pub target: String,
}

/// Relations by their id, the first of each. A file can have many, and refer to each of them.
pub fn by_id(relations: &[PartRelation]) -> HashMap<&str, &PartRelation> {
    let mut found = HashMap::with_capacity(relations.len());
    for relation in relations {
        found.entry(relation.id.as_str()).or_insert(relation);
    }
    found
}

/// The name of a part that is given relative to a directory, or absolute.
fn resolved(directory: &str, target: &str) -> String {
    let mut path: Vec<&str> = match target.starts_with('/') {
        true => Vec::new(),
        false => directory.split('/').collect(),
    };
    for step in target.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(path.pop()),
            step => path.push(step),
        }
    }
    path.join("/")
}

pub fn broken(reason: impl Into<String>) -> ReadError {
    ReadError::Broken { reason: reason.into() }
}

fn broken_archive(format: &str, error: &ZipError) -> ReadError {
    broken(format!("it is not a readable {format} file ({error})"))
}

/// Fails if there is more to read than allowed.
struct Bounded<'a, R> {
    inner: R,
    left: u64,
    /// What all parts may still unpack to.
    total: &'a mut u64,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        let left = |left: u64| {
            left.checked_sub(read as u64).ok_or_else(|| {
                std::io::Error::other("it unpacks to far more than a document contains (a ZIP bomb?)")
            })
        };
        self.left = left(self.left)?;
        *self.total = left(*self.total)?;
        Ok(read)
    }
}

/// Calls `each` with every event. Entities are not resolved, so none can grow.
pub fn events(
    part: impl BufRead,
    mut each: impl FnMut(Event) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut reader = Reader::from_reader(part);
    reader.config_mut().check_end_names = false;
    let mut buffer = Vec::new();
    loop {
        let event = reader.read_event_into(&mut buffer).map_err(|error| broken(error.to_string()))?;
        if event.len() > MAX_PIECE {
            return Err(broken("a single piece of its XML is too large"));
        }
        match event {
            Event::Eof => return Ok(()),
            Event::DocType(_) => return Err(broken("its XML has a document type, which is not allowed")),
            event => each(event)?,
        }
        buffer.clear();
    }
}

/// The character of a reference such as `&amp;` or `&#233;`.
pub fn entity(reference: &BytesRef) -> Option<char> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Some(character);
    }
    match &**reference {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => None,
    }
}

/// The value of an attribute, whatever its namespace.
pub fn attribute(tag: &BytesStart, name: &str) -> Option<String> {
    let mut attributes = tag.attributes().flatten();
    let found = attributes.find(|attribute| attribute.key.local_name().as_ref() == name)?;
    let value = found.normalized_value(XmlVersion::Implicit1_0).unwrap_or_else(|_| found.value.clone());
    Some(Cow::into_owned(value))
}

/// The attribute `r:id`, which names a relation. Some tags also have an `id` without a namespace.
pub fn relation_id(tag: &BytesStart) -> Option<String> {
    let is_relation =
        |key: quick_xml::name::QName| key.prefix().is_some() && key.local_name().as_ref() == "id";
    let found = tag.attributes().flatten().find(|attribute| is_relation(attribute.key))?;
    Some(found.value.into_owned())
}

fn title(part: impl BufRead) -> Result<String, ReadError> {
    let mut title = String::new();
    let mut is_inside = false;
    events(part, |event| {
        match event {
            Event::Start(tag) => is_inside = tag.local_name().as_ref() == "title",
            Event::End(_) => is_inside = false,
            Event::Text(text) if is_inside => title.push_str(&text),
            Event::GeneralRef(reference) if is_inside => title.extend(entity(&reference)),
            _ => {}
        }
        Ok(())
    })?;
    Ok(title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::samples;

    fn refused(bytes: &[u8]) -> String {
        let opened = OfficeArchive::open(bytes, "DOCX", &ReadLimits::default());
        opened.err().expect("an error").to_string()
    }

    #[test]
    fn the_files_of_an_archive_are_counted_before_they_are_listed() {
        let said = refused(&ENTRY_MARK.repeat(MAX_ENTRIES + 1));
        assert_eq!(said, "the file is broken: it has more than 65536 files");
        let said = refused(&ENTRY_MARK.repeat(MAX_ENTRIES));
        assert!(said.starts_with("the file is broken: it is not a readable DOCX file"), "{said}");
    }

    #[test]
    fn two_files_of_the_same_name_are_refused() {
        let (one, other) = ("word/document.xml", "word/documenu.xml");
        let mut bytes = samples::archive(&[(one, "<a/>"), (other, "<b/>")]);
        while let Some(at) = bytes.windows(other.len()).position(|window| window == other.as_bytes()) {
            bytes[at..at + one.len()].copy_from_slice(one.as_bytes());
        }
        assert_eq!(refused(&bytes), "the file is broken: two of its files have the same name");
    }

    #[test]
    fn a_target_is_relative_to_the_directory_of_its_part() {
        assert_eq!(resolved("xl", "worksheets/sheet1.xml"), "xl/worksheets/sheet1.xml");
        assert_eq!(
            resolved("ppt/slides", "../notesSlides/notesSlide1.xml"),
            "ppt/notesSlides/notesSlide1.xml"
        );
        assert_eq!(resolved("xl", "/xl/worksheets/sheet1.xml"), "xl/worksheets/sheet1.xml");
        assert_eq!(resolved("xl", "../../../../etc/passwd"), "etc/passwd");
    }
}

//! PPTX: the slides in their order, each with its title, its text, its tables and its notes.

use std::io::BufRead;

use quick_xml::events::Event;

use super::draft::Draft;
use super::office_archive::{OfficeArchive, attribute, by_id, entity, events, relation_id};
use super::table_rows::folded;
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

const PRESENTATION: &str = "ppt/presentation.xml";

pub fn read(bytes: &[u8], limits: &ReadLimits) -> Result<Document, ReadError> {
    let mut archive = OfficeArchive::open(bytes, "PPTX", limits)?;
    let mut draft = Draft::new(PositionUnit::Slide, limits);
    draft.title(&archive.title("docProps/core.xml")?);
    let order = slide_ids(archive.required(PRESENTATION)?)?;
    let relations = archive.relations(PRESENTATION)?;
    let relations = by_id(&relations);
    let slides = order.iter().filter_map(|id| relations.get(id.as_str()));
    for (number, slide) in (1_u32..).zip(slides).take(limits.pages) {
        let Some(part) = archive.part(&slide.target)? else { continue };
        paragraphs(part, SlidePart::Slide, number, &mut draft)?;
        let relations = archive.relations(&slide.target)?;
        let Some(notes) = relations.iter().find(|relation| relation.kind.ends_with("/notesSlide")) else {
            continue;
        };
        if let Some(part) = archive.part(&notes.target)? {
            paragraphs(part, SlidePart::Notes, number, &mut draft)?;
        }
    }
    Ok(draft.finish())
}

/// The relations of the slides, in the order in which they are shown.
fn slide_ids(part: impl BufRead) -> Result<Vec<String>, ReadError> {
    let mut ids = Vec::new();
    events(part, |event| {
        if let Event::Start(tag) | Event::Empty(tag) = event
            && tag.local_name().as_ref() == "sldId"
        {
            ids.extend(relation_id(&tag));
        }
        Ok(())
    })?;
    Ok(ids)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlidePart {
    Slide,
    Notes,
}

/// What a shape contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShapeRole {
    Title,
    Text,
    /// The number of the slide, the date, the header or the footer.
    Furniture,
}

fn shape_role(placeholder: &str) -> ShapeRole {
    match placeholder {
        "title" | "ctrTitle" => ShapeRole::Title,
        "sldNum" | "dt" | "hdr" | "ftr" | "sldImg" => ShapeRole::Furniture,
        _ => ShapeRole::Text,
    }
}

/// Adds the text of a slide or of its notes.
fn paragraphs(part: impl BufRead, kind: SlidePart, number: u32, draft: &mut Draft) -> Result<(), ReadError> {
    let mut role = ShapeRole::Text;
    let mut paragraph = String::new();
    // The title has its paragraphs on one line.
    let mut title = String::new();
    let mut row: Option<Vec<String>> = None;
    let mut cell: Option<String> = None;
    let (mut is_text, mut has_text) = (false, false);
    events(part, |event| {
        match event {
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == "ph" => {
                role = shape_role(&attribute(&tag, "type").unwrap_or_default());
            }
            // PowerPoint puts the format of a line break into it.
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == "br" => paragraph.push(' '),
            Event::Start(tag) => match tag.local_name().as_ref() {
                "sp" | "graphicFrame" => role = ShapeRole::Text,
                "tr" => row = Some(Vec::new()),
                "tc" => cell = Some(String::new()),
                "t" => is_text = true,
                _ => {}
            },
            Event::End(tag) => match tag.local_name().as_ref() {
                "t" => is_text = false,
                "p" => {
                    let text = std::mem::take(&mut paragraph);
                    match (&mut cell, role) {
                        (Some(cell), _) => joined(cell, &text),
                        (None, ShapeRole::Title) => joined(&mut title, &text),
                        (None, ShapeRole::Furniture) => {}
                        (None, ShapeRole::Text) if text.trim().is_empty() => {}
                        (None, ShapeRole::Text) => {
                            let is_first = !std::mem::replace(&mut has_text, true);
                            let head = if kind == SlidePart::Notes && is_first { "Notes: " } else { "" };
                            let text = format!("{head}{}", text.trim());
                            draft.push(BlockKind::Paragraph, &text, (number, number))?;
                        }
                    }
                }
                "sp" if role == ShapeRole::Title => {
                    let heading = std::mem::take(&mut title);
                    draft.push(BlockKind::Heading(1), &heading, (number, number))?;
                    role = ShapeRole::Text;
                }
                "tc" => {
                    if let (Some(row), Some(cell)) = (&mut row, cell.take()) {
                        row.push(cell);
                    }
                }
                "tr" => {
                    let cells: Vec<String> = row.take().unwrap_or_default();
                    let filled: Vec<String> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
                    if !filled.is_empty() {
                        draft.row(&filled.join(" | "), number)?;
                    }
                }
                _ => {}
            },
            Event::Text(text) if is_text => paragraph.push_str(&text),
            Event::GeneralRef(reference) if is_text => paragraph.extend(entity(&reference)),
            _ => {}
        }
        Ok(())
    })
}

/// Adds a paragraph to a text on one line.
fn joined(text: &mut String, paragraph: &str) {
    let words = folded(paragraph);
    if !text.is_empty() && !words.is_empty() {
        text.push(' ');
    }
    text.push_str(&words);
}

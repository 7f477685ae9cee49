//! Markdown: headings, code and other blocks, with their markup.

use pulldown_cmark::{Event, HeadingLevel, MetadataBlockKind, Options, Parser, TagEnd};

use super::draft::{Draft, Lines};
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

pub fn read(text: &str, limits: &ReadLimits) -> Result<Document, ReadError> {
    // Not tables, which are paragraphs here: the parser adds the missing cells of short rows, so a few kilobytes become gigabytes.
    let options =
        Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut draft = Draft::new(PositionUnit::Line, limits);
    let mut lines = Lines::new(text.as_bytes());
    let mut depth = 0_usize;
    let mut heading = String::new();
    let mut first_heading = None;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(_) => {
                depth += 1;
                if depth == 1 {
                    heading.clear();
                }
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                if depth > 0 {
                    continue;
                }
                let block = text[range.clone()].trim_end();
                let place = (lines.line_of(range.start), lines.line_of(range.start + block.len()));
                match tag {
                    TagEnd::Heading(level) => {
                        first_heading.get_or_insert_with(|| (level, heading.clone()));
                        draft.push(BlockKind::Heading(level as u8), &heading, place)?;
                    }
                    TagEnd::CodeBlock => draft.push(BlockKind::Code, block, place)?,
                    TagEnd::MetadataBlock(kind) => {
                        front_matter(block, kind, &mut draft);
                        draft.push(BlockKind::Code, block, place)?;
                    }
                    _ => draft.push(BlockKind::Paragraph, block, place)?,
                }
            }
            Event::Text(words) | Event::Code(words) => heading.push_str(&words),
            Event::SoftBreak | Event::HardBreak => heading.push(' '),
            // A rule, or HTML outside of everything.
            _ if depth == 0 => {
                let block = text[range.clone()].trim_end();
                let place = (lines.line_of(range.start), lines.line_of(range.start + block.len()));
                if block.contains(char::is_alphanumeric) {
                    draft.push(BlockKind::Paragraph, block, place)?;
                }
            }
            _ => {}
        }
    }
    if let Some((HeadingLevel::H1, title)) = first_heading {
        draft.title(&title);
    }
    Ok(draft.finish())
}

/// The title in the front matter.
fn front_matter(block: &str, kind: MetadataBlockKind, draft: &mut Draft) {
    let equals = match kind {
        MetadataBlockKind::YamlStyle => ':',
        MetadataBlockKind::PlusesStyle => '=',
    };
    for (key, value) in block.lines().filter_map(|line| line.split_once(equals)) {
        if key.trim().eq_ignore_ascii_case("title") {
            draft.title(value.trim().trim_matches(['"', '\'']));
        }
    }
}

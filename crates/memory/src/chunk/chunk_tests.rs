use proptest::prelude::*;

use super::*;
use crate::read::{BlockKind, Document, TextBlock};
use crate::tokens;

fn block(kind: BlockKind, text: &str, line: u32) -> TextBlock {
    let feeds = u32::try_from(text.matches('\n').count()).unwrap();
    TextBlock { kind, text: text.to_owned(), line, end_line: line + feeds }
}

fn document(blocks: Vec<TextBlock>) -> Document {
    Document { title: Some("Book".to_owned()), blocks, ..Document::default() }
}

fn sentences(count: usize, word: &str) -> String {
    (0..count).map(|n| format!("The {word} number {n} is here.")).collect::<Vec<_>>().join(" ")
}

fn options(size: usize, overlap: usize) -> ChunkOptions {
    ChunkOptions::new(size, overlap).unwrap()
}

#[test]
fn invalid_sizes_are_refused() {
    assert_eq!(ChunkOptions::new(512, 64), Ok(ChunkOptions::default()));
    assert_eq!(ChunkOptions::new(64, 64), Err(ChunkOptionsError::Overlap { size: 64, overlap: 64 }));
    assert_eq!(ChunkOptions::new(0, 0), Err(ChunkOptionsError::Size { size: 0 }));
}

#[test]
fn a_short_note_is_a_chunk() {
    let note = document(vec![block(BlockKind::Paragraph, "Milk.", 3)]);
    let expected = Chunk {
        text: "Milk.".to_owned(),
        overlap: 0,
        title: "Book".to_owned(),
        line: 3,
        end_line: 3,
        tokens: u32::try_from(tokens::count("Milk.")).unwrap(),
    };
    assert_eq!(chunk(&note, ChunkOptions::default()), [expected]);
    assert_eq!(chunk(&document(Vec::new()), ChunkOptions::default()), []);
}

#[test]
fn a_chunk_of_two_sheets_does_not_end_before_it_begins() {
    let rows =
        document(vec![block(BlockKind::Paragraph, "Rent.", 7), block(BlockKind::Paragraph, "Milk.", 2)]);
    let chunks = chunk(&rows, ChunkOptions::default());
    assert_eq!(chunks.iter().map(|chunk| (chunk.line, chunk.end_line)).collect::<Vec<_>>(), [(7, 7)]);
}

#[test]
fn a_heading_stays_with_its_text_and_names_the_chunk() {
    let blocks = vec![
        block(BlockKind::Heading(1), "Book", 1),
        block(BlockKind::Paragraph, &sentences(8, "apple"), 3),
        block(BlockKind::Heading(2), "Pears", 5),
        block(BlockKind::Heading(3), "Green", 7),
        block(BlockKind::Paragraph, &sentences(8, "pear"), 9),
        block(BlockKind::Heading(2), "Plums", 11),
        block(BlockKind::Paragraph, &sentences(8, "plum"), 13),
    ];
    let chunks = chunk(&document(blocks), options(100, 20));
    let found =
        chunks.iter().map(|chunk| (chunk.title.as_str(), chunk.text.lines().next().unwrap(), chunk.line));
    let expected = [("Book", "Book", 1), ("Book › Pears › Green", "Pears", 5), ("Book › Plums", "Plums", 11)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    // A section begins afresh.
    assert!(chunks.iter().all(|chunk| chunk.overlap == 0));
}

#[test]
fn a_heading_is_not_separated_from_a_paragraph_that_barely_fits() {
    let long = sentences(14, "apple");
    let size = tokens::count(&long) + 1;
    let chunks = chunk(
        &document(vec![block(BlockKind::Heading(2), "All apples", 1), block(BlockKind::Paragraph, &long, 2)]),
        options(size, 8),
    );
    assert!(chunks[0].text.starts_with("All apples\n\nThe apple number 0 is here."), "{chunks:#?}");
}

#[test]
fn a_long_paragraph_is_cut_between_sentences_and_the_overlap_is_whole_sentences() {
    let chunks =
        chunk(&document(vec![block(BlockKind::Paragraph, &sentences(60, "fig"), 1)]), options(100, 20));
    assert!(chunks.len() > 3);
    for chunk in &chunks {
        assert!(chunk.text.starts_with("The fig") && chunk.text.ends_with("is here."), "{chunk:?}");
    }
    for pair in chunks.windows(2) {
        let overlap = pair[1].text[..pair[1].overlap].trim_end();
        assert!(overlap.starts_with("The fig") && pair[0].text.ends_with(overlap), "{pair:#?}");
    }
}

#[test]
fn code_is_cut_between_its_lines_and_keeps_its_indentation() {
    let body = (0..80).map(|n| format!("    let value_{n} = {n};")).collect::<Vec<_>>().join("\n");
    let code = format!("fn main() {{\n{body}\n}}");
    let chunks = chunk(&document(vec![block(BlockKind::Code, &code, 10)]), options(128, 32));
    assert!(chunks.len() > 3);
    for chunk in &chunks[1..] {
        assert!(chunk.text.starts_with("    let value_"), "{chunk:?}");
        let own = &chunk.text[chunk.overlap..];
        assert_eq!(own.lines().next(), code.lines().nth(chunk.line as usize - 10), "{chunk:?}");
        assert_eq!(own.lines().last(), code.lines().nth(chunk.end_line as usize - 10), "{chunk:?}");
    }
}

#[test]
fn text_without_a_border_is_cut_between_characters() {
    for run in ["a", "文", "👩‍👩‍👧", "0", "="] {
        let text = run.repeat(20_000 / run.len());
        let chunks = chunk(&document(vec![block(BlockKind::Paragraph, &text, 1)]), options(64, 8));
        assert_eq!(chunks.iter().map(|chunk| &chunk.text[chunk.overlap..]).collect::<String>(), text);
        assert!(chunks.iter().all(|chunk| tokens::count(&chunk.text) <= 64));
    }
}

#[test]
fn a_long_run_of_blanks_or_closing_marks_costs_no_more_than_its_length() {
    // With a look ahead from each of them, this would take many minutes.
    for run in [
        " ", ")", "\u{2019}", " \u{e31}", " \u{345}", "\u{301}", "\u{e31}", "\u{345}", "\u{93e}", "\u{102c}",
        "\u{ff9e}",
    ] {
        let text = format!("One.{}x", run.repeat((1 << 18) / run.len()));
        let chunks = chunk(&document(vec![block(BlockKind::Paragraph, &text, 1)]), options(64, 0));
        let own = chunks.iter().map(|chunk| letters(&chunk.text)).collect::<String>();
        assert_eq!(own, letters(&text), "{run:?}");
    }
}

#[test]
fn a_sentence_in_another_script_is_not_cut_between_its_words() {
    let text = format!("Слово {}конец. ", "слово ".repeat(80)).repeat(9);
    let chunks = chunk(&document(vec![block(BlockKind::Paragraph, &text, 1)]), options(512, 0));
    assert!(chunks.len() > 1);
    assert!(chunks.iter().all(|chunk| chunk.text.ends_with("конец.")), "{chunks:#?}");
}

#[test]
fn the_title_of_a_long_heading_is_cut_for_each_chunk_of_it() {
    // Joining the whole heading for each chunk would copy gigabytes.
    let heading = "These are the words of one. ".repeat(40_000);
    let chunks = chunk(&document(vec![block(BlockKind::Heading(1), &heading, 1)]), options(16, 0));
    assert!(chunks.len() > 10_000, "{}", chunks.len());
    let title = format!("Book › {}…", &heading[..MAX_TITLE_BYTES]);
    assert!(chunks.iter().all(|chunk| chunk.title == title), "{}", chunks[0].title);
}

/// The letters of the heading in a title of 200 characters, after `Book › `.
const MAX_TITLE_BYTES: usize = 193;

fn any_block() -> impl Strategy<Value = (BlockKind, String)> {
    let kind = prop_oneof![
        (1..=6_u8).prop_map(BlockKind::Heading),
        Just(BlockKind::Paragraph),
        Just(BlockKind::Paragraph),
        Just(BlockKind::Code),
        Just(BlockKind::Row),
    ];
    let word = prop_oneof![
        8 => "[a-z]{1,9}",
        1 => "[A-Z][a-z]{2,5}[.!?]",
        1 => "\\PC{1,6}",
        1 => "[a-z0-9=]{40,300}",
        1 => Just("文字を読む。".to_owned()),
    ];
    let gap = prop_oneof![9 => Just(" "), 2 => Just("\n"), 1 => Just("\n\n"), 1 => Just("\t  ")];
    let text = prop::collection::vec((word, gap), 0..60)
        .prop_map(|words| words.into_iter().map(|(word, gap)| word + gap).collect::<String>());
    (kind, text)
}

/// Everything that is not blank.
fn letters(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn chunks_rebuild_the_text_and_keep_their_limits(
        blocks in prop::collection::vec(any_block(), 0..12),
        size in 16..200_usize,
        overlap in 0..60_usize,
    ) {
        let overlap = overlap.min(size - 1);
        let mut line = 1;
        let blocks = blocks.into_iter().map(|(kind, text)| {
            let block = block(kind, &text, line);
            line = block.end_line + 2;
            block
        });
        let document = document(blocks.collect());
        let chunks = chunk(&document, ChunkOptions::new(size, overlap).unwrap());

        let whole = document.blocks.iter().map(|block| letters(&block.text)).collect::<String>();
        let own = chunks.iter().map(|chunk| letters(&chunk.text[chunk.overlap..])).collect::<String>();
        prop_assert_eq!(own, whole);
        for chunk in &chunks {
            prop_assert_eq!(tokens::count(&chunk.text), chunk.tokens as usize);
            prop_assert!(chunk.tokens as usize <= size);
            prop_assert!(chunk.line <= chunk.end_line);
            prop_assert!(tokens::count(chunk.text[..chunk.overlap].trim_end()) <= overlap + 1);
        }
        for pair in chunks.windows(2) {
            prop_assert!(pair[0].end_line <= pair[1].line);
        }
        // The first word of a chunk stands on the line it names.
        let mut source = vec![String::new(); line as usize + 1];
        for block in &document.blocks {
            for (row, at) in block.text.split('\n').zip(block.line as usize..) {
                source[at] = letters(row);
            }
        }
        for chunk in &chunks {
            let own = chunk.text[chunk.overlap..].trim_start();
            let first = letters(own.split('\n').next().unwrap_or_default());
            let named = &source[chunk.line as usize];
            prop_assert!(named.contains(&first) || first.contains(named.as_str()), "{first:?} is not in {named:?}");
        }
    }
}

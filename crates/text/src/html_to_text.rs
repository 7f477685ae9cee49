//! Converts HTML to text for models: headings, lists and links stay; scripts, styles and navigation are removed.
//!
//! Works on the tokens in one pass and builds no tree, so the work grows with the size of the page and not with its nesting.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{StartTag, Token, Tokenizer};
use url::Url;

/// A short page can have a long text, because links are written out.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Elements whose content is not text.
fn is_hidden(name: &[u8]) -> bool {
    matches!(
        name,
        b"script"
            | b"style"
            | b"noscript"
            | b"template"
            | b"svg"
            | b"math"
            | b"iframe"
            | b"object"
            | b"canvas"
            | b"select"
            | b"button"
            | b"textarea"
            | b"noframes"
            | b"noembed"
    )
}

/// Elements for navigation.
fn is_navigation(name: &[u8]) -> bool {
    matches!(name, b"nav" | b"aside" | b"footer")
}

/// Block elements.
fn is_block(name: &[u8]) -> bool {
    matches!(
        name,
        b"p" | b"div"
            | b"section"
            | b"article"
            | b"main"
            | b"header"
            | b"body"
            | b"form"
            | b"fieldset"
            | b"address"
            | b"ul"
            | b"ol"
            | b"li"
            | b"dl"
            | b"dt"
            | b"dd"
            | b"table"
            | b"caption"
            | b"tr"
            | b"pre"
            | b"blockquote"
            | b"figure"
            | b"figcaption"
            | b"hr"
            | b"details"
            | b"summary"
            | b"nav"
            | b"aside"
            | b"footer"
            | b"h1"
            | b"h2"
            | b"h3"
            | b"h4"
            | b"h5"
            | b"h6"
    )
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Navigation {
    Skip,
    Read,
}

/// The text of a page.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadableText {
    pub title: Option<String>,
    pub text: String,
}

/// A line of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLine {
    /// The offset in the text.
    pub start: usize,
    /// The offset of its first word in the page.
    pub source: usize,
    pub kind: LineKind,
    /// Whether an empty line precedes it.
    pub is_apart: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Text,
    /// From 1 to 6. The line begins with as many `#` and a space.
    Heading(u8),
    /// Unchanged, with its own line feeds.
    Preformatted,
}

#[derive(Debug, Clone, Copy)]
pub struct ReadOptions<'a> {
    /// The address of the page, to resolve its links. Without it, links are omitted.
    pub base: Option<&'a Url>,
    /// The approximate limit of the text.
    pub max_bytes: usize,
}

pub fn readable(html: &str, base: &Url) -> ReadableText {
    readable_lines(html, ReadOptions { base: Some(base), max_bytes: MAX_TEXT_BYTES }).0
}

/// Also returns the lines of the text with their offsets in the page.
pub fn readable_lines(html: &str, reading: ReadOptions) -> (ReadableText, Vec<TextLine>) {
    let page = render(html, reading, Navigation::Skip);
    if !page.0.text.is_empty() {
        return page;
    }
    // Some pages consist of navigation, and some never close it.
    render(html, reading, Navigation::Read)
}

fn render(html: &str, reading: ReadOptions, navigation: Navigation) -> (ReadableText, Vec<TextLine>) {
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    // The content of scripts and titles is not markup.
    emitter.naively_switch_states(true);
    let mut page = Page::new(reading.base, navigation);
    // Reading from a string never fails.
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        if page.out.len() > reading.max_bytes {
            break;
        }
        match token {
            Token::StartTag(tag) => {
                page.source = tag.span.start;
                page.open(&tag);
            }
            Token::EndTag(tag) => page.close(&tag.name),
            Token::String(text) => {
                page.source = text.span.start;
                page.text(&String::from_utf8_lossy(&text.value));
            }
            _ => {}
        }
    }
    page.finish()
}

struct Link {
    target: Option<Url>,
    /// The offset of its text.
    from: usize,
}

struct Page<'a> {
    base: Option<&'a Url>,
    navigation: Navigation,
    out: String,
    lines: Vec<TextLine>,
    /// The offset of the current token in the page.
    source: usize,
    /// The kind of the next line.
    kind: LineKind,
    title: String,
    is_in_title: bool,
    preformatted: usize,
    /// The outermost skipped element, and its nesting depth.
    skipped: Option<(Vec<u8>, usize)>,
    link: Option<Link>,
    /// Line feeds to write before the next word.
    breaks: usize,
    mark: String,
    space: bool,
}

impl<'a> Page<'a> {
    fn new(base: Option<&'a Url>, navigation: Navigation) -> Self {
        Page {
            base,
            navigation,
            out: String::new(),
            lines: Vec::new(),
            source: 0,
            kind: LineKind::Text,
            title: String::new(),
            is_in_title: false,
            preformatted: 0,
            skipped: None,
            link: None,
            breaks: 0,
            mark: String::new(),
            space: false,
        }
    }

    fn open(&mut self, tag: &StartTag<usize>) {
        let name: &[u8] = &tag.name;
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(skipped == name && !tag.self_closing);
            return;
        }
        let is_skipped = is_hidden(name) || (self.navigation == Navigation::Skip && is_navigation(name));
        if is_skipped && !tag.self_closing {
            self.skipped = Some((name.to_vec(), 1));
            return;
        }
        match name {
            b"title" => self.is_in_title = self.title.is_empty(),
            b"br" => self.breaks = self.breaks.max(1),
            b"a" => self.open_link(tag),
            b"img" => {
                if let Some(words) =
                    tag.attributes.get(&b"alt"[..]).filter(|words| !words.trim_ascii().is_empty())
                {
                    self.text(&format!(" [image: {}] ", String::from_utf8_lossy(words)));
                }
            }
            b"td" | b"th" => self.text(" | "),
            _ if is_block(name) => self.open_block(name),
            _ => {}
        }
    }

    fn open_block(&mut self, name: &[u8]) {
        self.block(name);
        self.kind = LineKind::Text;
        match name {
            [b'h', level @ b'1'..=b'6'] => {
                self.mark = "#".repeat(usize::from(level - b'0')) + " ";
                self.kind = LineKind::Heading(level - b'0');
            }
            b"li" => self.mark = "- ".to_owned(),
            // A paragraph in a list item keeps the mark of the item.
            _ => {}
        }
        self.preformatted += usize::from(name == b"pre");
    }

    fn close(&mut self, name: &[u8]) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped == name);
            if *depth == 0 {
                self.skipped = None;
                self.space = true;
            }
            return;
        }
        match name {
            b"title" => self.is_in_title = false,
            b"a" => self.close_link(),
            _ if is_block(name) => {
                self.block(name);
                self.mark.clear();
                self.kind = LineKind::Text;
                self.preformatted = self.preformatted.saturating_sub(usize::from(name == b"pre"));
            }
            _ => {}
        }
    }

    /// A block ends the line. Most blocks are also followed by an empty line.
    fn block(&mut self, name: &[u8]) {
        let breaks = if matches!(name, b"li" | b"tr" | b"dt" | b"dd" | b"div") { 1 } else { 2 };
        self.breaks = self.breaks.max(breaks);
    }

    fn open_link(&mut self, tag: &StartTag<usize>) {
        self.close_link();
        let target = tag.attributes.get(&b"href"[..]).map(|target| String::from_utf8_lossy(target));
        let target = target.filter(|target| !target.trim_start().starts_with('#'));
        let target = target.and_then(|target| self.base?.join(target.trim()).ok());
        let target = target.filter(|target| matches!(target.scheme(), "http" | "https"));
        self.link = Some(Link { target, from: self.out.len() });
    }

    /// Writes the target after the text of the link. A link without text, such as an icon, is omitted.
    fn close_link(&mut self) {
        if let Some(Link { target: Some(target), from }) = self.link.take()
            && self.out[from..].contains(char::is_alphanumeric)
        {
            self.out.push_str(&format!(" ({target})"));
        }
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if self.is_in_title {
            self.title.push_str(text);
            return;
        }
        if self.preformatted > 0 {
            self.begin();
            self.out.push_str(text);
            return;
        }
        for (index, word) in text.split(is_space).enumerate() {
            self.space |= index > 0;
            if !word.is_empty() {
                self.begin();
                self.out.push_str(word);
            }
        }
    }

    /// Writes the pending line feeds, mark or space before the next word.
    fn begin(&mut self) {
        let begins_line = self.breaks > 0 || self.out.is_empty();
        let mut is_apart = self.breaks > 1;
        if self.breaks > 0 && !self.out.is_empty() {
            // The offset of an open link must stay valid.
            let link = self.link.as_ref().map_or(0, |link| link.from);
            let trimmed = link + self.out[link..].trim_end_matches(is_space).len();
            self.out.truncate(trimmed);
            // Lines that were blank are gone, and so is the text at their offsets.
            while let Some(blank) = self.lines.pop_if(|line| line.start >= trimmed) {
                is_apart |= blank.is_apart;
            }
            self.out.push_str(if self.breaks > 1 { "\n\n" } else { "\n" });
        } else if self.space && !self.out.is_empty() && self.mark.is_empty() {
            self.out.push(' ');
        }
        if begins_line {
            let kind = if self.preformatted > 0 { LineKind::Preformatted } else { self.kind };
            self.lines.push(TextLine { start: self.out.len(), source: self.source, kind, is_apart });
        }
        self.out.push_str(&std::mem::take(&mut self.mark));
        self.breaks = 0;
        self.space = false;
    }

    fn finish(mut self) -> (ReadableText, Vec<TextLine>) {
        self.close_link();
        let title = self.title.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let words = self.out.trim_start_matches(is_space);
        let blank = self.out.len() - words.len();
        let text = words.trim_end_matches(is_space);
        for line in &mut self.lines {
            line.start = line.start.saturating_sub(blank).min(text.len());
        }
        let title = Some(title).filter(|title| !title.is_empty());
        (ReadableText { title, text: text.to_owned() }, self.lines)
    }
}

/// The spaces that a browser collapses. A no-break space is kept.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

#[cfg(test)]
#[path = "html_to_text_tests.rs"]
mod tests;

//! HTML into text that a model can read: headings, lists and links stay, scripts, styles and navigation go.
//!
//! Works on the tokens of the page in one pass and builds no tree, so that its work grows with the page and not with how
//! cunningly the page is nested.

use html5gum::emitters::default::DefaultEmitter;
use html5gum::{StartTag, Token, Tokenizer};
use url::Url;

/// More text than this nobody reads. It is here because links are written out: a page can be short and its text long.
const MAX_TEXT_BYTES: usize = 1 << 20;

/// Elements whose content is not for readers.
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

/// Elements that lead around a site rather than belong to the page.
fn is_navigation(name: &[u8]) -> bool {
    matches!(name, b"nav" | b"aside" | b"footer")
}

/// Elements that stand on lines of their own.
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

/// Whether to read what leads around the site.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Navigation {
    Skip,
    Read,
}

/// What a page says.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadableText {
    pub title: Option<String>,
    pub text: String,
}

/// A line of the text, and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLine {
    /// Where it begins in the text.
    pub start: usize,
    /// Where its first word stands in the page.
    pub source: usize,
    pub kind: LineKind,
    /// Whether an empty line stands before it.
    pub is_apart: bool,
}

/// What a line is to its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Text,
    /// From 1 to 6. The text has as many `#` and a space before its words.
    Heading(u8),
    /// As it is in the page, with line feeds of its own.
    Preformatted,
}

/// What to write out.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions<'a> {
    /// Where the page was found, so that its links can be written out. Without it they are left out.
    pub base: Option<&'a Url>,
    /// About how much text there may be. What is more is left out.
    pub max_bytes: usize,
}

/// Reads a page that was found at `base`.
pub fn readable(html: &str, base: &Url) -> ReadableText {
    readable_lines(html, ReadOptions { base: Some(base), max_bytes: MAX_TEXT_BYTES }).0
}

/// Reads a page and tells where each line of its text comes from.
pub fn readable_lines(html: &str, reading: ReadOptions) -> (ReadableText, Vec<TextLine>) {
    let page = render(html, reading, Navigation::Skip);
    if !page.0.text.is_empty() {
        return page;
    }
    // Some pages are all navigation, and some never close it.
    render(html, reading, Navigation::Read)
}

fn render(html: &str, reading: ReadOptions, navigation: Navigation) -> (ReadableText, Vec<TextLine>) {
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    // The content of scripts and titles is no markup.
    emitter.naively_switch_states(true);
    let mut page = Page::new(reading.base, navigation);
    // Reading from a string never fails, which the error's type says too.
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
    /// Where its text begins.
    from: usize,
}

struct Page<'a> {
    base: Option<&'a Url>,
    navigation: Navigation,
    out: String,
    lines: Vec<TextLine>,
    /// Where in the page the token at hand begins.
    source: usize,
    /// What the next line is.
    kind: LineKind,
    title: String,
    is_in_title: bool,
    preformatted: usize,
    /// The outermost element being left out, and how many of its kind are open.
    left_out: Option<(Vec<u8>, usize)>,
    link: Option<Link>,
    /// Line feeds and marks owed before the next word.
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
            left_out: None,
            link: None,
            breaks: 0,
            mark: String::new(),
            space: false,
        }
    }

    fn open(&mut self, tag: &StartTag<usize>) {
        let name: &[u8] = &tag.name;
        if let Some((left_out, depth)) = &mut self.left_out {
            *depth += usize::from(left_out == name && !tag.self_closing);
            return;
        }
        let is_skipped = is_hidden(name) || (self.navigation == Navigation::Skip && is_navigation(name));
        if is_skipped && !tag.self_closing {
            self.left_out = Some((name.to_vec(), 1));
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
            // A paragraph inside a list item leaves the item its mark.
            _ => {}
        }
        self.preformatted += usize::from(name == b"pre");
    }

    fn close(&mut self, name: &[u8]) {
        if let Some((left_out, depth)) = &mut self.left_out {
            *depth -= usize::from(left_out == name);
            if *depth == 0 {
                self.left_out = None;
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

    /// A block ends the line; most leave an empty one too.
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

    /// The target follows its words. A link without words (an icon, say) tells a reader nothing.
    fn close_link(&mut self) {
        if let Some(Link { target: Some(target), from }) = self.link.take()
            && self.out[from..].contains(char::is_alphanumeric)
        {
            self.out.push_str(&format!(" ({target})"));
        }
    }

    fn text(&mut self, text: &str) {
        if self.left_out.is_some() {
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

    /// Pays what is owed before the next word: lines, marks, or a space.
    fn begin(&mut self) {
        let begins_line = self.breaks > 0 || self.out.is_empty();
        let is_apart = self.breaks > 1;
        if self.breaks > 0 && !self.out.is_empty() {
            let trimmed = self.out.trim_end_matches(is_space).len();
            // The words of a link must stay where the link remembers them.
            if self.link.as_ref().is_none_or(|link| link.from <= trimmed) {
                self.out.truncate(trimmed);
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

/// Space that a browser folds; a no-break space is one that is meant.
fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

#[cfg(test)]
#[path = "readable_tests.rs"]
mod tests;

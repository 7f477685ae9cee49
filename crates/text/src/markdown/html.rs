//! Markdown as HTML for the pages.
//!
//! The HTML is safe by construction and needs no sanitiser: tags and attribute names are constants of this file, every character
//! of the text is escaped, HTML in the text is shown as text, an address is a link only if it is absolute and its scheme is in
//! `SCHEMES`, and nothing loads by itself: an image is a link to the image. Formulas are written by `math` under the same rules.

use pulldown_cmark::{
    Alignment, CodeBlockKind, Event, HeadingLevel, LinkType, Tag, TagEnd, TextMergeWithOffset,
};
use url::Url;

use super::source::{MarkdownSource, is_line_break};
use crate::escape::escaped;
use crate::math::{FormulaPlace, math_ml};

/// Elements inside each other. Deeper ones get no tags, because browsers stop nesting too.
const MAX_DEPTH: usize = 32;

/// Longer addresses are text.
const MAX_ADDRESS: usize = 2000;

/// The rest of the line above code. The page handles the button.
const COPY: &str = "<button type=\"button\" class=\"small\" aria-label=\"Copy code\">Copy</button></figcaption>\
    <pre tabindex=\"0\"><code>";

const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

#[derive(Default)]
pub(super) struct HtmlRenderer {
    out: String,
    /// The tags that close the open elements.
    open: Vec<&'static str>,
    labels: Vec<Label>,
    is_linked: bool,
    is_code: bool,
    rank: u8,
    /// Whether the next code continues a block of code.
    is_code_continued: bool,
    alignments: Vec<Alignment>,
    column: usize,
    /// Cells without text at the end of the row so far.
    empty_cells: usize,
    is_head: bool,
}

/// The text of a link.
struct Label {
    begins: usize,
    /// Shown if the text is empty.
    fallback: String,
    is_link: bool,
}

impl HtmlRenderer {
    /// The HTML of a text, and the rank of its last heading. `rank` is that of the last heading before, `opening` the first lines
    /// of the text if they are repeated because a block continues.
    pub(super) fn render(source: &str, rank: u8, opening: Option<&str>) -> (String, u8) {
        let mut renderer = HtmlRenderer {
            rank,
            // Only code has one such line.
            is_code_continued: opening.is_some_and(|lines| lines.lines().count() == 1),
            ..HtmlRenderer::default()
        };
        // Merged, because an address can consist of several events.
        for (event, range) in TextMergeWithOffset::new(MarkdownSource::with_formulas(source).events()) {
            match event {
                Event::Start(Tag::TableCell) if range.is_empty() => {
                    renderer.empty_cells += 1;
                    renderer.open.push("");
                }
                Event::Start(tag) => renderer.start(tag),
                Event::End(tag) => renderer.end(tag),
                Event::InlineHtml(html) if is_line_break(&html) => renderer.out.push_str("<br>"),
                Event::Text(text) if renderer.is_code => renderer.code(&text),
                Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => renderer.text(&text),
                Event::Code(text) => {
                    renderer.out.push_str("<code>");
                    renderer.escape(&text);
                    renderer.out.push_str("</code>");
                }
                Event::InlineMath(formula) => match source.get(range.end..) {
                    // Two amounts of money.
                    Some(rest) if rest.starts_with(|next: char| next.is_ascii_digit()) => {
                        renderer.text(&format!("${formula}$"));
                    }
                    _ => renderer.formula(&formula, FormulaPlace::Line, source.get(range)),
                },
                Event::DisplayMath(formula) => {
                    let written = source.get(range);
                    let is_line = written.is_some_and(|written| written.starts_with("\\("));
                    let place = if is_line { FormulaPlace::Line } else { FormulaPlace::Block };
                    renderer.formula(&formula, place, written);
                }
                // A line ends where its writer ended it: models write verses and lists of lines that way.
                Event::SoftBreak | Event::HardBreak => renderer.out.push_str("<br>"),
                Event::Rule => renderer.out.push_str("<hr>"),
                Event::TaskListMarker(is_done) => {
                    let mark = if is_done { "☑" } else { "☐" };
                    renderer.out.push_str(&format!("<span class=\"task\">{mark}</span> "));
                }
                // The parser has the other kinds switched off.
                _ => {}
            }
        }
        (renderer.out, renderer.rank)
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.element("<p>", "</p>"),
            Tag::Heading { level, .. } => self.heading(level),
            Tag::BlockQuote(_) => self.element("<blockquote>", "</blockquote>"),
            Tag::HtmlBlock => self.element("<pre class=\"plain\">", "</pre>"),
            Tag::CodeBlock(kind) => {
                self.is_code = true;
                let language = match &kind {
                    CodeBlockKind::Fenced(language) => escaped(language.trim()),
                    CodeBlockKind::Indented => String::new(),
                };
                let opening = format!("<figure class=\"code\"><figcaption><span>{language}</span>{COPY}");
                self.element(&opening, "</code></pre></figure>");
            }
            Tag::List(None) => self.element("<ul>", "</ul>"),
            Tag::List(Some(1)) => self.element("<ol>", "</ol>"),
            Tag::List(Some(number)) => self.element(&format!("<ol start=\"{number}\">"), "</ol>"),
            Tag::Item => self.element("<li>", "</li>"),
            Tag::Table(alignments) => {
                self.alignments = alignments;
                self.element("<div class=\"table\" tabindex=\"0\"><table>", "</tbody></table></div>");
            }
            Tag::TableHead => {
                self.begin_row(true);
                self.element("<thead><tr>", "</tr></thead><tbody>");
            }
            Tag::TableRow => {
                self.begin_row(false);
                self.element("<tr>", "</tr>");
            }
            Tag::TableCell => self.cell(),
            Tag::Strong => self.element("<strong>", "</strong>"),
            Tag::Emphasis => self.element("<em>", "</em>"),
            Tag::Strikethrough => self.element("<del>", "</del>"),
            Tag::Link { link_type: LinkType::Email, dest_url, .. } => {
                self.link(&format!("mailto:{dest_url}"), "")
            }
            Tag::Link { dest_url, .. } => self.link(&dest_url, ""),
            // A browser that loads an image shows another server that the page is read.
            Tag::Image { dest_url, .. } => self.link(&dest_url, "🖼 "),
            // The parser has the other kinds switched off.
            _ => self.element("", ""),
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::CodeBlock => self.is_code = false,
            TagEnd::TableCell => self.column += 1,
            TagEnd::Link | TagEnd::Image => self.end_label(),
            _ => {}
        }
        if let Some(close) = self.open.pop() {
            self.out.push_str(close);
        }
    }

    fn element(&mut self, opening: &str, closing: &'static str) {
        let is_shown = self.open.len() < MAX_DEPTH;
        self.open.push(if is_shown { closing } else { "" });
        if is_shown {
            self.out.push_str(opening);
        }
    }

    /// Screen readers navigate by headings, so none is more than one level below the one before. The page itself has two levels
    /// above.
    fn heading(&mut self, level: HeadingLevel) {
        if !self.open.is_empty() {
            return self.element("<p><strong>", "</strong></p>");
        }
        self.rank = (level as u8).min(self.rank.saturating_add(1));
        match self.rank {
            1 => self.element("<h3>", "</h3>"),
            2 => self.element("<h4>", "</h4>"),
            3 => self.element("<h5>", "</h5>"),
            _ => self.element("<h6>", "</h6>"),
        }
    }

    fn begin_row(&mut self, is_head: bool) {
        self.is_head = is_head;
        self.column = 0;
        self.empty_cells = 0;
    }

    /// Empty cells at the end of a row are left away: short rows of a wide table would become far longer than their text.
    fn cell(&mut self) {
        let empty = if self.is_head { "<th></th>" } else { "<td></td>" };
        self.out.push_str(&empty.repeat(std::mem::take(&mut self.empty_cells)));
        let class = match self.alignments.get(self.column) {
            Some(Alignment::Right) => "right",
            Some(Alignment::Center) => "center",
            Some(Alignment::Left | Alignment::None) | None => "left",
        };
        match self.is_head {
            true => self.element(&format!("<th class=\"{class}\" scope=\"col\">"), "</th>"),
            false => self.element(&format!("<td class=\"{class}\">"), "</td>"),
        }
    }

    fn link(&mut self, address: &str, mark: &str) {
        let fallback = if mark.is_empty() { address } else { "picture" }.to_owned();
        let address = web_address(address).filter(|_| !self.is_linked);
        let is_link = address.is_some();
        match address {
            Some(address) => {
                let address = escaped(&address);
                let opening = format!(
                    "<a href=\"{address}\" target=\"_blank\" rel=\"noopener noreferrer\" title=\"{address}\">{mark}"
                );
                self.element(&opening, "</a>");
            }
            None => self.element("<span>", "</span>"),
        }
        self.is_linked |= is_link;
        self.labels.push(Label { begins: self.out.len(), fallback, is_link });
    }

    fn end_label(&mut self) {
        let Some(label) = self.labels.pop() else { return };
        if self.out.len() == label.begins {
            self.escape(&label.fallback);
        }
        if label.is_link {
            self.is_linked = false;
        }
    }

    /// A formula, or what was written if it is not understood.
    fn formula(&mut self, formula: &str, place: FormulaPlace, written: Option<&str>) {
        match math_ml(formula, place) {
            Some(math) => self.out.push_str(&math),
            None => {
                self.out.push_str("<code class=\"formula\">");
                self.escape(written.unwrap_or(formula));
                self.out.push_str("</code>");
            }
        }
    }

    fn code(&mut self, text: &str) {
        if std::mem::take(&mut self.is_code_continued) {
            self.out.push('\n');
        }
        self.escape(text.strip_suffix('\n').unwrap_or(text));
    }

    /// Text outside of code, in which addresses become links.
    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = address_start(rest).filter(|_| !self.is_linked) {
            let (before, from) = rest.split_at(at);
            self.escape(before);
            let (address, others) = from.split_at(address_length(from));
            if web_address(address).is_some() {
                self.link(address, "");
                self.escape(address);
                self.end(TagEnd::Link);
            } else {
                self.escape(address);
            }
            rest = others;
        }
        self.escape(rest);
    }

    fn escape(&mut self, text: &str) {
        self.out.push_str(&escaped(text));
    }
}

/// The address in its normal form, if it is absolute and leads to the web or to a mailbox.
fn web_address(address: &str) -> Option<String> {
    let url = Url::parse(address).ok().filter(|_| address.len() <= MAX_ADDRESS)?;
    SCHEMES.contains(&url.scheme()).then(|| url.into())
}

/// Where an address without marks around it begins.
fn address_start(text: &str) -> Option<usize> {
    let begins = |at: usize| {
        let is_address = text[at..].starts_with("http://") || text[at..].starts_with("https://");
        is_address && !text[..at].ends_with(char::is_alphanumeric)
    };
    text.match_indices("http").map(|(at, _)| at).find(|at| begins(*at))
}

/// Bytes of the address that a text begins with, without the punctuation of the sentence around it.
fn address_length(text: &str) -> usize {
    let ends = |character: char| character.is_whitespace() || "<>\"`|".contains(character);
    let mut address = &text[..text.find(ends).unwrap_or(text.len())];
    if address.len() > MAX_ADDRESS {
        return address.len();
    }
    loop {
        let is_unpaired =
            address.ends_with(')') && address.matches(')').count() > address.matches('(').count();
        if !is_unpaired && !address.ends_with(['.', ',', ';', ':', '!', '?', '\'', '*', '_', '~', ']']) {
            return address.len();
        }
        address = &address[..address.len() - 1];
    }
}

//! One block of Markdown as lines for a terminal: text wrapped, lists indented, code as it is.

use anstyle::Style;
use hob_text::markdown::{MarkdownSource, is_line_break};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Tag, TagEnd};

use super::MarkdownLook;
use super::canvas::Canvas;
use super::table::Table;
use super::words::Words;
use crate::output::style::{DIM, NAME, STRONG};
use crate::output::text::printable;

/// The longest rule.
const RULE: usize = 40;

/// The line below the header of a table begins with this.
const HEADER_END: char = '╞';

/// The block in lines, without a newline at the end. The beginning of a block stays the same when more of the block arrives.
pub fn render(source: &str, look: MarkdownLook) -> String {
    let mut renderer = Renderer {
        source,
        look,
        canvas: Canvas::new(look),
        words: Words::default(),
        styles: Vec::new(),
        lists: Vec::new(),
        links: Vec::new(),
        code: None,
        table: None,
        is_open: false,
        is_fresh: true,
    };
    for (event, range) in MarkdownSource::new(source).events() {
        renderer.take(event, range.start, range.end);
    }
    renderer.flush();
    renderer.canvas.into_text()
}

struct Renderer<'a> {
    source: &'a str,
    look: MarkdownLook,
    canvas: Canvas,
    words: Words,
    /// Of the text that is open, the innermost last.
    styles: Vec<Style>,
    /// The number of the next item, in lists that have numbers.
    lists: Vec<Option<u64>>,
    links: Vec<Link>,
    code: Option<Code<'a>>,
    table: Option<Table>,
    /// Whether a piece of running text is open.
    is_open: bool,
    /// Whether nothing stands yet in the item, quotation or block that is open.
    is_fresh: bool,
}

struct Link {
    address: String,
    text: String,
}

struct Code<'a> {
    text: String,
    /// The block with the lines around the code. The closing one may be still to come.
    fenced: Option<&'a str>,
}

impl<'a> Renderer<'a> {
    fn take(&mut self, event: Event<'_>, start: usize, end: usize) {
        match event {
            Event::Start(tag) => self.start(tag, start, end),
            Event::End(tag) => self.end(tag, start, end),
            Event::InlineHtml(html) if is_line_break(&html) => self.break_line(start),
            // A character reference such as `&#27;` is that character by now, and controls a terminal like any other.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
                self.text(&printable(&text), start)
            }
            Event::Code(code) => self.inline_code(&printable(&code), start),
            Event::SoftBreak | Event::HardBreak => self.break_line(start),
            Event::Rule => {
                self.separate(start);
                self.rule();
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "☑ " } else { "☐ " }, start),
            // The parser has the other kinds switched off.
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>, start: usize, end: usize) {
        match tag {
            Tag::Paragraph => {
                self.separate(start);
                self.is_open = true;
            }
            Tag::Heading { level, .. } => {
                self.separate(start);
                self.is_open = true;
                if !self.is_underlined(start) {
                    self.begin_heading(level);
                }
            }
            Tag::BlockQuote(_) => {
                self.separate(start);
                self.canvas.push_margin("│ ", self.look.style(DIM));
                self.is_fresh = true;
            }
            Tag::CodeBlock(CodeBlockKind::Fenced(_)) => {
                self.begin_code(Some(&self.source[start..end]), start)
            }
            Tag::CodeBlock(CodeBlockKind::Indented) | Tag::HtmlBlock => self.begin_code(None, start),
            Tag::List(number) => {
                self.flush();
                self.lists.push(number);
            }
            Tag::Item => self.begin_item(start),
            Tag::Table(alignments) => {
                self.separate(start);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => self.in_table(Table::begin_row),
            Tag::TableCell => self.in_table(Table::begin_cell),
            Tag::Strong => self.emphasise(Style::bold, "**", start),
            Tag::Emphasis => self.emphasise(Style::italic, "*", start),
            Tag::Strikethrough => self.emphasise(Style::strikethrough, "~~", start),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(Link { address: printable(&dest_url).into_owned(), text: String::new() });
            }
            // The parser has the other kinds switched off.
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd, start: usize, end: usize) {
        match tag {
            TagEnd::Paragraph => self.flush(),
            TagEnd::Heading(level) => {
                self.flush();
                if !self.is_underlined(start) {
                    self.styles.pop();
                } else if level == HeadingLevel::H2 {
                    // The line below was meant as a rule more often than not, and the text is shown already.
                    self.separate(end);
                    self.rule();
                }
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.canvas.pop_margin();
                self.is_fresh = false;
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush();
                self.canvas.pop_margin();
                self.is_fresh = false;
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Strong => self.relax("**"),
            TagEnd::Emphasis => self.relax("*"),
            TagEnd::Strikethrough => self.relax("~~"),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => {}
        }
    }

    /// Ends what stands above, and leaves a line free where the text does, or between blocks of the whole.
    fn separate(&mut self, at: usize) {
        self.flush();
        if !self.is_fresh {
            self.canvas.newline();
            let is_outermost = self.canvas.is_outermost() && self.lists.is_empty();
            if is_outermost || self.is_line_free_before(at) {
                self.canvas.newline();
            }
        }
        self.is_fresh = false;
    }

    fn is_line_free_before(&self, at: usize) -> bool {
        let mut above = self.source[..at].rsplit('\n').skip(1);
        above.next().is_some_and(|line| line.trim_matches([' ', '\t', '>']).is_empty())
    }

    /// Whether a heading is one by the line below it.
    fn is_underlined(&self, start: usize) -> bool {
        !self.source[start..].starts_with('#')
    }

    fn begin_heading(&mut self, level: HeadingLevel) {
        if !self.look.has_colours {
            self.canvas.mark(&"#".repeat(level as usize), Style::new());
        }
        self.styles.push(match level {
            HeadingLevel::H1 => self.look.style(STRONG.underline()),
            _ => self.look.style(STRONG),
        });
    }

    fn begin_item(&mut self, start: usize) {
        self.separate(start);
        let depth = self.lists.len();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{}.", *number - 1)
            }
            _ if depth % 2 == 1 => "•".to_owned(),
            _ => "◦".to_owned(),
        };
        self.canvas.mark(&mark, self.look.style(DIM));
        self.canvas.push_margin(&" ".repeat(mark.chars().count() + 1), Style::new());
        self.is_fresh = true;
    }

    /// Text goes on a line of its own where none is open.
    fn open(&mut self, at: usize) {
        if !self.is_open {
            self.separate(at);
            self.is_open = true;
        }
    }

    fn text(&mut self, text: &str, at: usize) {
        if let Some(code) = &mut self.code {
            code.text.push_str(text);
            return;
        }
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
        if let Some(table) = &mut self.table {
            table.text(text);
        } else {
            self.open(at);
            self.words.text(text, self.style());
        }
    }

    fn inline_code(&mut self, code: &str, at: usize) {
        let marked = format!("`{code}`");
        if let Some(table) = &mut self.table {
            table.text(if self.look.has_colours { code } else { &marked });
            return;
        }
        self.open(at);
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(code);
        }
        if self.look.has_colours {
            let style = self.style().fg_color(NAME.get_fg_color());
            self.words.text(code, style);
        } else {
            self.words.text(&marked, Style::new());
        }
    }

    fn break_line(&mut self, at: usize) {
        if let Some(table) = &mut self.table {
            table.text(" ");
        } else if let Some(code) = &mut self.code {
            code.text.push('\n');
        } else {
            self.open(at);
            self.words.break_line();
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// Text from here on looks different; where it cannot, it is put between its signs.
    fn emphasise(&mut self, change: fn(Style) -> Style, signs: &str, at: usize) {
        if self.look.has_colours {
            self.styles.push(change(self.style()));
        } else {
            self.text(signs, at);
            self.styles.push(Style::new());
        }
    }

    fn relax(&mut self, signs: &str) {
        self.styles.pop();
        if !self.look.has_colours {
            self.text(signs, self.source.len());
        }
    }

    fn end_link(&mut self) {
        let Some(Link { address, text }) = self.links.pop() else { return };
        let is_told = text == address || address.strip_prefix("mailto:") == Some(&text);
        if is_told || address.is_empty() || address.starts_with('#') {
            return;
        }
        let shown = format!(" ({address})");
        if let Some(table) = &mut self.table {
            table.text(&shown);
        } else {
            self.words.text(&shown, self.look.style(DIM));
        }
    }

    fn begin_code(&mut self, fenced: Option<&'a str>, start: usize) {
        self.separate(start);
        self.code = Some(Code { text: String::new(), fenced });
    }

    fn end_code(&mut self) {
        let Some(Code { text, fenced }) = self.code.take() else { return };
        let (plain, dim) = (self.look.style(NAME), self.look.style(DIM));
        let opening = fenced.and_then(|block| block.lines().next()).map(str::trim);
        let closing = fenced.zip(opening).and_then(|(block, opening)| closing_fence(block, opening, &text));
        let fence = |line: Option<&'a str>| line.into_iter().map(move |line| (line, dim));
        self.verbatim(fence(opening).chain(text.lines().map(|line| (line, plain))).chain(fence(closing)));
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let grid = table.render(self.canvas.room());
        let (bold, mut is_header) = (self.look.style(STRONG), true);
        let lines = grid.lines().map(|line| {
            is_header &= !line.starts_with(HEADER_END);
            (line, if is_header { bold } else { Style::new() })
        });
        self.verbatim(lines);
    }

    fn rule(&mut self) {
        let rule = "─".repeat(self.canvas.room().min(RULE));
        self.canvas.verbatim(&rule, self.look.style(DIM));
    }

    fn verbatim<'l>(&mut self, lines: impl Iterator<Item = (&'l str, Style)>) {
        for (number, (line, style)) in lines.enumerate() {
            if number > 0 {
                self.canvas.newline();
            }
            self.canvas.verbatim(line, style);
        }
    }

    fn in_table(&mut self, change: fn(&mut Table)) {
        if let Some(table) = &mut self.table {
            change(table);
        }
    }

    /// Puts the words that were collected on the canvas.
    fn flush(&mut self) {
        if std::mem::take(&mut self.is_open) {
            let words = self.words.take();
            self.canvas.words(words);
            self.is_fresh = false;
        }
    }
}

/// The line that closes fenced code, without what stands before it in items and quotations.
fn closing_fence<'a>(block: &'a str, opening: &str, code: &str) -> Option<&'a str> {
    // The lines are those of the code and two more.
    let last = block.lines().nth(code.lines().count() + 1)?.trim_matches([' ', '\t', '>']);
    (!last.is_empty() && last.chars().all(|sign| opening.starts_with(sign))).then_some(last)
}

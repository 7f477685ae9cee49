//! Reads a formula and writes its MathML. A part that is unknown makes the whole formula unknown.

use super::cells::CellAlignment;
use super::letters::LetterStyle;
use super::symbols::{AccentPlace, SymbolKind, accent, space, symbol};
use crate::escape::escaped;

/// Parts inside each other.
const MAX_DEPTH: usize = 32;

/// Where a formula stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FormulaPlace {
    /// In a line of text.
    Line,
    /// On its own.
    Block,
}

/// A part of a formula, before its scripts.
struct Atom {
    ml: String,
    /// Whether its scripts stand above and below it in a formula of its own.
    has_limits: bool,
}

impl Atom {
    fn plain(ml: String) -> Self {
        Atom { ml, has_limits: false }
    }

    fn with_limits(ml: String) -> Self {
        Atom { ml, has_limits: true }
    }
}

/// The rest of a formula.
pub(super) struct FormulaParser<'a> {
    rest: &'a str,
    place: FormulaPlace,
    depth: usize,
}

impl<'a> FormulaParser<'a> {
    pub(super) fn new(source: &'a str, place: FormulaPlace) -> Self {
        FormulaParser { rest: source, place, depth: 0 }
    }

    /// The whole formula.
    pub(super) fn formula(mut self) -> Option<String> {
        let content = self.row()?;
        self.rest.is_empty().then_some(content)
    }

    /// A formula inside this one.
    fn inner(&self, source: &'a str) -> Option<String> {
        FormulaParser { rest: source, place: self.place, depth: self.enter()? }.formula()
    }

    /// The next depth, if it is allowed.
    fn enter(&self) -> Option<usize> {
        (self.depth < MAX_DEPTH).then_some(self.depth + 1)
    }

    /// Parts up to the end of the formula, of a group, of a cell, or of what `\left` began.
    fn row(&mut self) -> Option<String> {
        let inside = self.enter()?;
        let outside = std::mem::replace(&mut self.depth, inside);
        let mut out = String::new();
        while !self.is_at_end() {
            let atom = self.atom()?;
            out.push_str(&self.with_scripts(atom)?);
            self.skip_space();
        }
        self.depth = outside;
        Some(out)
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.rest.is_empty()
            || self.rest.starts_with(['}', '&'])
            || self.rest.starts_with("\\\\")
            || matches!(self.next_command(), Some("right" | "middle" | "end"))
    }

    fn atom(&mut self) -> Option<Atom> {
        if self.rest.starts_with('{') {
            return Some(Atom::plain(format!("<mrow>{}</mrow>", self.group()?)));
        }
        if self.rest.starts_with(['^', '_']) {
            return Some(Atom::plain("<mrow></mrow>".to_owned()));
        }
        if self.rest.starts_with('\\') {
            return self.command();
        }
        let digits = self.number_length();
        if digits > 0 {
            return Some(Atom::plain(format!("<mn>{}</mn>", self.take(digits))));
        }
        self.character()
    }

    /// Bytes of the number that comes next.
    fn number_length(&self) -> usize {
        let bytes = self.rest.as_bytes();
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let mut end = 0;
        while is_digit(end) || (end > 0 && matches!(bytes.get(end), Some(b'.' | b',')) && is_digit(end + 1)) {
            end += 1;
        }
        end
    }

    fn character(&mut self) -> Option<Atom> {
        let character = self.rest.chars().next()?;
        self.take(character.len_utf8());
        let ml = match character {
            '~' => space_ml("0.33em"),
            '-' => operator("−"),
            '*' => operator("∗"),
            '\'' => operator("′"),
            '$' | '#' | '%' => return None,
            other if other.is_control() => return None,
            other if other.is_alphabetic() => format!("<mi>{other}</mi>"),
            other if other.is_numeric() => format!("<mn>{other}</mn>"),
            other => operator(other.encode_utf8(&mut [0; 4])),
        };
        Some(Atom::plain(ml))
    }

    fn with_scripts(&mut self, base: Atom) -> Option<String> {
        let Atom { ml, mut has_limits } = base;
        let (mut below, mut above) = (None, String::new());
        let mut is_raised = false;
        loop {
            self.skip_space();
            if self.rest.starts_with('\'') {
                self.take(1);
                above.push_str("<mo>′</mo>");
            } else if self.rest.starts_with('^') && !is_raised {
                self.take(1);
                above.push_str(&self.argument()?);
                is_raised = true;
            } else if self.rest.starts_with('_') && below.is_none() {
                self.take(1);
                below = Some(self.argument()?);
            } else if let Some(name @ ("limits" | "nolimits")) = self.next_command() {
                has_limits = name == "limits";
                self.take(name.len() + 1);
            } else {
                break;
            }
        }
        // A second script of the same kind.
        if self.rest.starts_with(['^', '_']) {
            return None;
        }
        let above = (!above.is_empty()).then(|| format!("<mrow>{above}</mrow>"));
        let is_stacked = has_limits && self.place == FormulaPlace::Block;
        Some(match (below, above, is_stacked) {
            (None, None, _) => ml,
            (Some(below), None, false) => format!("<msub>{ml}{below}</msub>"),
            (None, Some(above), false) => format!("<msup>{ml}{above}</msup>"),
            (Some(below), Some(above), false) => format!("<msubsup>{ml}{below}{above}</msubsup>"),
            (Some(below), None, true) => format!("<munder>{ml}{below}</munder>"),
            (None, Some(above), true) => format!("<mover>{ml}{above}</mover>"),
            (Some(below), Some(above), true) => format!("<munderover>{ml}{below}{above}</munderover>"),
        })
    }

    /// What a command or a script applies to: a group, a command, or one character.
    fn argument(&mut self) -> Option<String> {
        self.skip_space();
        match self.rest.chars().next()? {
            '{' => Some(format!("<mrow>{}</mrow>", self.group()?)),
            '\\' => Some(self.command()?.ml),
            '}' | '&' | '^' | '_' => None,
            digit if digit.is_ascii_digit() => Some(format!("<mn>{}</mn>", self.take(1))),
            _ => Some(self.character()?.ml),
        }
    }

    /// The content of a group in braces.
    fn group(&mut self) -> Option<String> {
        self.expect("{")?;
        let content = self.row()?;
        self.expect("}")?;
        Some(content)
    }

    /// The source of a group in braces, or of one character or command.
    fn raw_argument(&mut self) -> Option<&'a str> {
        self.skip_space();
        if let Some(name) = self.next_command() {
            return Some(self.take(name.len() + 1));
        }
        if !self.rest.starts_with('{') {
            let character = self.rest.chars().next().filter(|character| !"}&^_".contains(*character))?;
            return Some(self.take(character.len_utf8()));
        }
        let mut depth = 0_usize;
        let mut is_escaped = false;
        for (at, character) in self.rest.char_indices() {
            match character {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let content = self.rest.get(1..at);
                self.take(at + 1);
                return content;
            }
        }
        None
    }

    /// The source in brackets, if there is any.
    fn option(&mut self) -> Option<Option<&'a str>> {
        self.skip_space();
        if !self.rest.starts_with('[') {
            return Some(None);
        }
        let end = self.rest.find(']')?;
        let content = self.rest.get(1..end);
        self.take(end + 1);
        Some(content)
    }

    fn command(&mut self) -> Option<Atom> {
        let inside = self.enter()?;
        let outside = std::mem::replace(&mut self.depth, inside);
        let atom = self.read_command();
        self.depth = outside;
        atom
    }

    fn read_command(&mut self) -> Option<Atom> {
        let name = self.next_command()?;
        self.take(name.len() + 1);
        if let Some((kind, text)) = symbol(name) {
            return Some(match kind {
                SymbolKind::Identifier | SymbolKind::Function => Atom::plain(format!("<mi>{text}</mi>")),
                SymbolKind::Operator => Atom::plain(operator(text)),
                SymbolKind::LargeOperator => Atom::with_limits(operator(text)),
                SymbolKind::LimitWord => Atom::with_limits(format!("<mi>{text}</mi>")),
            });
        }
        if let Some(width) = space(name) {
            return Some(Atom::plain(space_ml(width)));
        }
        if let Some((place, mark)) = accent(name) {
            let base = self.argument()?;
            let mark = operator(mark);
            let is_brace = name.ends_with("brace");
            let ml = match place {
                AccentPlace::Above => format!("<mover accent=\"true\">{base}{mark}</mover>"),
                AccentPlace::Below => format!("<munder accentunder=\"true\">{base}{mark}</munder>"),
            };
            return Some(Atom { ml, has_limits: is_brace });
        }
        if let Some(style) = LetterStyle::of_command(name) {
            return self.styled(style).map(Atom::plain);
        }
        self.construct(name).map(Atom::plain)
    }

    /// A command that is not one symbol: it has arguments, or changes how the formula looks.
    fn construct(&mut self, name: &str) -> Option<String> {
        Some(match name {
            "frac" | "dfrac" | "tfrac" | "cfrac" => {
                format!("<mfrac>{}{}</mfrac>", self.argument()?, self.argument()?)
            }
            "binom" | "dbinom" | "tbinom" => format!(
                "<mrow><mo>(</mo><mfrac linethickness=\"0\">{}{}</mfrac><mo>)</mo></mrow>",
                self.argument()?,
                self.argument()?
            ),
            "sqrt" => match self.option()? {
                None => format!("<msqrt>{}</msqrt>", self.argument()?),
                Some(degree) => {
                    let degree = self.inner(degree)?;
                    format!("<mroot>{}<mrow>{degree}</mrow></mroot>", self.argument()?)
                }
            },
            "text" | "textrm" | "textnormal" | "textbf" | "textit" | "texttt" | "textsf" | "mbox" => {
                format!("<mtext>{}</mtext>", escaped(plain_text(self.raw_argument()?)?))
            }
            "mathrm" | "operatorname" => self.upright()?,
            "mathit" | "mathnormal" => self.argument()?,
            "overset" | "stackrel" => {
                let above = self.argument()?;
                format!("<mover>{}{above}</mover>", self.argument()?)
            }
            "underset" => {
                let below = self.argument()?;
                format!("<munder>{}{below}</munder>", self.argument()?)
            }
            "xrightarrow" => format!("<mover><mo stretchy=\"true\">→</mo>{}</mover>", self.argument()?),
            "xleftarrow" => format!("<mover><mo stretchy=\"true\">←</mo>{}</mover>", self.argument()?),
            "left" => self.fenced()?,
            "big" | "Big" | "bigg" | "Bigg" | "bigl" | "Bigl" | "biggl" | "Biggl" | "bigr" | "Bigr"
            | "biggr" | "Biggr" | "bigm" | "Bigm" => self.delimiter()?,
            "begin" => self.environment()?,
            "boxed" | "fbox" => format!("<mrow class=\"boxed\">{}</mrow>", self.argument()?),
            "pmod" => {
                format!(
                    "<mrow><mo>(</mo><mi>mod</mi>{}{}<mo>)</mo></mrow>",
                    space_ml("0.33em"),
                    self.argument()?
                )
            }
            "tag" => format!("<mtext>({})</mtext>", escaped(plain_text(self.raw_argument()?)?)),
            "not" => {
                let struck = self.argument()?;
                format!("{}\u{338}</mo>", struck.strip_suffix("</mo>")?)
            }
            "displaystyle" | "textstyle" | "scriptstyle" | "nonumber" | "notag" | "limits" | "nolimits" => {
                String::new()
            }
            "{" | "}" => operator(name),
            "|" => operator("‖"),
            "%" | "$" | "#" | "_" | "&" => format!("<mi>{}</mi>", escaped(name)),
            _ => return None,
        })
    }

    /// Letters and digits in another style. What is not made of them only loses the style.
    fn styled(&mut self, style: LetterStyle) -> Option<String> {
        let source = self.raw_argument()?;
        if !source.chars().all(|character| character.is_ascii_alphanumeric() || character == ' ') {
            return Some(format!("<mrow>{}</mrow>", self.inner(source)?));
        }
        let letters: String =
            source.chars().filter(|letter| *letter != ' ').map(|letter| style.apply(letter)).collect();
        Some(format!("<mi>{letters}</mi>"))
    }

    /// A name in upright letters.
    fn upright(&mut self) -> Option<String> {
        // The star decides where limits stand.
        if let Some(rest) = self.rest.strip_prefix('*') {
            self.rest = rest;
        }
        let source = self.raw_argument()?;
        match source.chars().all(|character| character.is_alphabetic() || character == ' ') {
            true => Some(format!("<mi mathvariant=\"normal\">{source}</mi>")),
            false => Some(format!("<mrow>{}</mrow>", self.inner(source)?)),
        }
    }

    /// From `\left` to `\right`, whose delimiters grow with what is between them.
    fn fenced(&mut self) -> Option<String> {
        let mut out = format!("<mrow>{}", self.delimiter()?);
        loop {
            out.push_str(&self.row()?);
            let name = self.next_command().filter(|name| matches!(*name, "middle" | "right"))?;
            self.take(name.len() + 1);
            out.push_str(&self.delimiter()?);
            if name == "right" {
                return Some(out + "</mrow>");
            }
        }
    }

    /// A delimiter that may be empty: `.`.
    fn delimiter(&mut self) -> Option<String> {
        self.skip_space();
        let text = match self.next_command() {
            Some(name) => {
                self.take(name.len() + 1);
                match name {
                    "{" | "}" => name,
                    "|" => "‖",
                    name => symbol(name).filter(|(kind, _)| *kind == SymbolKind::Operator)?.1,
                }
            }
            None => {
                let character = self.rest.chars().next().filter(|found| "()[]|/.<>".contains(*found))?;
                self.take(character.len_utf8())
            }
        };
        Some(match text {
            "." => String::new(),
            "<" => "<mo stretchy=\"true\">⟨</mo>".to_owned(),
            ">" => "<mo stretchy=\"true\">⟩</mo>".to_owned(),
            text => format!("<mo stretchy=\"true\">{text}</mo>"),
        })
    }

    /// A matrix, cases, or lines that are aligned, from behind `\begin`.
    fn environment(&mut self) -> Option<String> {
        let name = self.raw_argument()?;
        let (open, close, alignment) = match name.trim_end_matches('*') {
            "matrix" | "smallmatrix" => ("", "", CellAlignment::Center),
            "pmatrix" => ("(", ")", CellAlignment::Center),
            "bmatrix" => ("[", "]", CellAlignment::Center),
            "Bmatrix" => ("{", "}", CellAlignment::Center),
            "vmatrix" => ("|", "|", CellAlignment::Center),
            "Vmatrix" => ("‖", "‖", CellAlignment::Center),
            "cases" => ("{", "", CellAlignment::Left),
            "aligned" | "align" | "split" | "alignedat" => ("", "", CellAlignment::Alternating),
            "gathered" | "gather" | "equation" => ("", "", CellAlignment::Center),
            "array" => {
                // The columns.
                self.raw_argument()?;
                ("", "", CellAlignment::Center)
            }
            _ => return None,
        };
        let rows = self.rows(name, alignment)?;
        let fence = |text: &str| match text {
            "" => String::new(),
            text => format!("<mo stretchy=\"true\">{text}</mo>"),
        };
        Some(format!("<mrow>{}<mtable>{rows}</mtable>{}</mrow>", fence(open), fence(close)))
    }

    /// The rows up to the end of this environment.
    fn rows(&mut self, environment: &str, alignment: CellAlignment) -> Option<String> {
        let mut rows = String::new();
        let mut cells = String::new();
        let mut column = 0;
        loop {
            let cell = self.row()?;
            let has_ended = self.next_command() == Some("end");
            // The last row often ends like the others, and then an empty one follows.
            if !(has_ended && cell.is_empty() && column == 0) {
                cells.push_str(&format!("<mtd{}>{cell}</mtd>", alignment.class(column)));
            }
            if self.rest.starts_with('&') {
                self.take(1);
                column += 1;
                continue;
            }
            if !cells.is_empty() {
                rows.push_str(&format!("<mtr>{}</mtr>", std::mem::take(&mut cells)));
            }
            column = 0;
            if has_ended {
                self.take("\\end".len());
                return (self.raw_argument()? == environment).then_some(rows);
            }
            self.expect("\\\\")?;
            // The distance to the next row.
            self.option()?;
        }
    }

    /// The name of the command that comes next: letters, or one other character.
    fn next_command(&self) -> Option<&'a str> {
        let name = self.rest.strip_prefix('\\')?;
        let letters = name.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(name.len());
        match letters {
            0 => name.get(..name.chars().next()?.len_utf8()),
            letters => name.get(..letters),
        }
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn expect(&mut self, text: &str) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// Takes bytes off the front. They end between two characters.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        taken
    }
}

fn operator(text: &str) -> String {
    format!("<mo>{}</mo>", escaped(text))
}

fn space_ml(width: &str) -> String {
    format!("<mspace width=\"{width}\"></mspace>")
}

/// The words of a text command; `None` if there is a command inside.
fn plain_text(source: &str) -> Option<&str> {
    (!source.contains(['\\', '{', '}', '$'])).then_some(source)
}

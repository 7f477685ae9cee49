//! PDF: assembles words, lines and paragraphs from positioned glyphs.
//!
//! The library has no limits on time and memory, so a server runs it in a child process (`child_process.rs`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::hayro_cmap::BfString;
use hayro_interpret::hayro_syntax::{LoadPdfError, Pdf};
use hayro_interpret::kurbo::{Affine, BezPath, Point, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageDrawProps, InterpreterCache,
    InterpreterSettings, SoftMask, interpret_page,
};

use super::draft::Draft;
use super::page_picture::MIN_PIXELS;
use super::{BlockKind, Document, ReadError, ReadLimits};
use crate::types::PositionUnit;

/// A gap of this many heights separates words.
const WORD_GAP: f64 = 0.18;

/// A distance of this many heights separates paragraphs.
const PARAGRAPH_GAP: f64 = 1.7;

/// Reads a PDF in this process. A panic of the library counts as a broken file.
pub fn read(bytes: Vec<u8>, limits: &ReadLimits) -> Result<Document, ReadError> {
    catch_unwind(AssertUnwindSafe(|| read_pages(bytes, limits)))
        .unwrap_or_else(|_| Err(broken("the PDF reader crashed")))
}

fn broken(reason: impl Into<String>) -> ReadError {
    ReadError::Broken { reason: reason.into() }
}

fn read_pages(bytes: Vec<u8>, limits: &ReadLimits) -> Result<Document, ReadError> {
    let pdf = Pdf::new(bytes).map_err(|error| match error {
        LoadPdfError::Decryption(_) => broken("it is encrypted, and no password is known"),
        LoadPdfError::Invalid => broken("it is not a readable PDF"),
    })?;
    let pages = pdf.pages();
    if pages.len() > limits.pages {
        return Err(broken(format!("it has {} pages; the limit is {}", pages.len(), limits.pages)));
    }
    let mut draft = Draft::new(PositionUnit::Page, limits);
    if let Some(title) = &pdf.metadata().title {
        draft.title(&metadata(title));
    }
    let mut scanned = Vec::new();
    let cache = InterpreterCache::new();
    for (number, page) in (1_u32..).zip(pages.iter()) {
        let bounds = Rect::new(0.0, 0.0, 1.0, 1.0);
        let settings = InterpreterSettings::default();
        let mut context = Context::new(Affine::IDENTITY, bounds, &cache, pdf.xref(), settings);
        let mut sheet = Sheet { limit: limits.text_bytes, ..Sheet::default() };
        interpret_page(page, &mut context, &mut sheet);
        let has_picture = sheet.picture_pixels >= MIN_PIXELS;
        let paragraphs = sheet.finish();
        if paragraphs.is_empty() && has_picture {
            scanned.push(number);
        }
        for paragraph in paragraphs {
            draft.push(BlockKind::Paragraph, &paragraph, (number, number))?;
        }
    }
    Ok(Document { scanned, ..draft.finish() })
}

/// Metadata is UTF-16 or UTF-8 with a byte order mark, or nearly Latin-1.
fn metadata(bytes: &[u8]) -> String {
    let encoding =
        encoding_rs::Encoding::for_bom(bytes).map_or(encoding_rs::WINDOWS_1252, |(encoding, _)| encoding);
    encoding.decode(bytes).0.into_owned()
}

/// The end of the last glyph.
#[derive(Debug, Clone, Copy)]
struct Pen {
    end: Point,
    /// The direction and the height of the line.
    along: (f64, f64),
    height: f64,
}

/// The text of one page, in drawing order.
#[derive(Default)]
struct Sheet {
    paragraphs: Vec<String>,
    text: String,
    bytes: usize,
    limit: usize,
    pen: Option<Pen>,
    /// The pixels of its pictures. A scan can be in strips.
    picture_pixels: u64,
    /// The last run: glyphs that are filled and stroked appear twice.
    last_run: Option<(Point, usize)>,
}

impl Sheet {
    fn letter(&mut self, letters: &str, place: Affine, advance: f64) {
        if self.bytes > self.limit {
            return;
        }
        let from = place * Point::ZERO;
        let step = place * Point::new(advance, 0.0) - from;
        let up = place * Point::new(0.0, UNITS_PER_EM) - from;
        let length = step.hypot();
        let height = up.hypot().max(f64::MIN_POSITIVE);
        let along = if length > 0.0 { (step.x / length, step.y / length) } else { (1.0, 0.0) };
        if let Some(pen) = self.pen {
            let moved = from - pen.end;
            let forward = moved.x * pen.along.0 + moved.y * pen.along.1;
            let aside = (moved.x * pen.along.1 - moved.y * pen.along.0).abs();
            let line = pen.height.max(height);
            if aside > line * PARAGRAPH_GAP
                || (aside > line * 0.5 && (height / pen.height - 1.0).abs() > 0.15)
            {
                self.end_paragraph();
            } else if aside > line * 0.5 || forward < -line * 2.0 {
                self.end_line();
            } else if forward > line * WORD_GAP && !self.text.ends_with(char::is_whitespace) {
                self.text.push(' ');
            }
        }
        self.bytes += letters.len();
        self.text.extend(letters.chars().filter(|letter| !letter.is_control()));
        self.pen = Some(Pen { end: from + step, along, height });
    }

    /// Joins a word that is hyphenated at the end of the line.
    fn end_line(&mut self) {
        let line = self.text.trim_end().len();
        self.text.truncate(line);
        let mut letters = self.text.chars().rev();
        let is_parted = letters.next() == Some('-') && letters.next().is_some_and(char::is_lowercase);
        match is_parted {
            true => {
                self.text.pop();
            }
            false => self.text.push(' '),
        }
    }

    fn end_paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.trim().is_empty() {
            self.paragraphs.push(text.trim().to_owned());
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.end_paragraph();
        self.paragraphs
    }
}

/// The height of a glyph in its own units.
const UNITS_PER_EM: f64 = 1_000.0;

impl<'a> Device<'a> for Sheet {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        let Some(first) = run.glyphs().first() else {
            return;
        };
        let this = (props.transform * first.transform() * Point::ZERO, run.glyphs().len());
        if self.last_run.replace(this) == Some(this) {
            return;
        }
        for glyph in run.glyphs() {
            let advance = match &**glyph {
                Glyph::Outline(glyph) => glyph.advance_width(),
                Glyph::Type3(glyph) => glyph.advance_width(),
            };
            let letters = match glyph.as_unicode() {
                Some(BfString::Char(letter)) => letter.to_string(),
                Some(BfString::String(letters)) => letters,
                None => continue,
            };
            self.letter(&letters, props.transform * glyph.transform(), f64::from(advance.unwrap_or(500.0)));
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, image: Image<'a, '_>, _: ImageDrawProps<'a>) {
        let pixels = u64::from(image.width()) * u64::from(image.height());
        self.picture_pixels = self.picture_pixels.saturating_add(pixels);
    }
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

//! The picture of a scanned page of a PDF. Runs in the child process, like the other reader of PDFs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hayro_interpret::font::GlyphRun;
use hayro_interpret::hayro_syntax::Pdf;
use hayro_interpret::hayro_syntax::page::Rotation;
use hayro_interpret::kurbo::{Affine, BezPath, Rect};
use hayro_interpret::{
    BlendMode, ClipPath, Context, Device, DrawMode, DrawProps, Image, ImageData, ImageDrawProps,
    InterpreterCache, InterpreterSettings, LumaData, SoftMask, interpret_page,
};

use super::ReadError;
use super::page_picture::{MAX_PIXELS, PagePicture, QuarterTurns};

fn broken(reason: &str) -> ReadError {
    ReadError::Broken { reason: reason.to_owned() }
}

/// The picture on a page, in this process. A panic of the library counts as a broken file.
pub fn page_picture(bytes: Vec<u8>, page: u32) -> Result<PagePicture, ReadError> {
    catch_unwind(AssertUnwindSafe(|| picture_of(bytes, page)))
        .unwrap_or_else(|_| Err(broken("the PDF reader crashed")))
}

fn picture_of(bytes: Vec<u8>, page: u32) -> Result<PagePicture, ReadError> {
    let pdf = Pdf::new(bytes).map_err(|_| broken("it is not a readable PDF"))?;
    let index = usize::try_from(page).unwrap_or(usize::MAX).wrapping_sub(1);
    let pages = pdf.pages();
    let page = pages.get(index).ok_or_else(|| broken("it has fewer pages"))?;
    let cache = InterpreterCache::new();
    let bounds = Rect::new(0.0, 0.0, 1.0, 1.0);
    let mut context =
        Context::new(Affine::IDENTITY, bounds, &cache, pdf.xref(), InterpreterSettings::default());
    let mut scan = Scan::default();
    interpret_page(page, &mut context, &mut scan);
    let turns = match page.rotation() {
        Rotation::None => QuarterTurns::None,
        Rotation::Horizontal => QuarterTurns::One,
        Rotation::Flipped => QuarterTurns::Two,
        Rotation::FlippedHorizontal => QuarterTurns::Three,
    };
    let picture = scan.finish().ok_or_else(|| broken("the picture of a page cannot be decoded"))?;
    Ok(picture.turned(turns))
}

/// The pictures of one page, and how high they are on it.
#[derive(Default)]
struct Scan {
    strips: Vec<(f64, PagePicture)>,
    pixels: u64,
}

impl Scan {
    fn finish(mut self) -> Option<PagePicture> {
        self.strips.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        PagePicture::stacked(self.strips.into_iter().map(|(_, strip)| strip).collect())
    }
}

impl<'a> Device<'a> for Scan {
    fn draw_image(&mut self, image: Image<'a, '_>, props: ImageDrawProps<'a>) {
        let pixels = u64::from(image.width()) * u64::from(image.height());
        self.pixels = self.pixels.saturating_add(pixels);
        if self.pixels > MAX_PIXELS {
            return;
        }
        let mut picture = None;
        match image {
            // A stencil is painted where it is not 0.
            Image::Stencil(stencil) => stencil.with_stencil(
                |LumaData { width, height, data, .. }, _| {
                    let grey = data.into_iter().map(|painted| u8::MAX - painted).collect();
                    picture = PagePicture::new(width, height, grey);
                },
                None,
            ),
            Image::Raster(raster) => raster.with_rgba(
                |data, _| {
                    picture = match data {
                        ImageData::Luma(luma) => PagePicture::new(luma.width, luma.height, luma.data),
                        ImageData::Rgb(rgb) => PagePicture::from_rgb(rgb.width, rgb.height, &rgb.data),
                    };
                },
                None,
            ),
        }
        // The upper edge, or the lower one: both have the same order.
        self.strips.extend(picture.map(|picture| (props.transform.translation().y, picture)));
    }

    fn draw_glyph_run(&mut self, _: &GlyphRun<'_, 'a>, _: DrawProps<'a>, _: &DrawMode) {}
    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

//! Pictures of text in shades of grey: pages of scanned PDFs, and picture files. Pure.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageReader, Limits};

use super::ReadError;

/// The pixels of a picture. A page of A4 with 600 dots per inch has 35 million.
pub const MAX_PIXELS: u64 = 40 << 20;

/// Memory of a decoder and its result.
const MAX_DECODER_BYTES: u64 = 256 << 20;

/// Fewer pixels are a logo or a line, and not a page.
pub const MIN_PIXELS: u64 = 40_000;

/// A picture with a byte for each pixel; 0 is black.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePicture {
    pub width: u32,
    pub height: u32,
    pub grey: Vec<u8>,
}

/// How far a picture is turned to the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuarterTurns {
    None,
    One,
    Two,
    Three,
}

impl PagePicture {
    /// `None` if there are not as many bytes as pixels, or too many.
    pub fn new(width: u32, height: u32, grey: Vec<u8>) -> Option<Self> {
        let pixels = u64::from(width) * u64::from(height);
        (pixels > 0 && pixels <= MAX_PIXELS && grey.len() as u64 == pixels).then_some(PagePicture {
            width,
            height,
            grey,
        })
    }

    /// From red, green and blue bytes.
    pub fn from_rgb(width: u32, height: u32, rgb: &[u8]) -> Option<Self> {
        let grey = rgb.chunks_exact(3).map(|pixel| {
            let [red, green, blue] = [0, 1, 2].map(|channel| u32::from(pixel[channel]));
            // The weights of the eye, in thousandths. The sum is at most 255.
            u8::try_from((299 * red + 587 * green + 114 * blue) / 1_000).unwrap_or(u8::MAX)
        });
        Self::new(width, height, grey.collect())
    }

    /// Decodes a PNG, JPEG, WebP or BMP file.
    pub fn decode(file: &[u8]) -> Result<Self, ReadError> {
        let broken = |reason: String| ReadError::Broken { reason };
        let mut reader = ImageReader::new(Cursor::new(file)).with_guessed_format()?;
        let mut limits = Limits::default();
        limits.max_alloc = Some(MAX_DECODER_BYTES);
        reader.limits(limits);
        // Reads the header only.
        let mut decoder = reader.into_decoder().map_err(|error| broken(error.to_string()))?;
        let (width, height) = decoder.dimensions();
        let pixels = u64::from(width) * u64::from(height);
        if pixels > MAX_PIXELS || decoder.total_bytes() > MAX_DECODER_BYTES {
            return Err(broken(format!("it has {width} × {height} pixels, which are too many")));
        }
        let orientation = decoder.orientation().map_err(|error| broken(error.to_string()))?;
        let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| broken(error.to_string()))?;
        picture.apply_orientation(orientation);
        let (width, height) = (picture.width(), picture.height());
        let grey = on_white(picture);
        Self::new(width, height, grey).ok_or_else(|| broken("it has no pixels".to_owned()))
    }

    /// The strips of a page, from top to bottom, as one picture. Strips of another width than the widest are dropped.
    pub fn stacked(strips: Vec<PagePicture>) -> Option<Self> {
        let width = strips.iter().map(|strip| strip.width).max()?;
        let mut page = PagePicture { width, height: 0, grey: Vec::new() };
        for strip in strips.into_iter().filter(|strip| strip.width == width) {
            let pixels = page.grey.len() as u64 + strip.grey.len() as u64;
            if pixels > MAX_PIXELS {
                break;
            }
            page.height += strip.height;
            page.grey.extend(strip.grey);
        }
        (page.height > 0).then_some(page)
    }

    /// The picture, turned to the right.
    pub fn turned(self, turns: QuarterTurns) -> Self {
        let PagePicture { width, height, grey } = self;
        let (columns, rows) = (width as usize, height as usize);
        match turns {
            QuarterTurns::None => PagePicture { width, height, grey },
            QuarterTurns::Two => PagePicture { width, height, grey: grey.into_iter().rev().collect() },
            QuarterTurns::One => {
                let pixel = |column: usize| (0..rows).rev().map(move |row| row * columns + column);
                let grey = (0..columns).flat_map(pixel).map(|at| grey[at]).collect();
                PagePicture { width: height, height: width, grey }
            }
            QuarterTurns::Three => {
                let pixel = |column: usize| (0..rows).map(move |row| row * columns + column);
                let grey = (0..columns).rev().flat_map(pixel).map(|at| grey[at]).collect();
                PagePicture { width: height, height: width, grey }
            }
        }
    }

    /// The picture as a PGM file, which every program for pictures can read.
    pub fn to_pgm(&self) -> Vec<u8> {
        let mut file = format!("P5\n{} {}\n255\n", self.width, self.height).into_bytes();
        file.extend_from_slice(&self.grey);
        file
    }
}

/// Transparent pixels become white, as on a page.
fn on_white(picture: DynamicImage) -> Vec<u8> {
    if !picture.color().has_alpha() {
        return picture.into_luma8().into_raw();
    }
    let pixels = picture.into_luma_alpha8().into_raw();
    let blend = |pixel: &[u8]| {
        let (grey, alpha) = (u32::from(pixel[0]), u32::from(pixel[1]));
        // At most 255.
        u8::try_from((grey * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
    };
    pixels.chunks_exact(2).map(blend).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32, grey: &[u8]) -> PagePicture {
        PagePicture::new(width, height, grey.to_vec()).unwrap()
    }

    #[test]
    fn a_picture_is_turned_to_the_right() {
        let wide = picture(3, 2, &[1, 2, 3, 4, 5, 6]);
        assert_eq!(wide.clone().turned(QuarterTurns::One), picture(2, 3, &[4, 1, 5, 2, 6, 3]));
        assert_eq!(wide.clone().turned(QuarterTurns::Two), picture(3, 2, &[6, 5, 4, 3, 2, 1]));
        assert_eq!(wide.clone().turned(QuarterTurns::Three), picture(2, 3, &[3, 6, 2, 5, 1, 4]));
        assert_eq!(wide.clone().turned(QuarterTurns::None), wide);
    }

    #[test]
    fn strips_become_a_page() {
        let strips = vec![picture(2, 1, &[1, 2]), picture(1, 1, &[9]), picture(2, 2, &[3, 4, 5, 6])];
        assert_eq!(PagePicture::stacked(strips), Some(picture(2, 3, &[1, 2, 3, 4, 5, 6])));
        assert_eq!(PagePicture::stacked(Vec::new()), None);
    }

    #[test]
    fn a_picture_has_as_many_bytes_as_pixels() {
        assert_eq!(PagePicture::new(2, 2, vec![0; 3]), None);
        assert_eq!(PagePicture::new(0, 0, Vec::new()), None);
        assert_eq!(PagePicture::from_rgb(1, 1, &[255, 255, 255]), Some(picture(1, 1, &[255])));
        assert_eq!(picture(1, 1, &[7]).to_pgm(), b"P5\n1 1\n255\n\x07");
        assert!(PagePicture::decode(b"no picture").is_err());
    }
}

//! Decodes pictures of callers, within limits. The decoders are written in Rust: a hostile file can fail, and do no more.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageError, ImageReader, Limits};

/// The pixels of a picture: more than most cameras make.
const MAX_PIXELS: u64 = 32 << 20;

/// Memory of a decoder and its result.
const MAX_DECODER_BYTES: u64 = 256 << 20;

/// Smaller pictures show nothing, and some projectors cannot scale them.
const MIN_SIDE: u32 = 2;

/// Longer pictures become lines when they are scaled.
const MAX_RATIO: u32 = 200;

const TOO_LARGE: &str = "the picture needs too much memory";

/// Red, green and blue bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pixels {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) bytes: Vec<u8>,
}

/// Decodes a picture; the error says what is wrong with it.
pub(super) fn decode(file: &[u8]) -> Result<Pixels, String> {
    let mut reader = ImageReader::new(Cursor::new(file))
        .with_guessed_format()
        .map_err(|error| format!("the picture cannot be read: {error}"))?;
    if reader.format().is_none() {
        return Err("it is not a PNG, JPEG, GIF, WebP or BMP picture".to_owned());
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODER_BYTES);
    reader.limits(limits);
    // Reads the header only.
    let mut decoder = reader.into_decoder().map_err(|error| reason(&error))?;
    let (width, height) = decoder.dimensions();
    check_size(width, height)?;
    if decoder.total_bytes() > MAX_DECODER_BYTES {
        return Err(TOO_LARGE.to_owned());
    }
    let orientation = decoder.orientation().map_err(|error| reason(&error))?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| reason(&error))?;
    picture.apply_orientation(orientation);
    let (width, height) = (picture.width(), picture.height());
    Ok(Pixels { width, height, bytes: on_white(picture) })
}

/// Before anything is allocated for the pixels.
fn check_size(width: u32, height: u32) -> Result<(), String> {
    let (short, long) = (width.min(height), width.max(height));
    if u64::from(width) * u64::from(height) > MAX_PIXELS {
        return Err(format!(
            "the picture has {width} × {height} pixels; the limit is {} megapixels",
            MAX_PIXELS >> 20
        ));
    }
    if short < MIN_SIDE {
        return Err(format!(
            "the picture has {width} × {height} pixels; it needs at least {MIN_SIDE} × {MIN_SIDE}"
        ));
    }
    if long / short > MAX_RATIO {
        return Err(format!("the picture has {width} × {height} pixels; it is too narrow"));
    }
    Ok(())
}

/// Transparent pixels become white, as on a page.
fn on_white(picture: DynamicImage) -> Vec<u8> {
    if !picture.color().has_alpha() {
        return picture.into_rgb8().into_raw();
    }
    let with_alpha = picture.into_rgba8().into_raw();
    let blend = |value: u8, alpha: u8| {
        let (value, alpha) = (u32::from(value), u32::from(alpha));
        // At most 255.
        ((value * alpha + 255 * (255 - alpha) + 127) / 255) as u8
    };
    let mut bytes = Vec::with_capacity(with_alpha.len() / 4 * 3);
    for pixel in with_alpha.chunks_exact(4) {
        bytes.extend(pixel[..3].iter().map(|value| blend(*value, pixel[3])));
    }
    bytes
}

fn reason(error: &ImageError) -> String {
    match error {
        ImageError::Limits(_) => TOO_LARGE.to_owned(),
        error => format!("the picture is damaged: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use image::{ExtendedColorType, ImageFormat, RgbImage, RgbaImage};

    use super::*;

    fn png(picture: &DynamicImage) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, ImageFormat::Png).expect("written");
        file.into_inner()
    }

    /// A PNG whose header claims another size.
    fn with_size(mut file: Vec<u8>, width: u32, height: u32) -> Vec<u8> {
        file[16..20].copy_from_slice(&width.to_be_bytes());
        file[20..24].copy_from_slice(&height.to_be_bytes());
        let sum = crc32(&file[12..29]);
        file[29..33].copy_from_slice(&sum.to_be_bytes());
        file
    }

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |sum, byte| {
            (0..8).fold(
                sum ^ u32::from(*byte),
                |sum, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 },
            )
        })
    }

    #[test]
    fn pictures_of_every_kind_are_decoded() {
        let picture = DynamicImage::ImageRgb8(RgbImage::from_pixel(4, 3, image::Rgb([200, 100, 50])));
        for format in [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Gif, ImageFormat::WebP] {
            let mut file = Cursor::new(Vec::new());
            // GIF has no format without transparency here.
            let picture = match format {
                ImageFormat::Gif => DynamicImage::ImageRgba8(picture.to_rgba8()),
                _ => picture.clone(),
            };
            picture.write_to(&mut file, format).expect("written");
            let decoded = decode(file.get_ref()).expect("decoded");
            assert_eq!((decoded.width, decoded.height), (4, 3), "{format:?}");
            assert_eq!(decoded.bytes, [200, 100, 50].repeat(12), "{format:?}");
        }
        let mut file = Vec::new();
        let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut file, 100);
        let bytes = [90].repeat(4 * 3 * 3);
        image::ImageEncoder::write_image(encoder, &bytes, 4, 3, ExtendedColorType::Rgb8).expect("written");
        assert_eq!(decode(&file), Ok(Pixels { width: 4, height: 3, bytes }));
    }

    #[test]
    fn transparent_pixels_are_white() {
        let mut picture = RgbaImage::from_pixel(2, 2, image::Rgba([10, 20, 30, 0]));
        picture.put_pixel(1, 1, image::Rgba([10, 20, 30, 255]));
        let decoded = decode(&png(&DynamicImage::ImageRgba8(picture))).expect("decoded");
        assert_eq!(decoded.bytes, [[255; 9].as_slice(), &[10, 20, 30]].concat());
    }

    #[test]
    fn hostile_pictures_are_refused() {
        let small = png(&DynamicImage::ImageRgb8(RgbImage::new(16, 16)));
        let refused = |file: &[u8], said: &str| {
            let error = decode(file).expect_err("refused");
            assert!(error.contains(said), "{error}");
        };
        refused(
            &with_size(small.clone(), 60_000, 60_000),
            "60000 × 60000 pixels; the limit is 32 megapixels",
        );
        refused(&with_size(small.clone(), 1, 1), "1 × 1 pixels");
        refused(&with_size(small.clone(), 4000, 2), "too narrow");
        refused(&small[..small.len() / 2], "damaged");
        refused(&small[..10], "damaged");
        refused(b"hello", "it is not a PNG");
        refused(b"", "it is not a PNG");
    }
}

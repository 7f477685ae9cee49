//! Images as clients of Ollama send them: base64 without a media type.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::{Content, ContentPart, Image};

use crate::error::{ApiError, ApiResult};

/// Characters of base64 that hold the first bytes of every format.
const HEAD_CHARS: usize = 16;

/// A text with images. The images come first, as Ollama's templates place them.
pub(super) fn with_images(text: String, images: Vec<String>, path: &str) -> ApiResult<Content> {
    if images.is_empty() {
        return Ok(Content::Text(text));
    }
    let mut parts = Vec::with_capacity(images.len() + 1);
    for (index, image) in images.iter().enumerate() {
        let field = format!("{path}images[{index}]");
        parts.push(ContentPart::Image(Image { url: data_url(image, &field)?, detail: None }));
    }
    if !text.is_empty() {
        parts.push(ContentPart::Text(text));
    }
    Ok(Content::Parts(parts))
}

/// The image as a `data:` URL, which is what engines get.
fn data_url(image: &str, field: &str) -> ApiResult<String> {
    // Some clients send the whole URL.
    let payload = match image.strip_prefix("data:") {
        None => image,
        Some(url) => url.split_once(";base64,").map_or("", |(_, payload)| payload),
    };
    // `base64` of coreutils breaks lines.
    let payload: Cow<'_, str> = match payload.contains(['\r', '\n']) {
        true => payload.replace(['\r', '\n'], "").into(),
        false => payload.into(),
    };
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let head = payload.get(..HEAD_CHARS).and_then(|head| STANDARD.decode(head).ok());
    let media_type = head.as_deref().and_then(Image::media_type).filter(|_| payload.bytes().all(is_base64));
    let media_type = media_type.ok_or_else(|| {
        let message = format!("{field} is not an image: send a PNG, JPEG, GIF, WebP or BMP file in base64");
        ApiError::invalid(field, message)
    })?;
    Ok(format!("data:{media_type};base64,{payload}"))
}

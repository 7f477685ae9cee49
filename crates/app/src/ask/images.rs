//! Images that a request names by URL. Hob downloads them itself, with the same checks as `web_fetch`, and passes them
//! on as `data:` URLs. An engine never gets the URL: it would connect from inside the owner's network, and nothing would check
//! the target.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::{StreamExt, TryStreamExt, stream};
use hob_agents::builtin::WebFetchOptions;
use hob_agents::builtin::web_fetch::{FetchedPage, Fetcher, Redirects};
use hob_core::{AskError, Content, ContentPart, GenerateRequest, Image};

/// Images that one request may name by URL.
const MAX_IMAGES: usize = 16;

/// Bytes of an image.
const MAX_IMAGE_BYTES: usize = 10 << 20;

/// The time for an image, redirects included.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Images of a request that are downloaded at the same time.
const AT_ONCE: usize = 4;

/// Downloads images. The caller policy has already checked whether the caller may name URLs.
pub struct ImageFetcher {
    fetcher: Fetcher,
}

impl Default for ImageFetcher {
    /// Downloads from public addresses only.
    fn default() -> Self {
        ImageFetcher::new(WebFetchOptions::default())
    }
}

impl ImageFetcher {
    /// Downloads from the addresses that `options` allow, with the limits for images.
    pub fn new(options: WebFetchOptions) -> Self {
        let options =
            WebFetchOptions { timeout: TIMEOUT, max_bytes: MAX_IMAGE_BYTES, accept: "image/*", ..options };
        ImageFetcher { fetcher: Fetcher::new(options) }
    }

    /// Replaces the URLs of images by the images.
    pub(crate) async fn fetch_all(&self, request: &mut GenerateRequest) -> Result<(), AskError> {
        let named = named_by_address(request);
        if let Some((param, _)) = named.get(MAX_IMAGES) {
            let param = param.clone();
            let reason = format!(
                "a request may name at most {MAX_IMAGES} images by their address; send the others as data: URLs"
            );
            return Err(AskError::Attachment { param, reason });
        }
        let addresses: Vec<_> =
            named.iter().map(|(param, image)| (param.clone(), image.url.clone())).collect();
        let fetching = stream::iter(addresses).map(|(param, address)| async move {
            self.fetch(&address).await.map_err(|reason| AskError::Attachment { param, reason })
        });
        let fetched: Vec<String> = fetching.buffered(AT_ONCE).try_collect().await?;
        for ((_, image), url) in named.into_iter().zip(fetched) {
            image.url = url;
        }
        Ok(())
    }

    /// An image as a `data:` URL, or the reason why not.
    async fn fetch(&self, address: &str) -> Result<String, String> {
        let page = self.fetcher.fetch(address, Redirects::Anywhere).await;
        let page = page.map_err(|error| format!("the image cannot be fetched: {error}"))?;
        let FetchedPage { body, is_cut, .. } = &page;
        if *is_cut {
            return Err(format!("the image is larger than {} MiB", MAX_IMAGE_BYTES >> 20));
        }
        picture_url(body)
            .ok_or_else(|| "what is at this address is no PNG, JPEG, GIF, WebP or BMP image".to_owned())
    }
}

/// The file of an image as a `data:` URL, which is what engines get; `None` if it is no image.
pub fn picture_url(file: &[u8]) -> Option<String> {
    let media_type = Image::media_type(file)?;
    Some(format!("data:{media_type};base64,{}", BASE64_STANDARD.encode(file)))
}

/// The images that are URLs, each with its position in the request.
fn named_by_address(request: &mut GenerateRequest) -> Vec<(String, &mut Image)> {
    let mut named = Vec::new();
    for (index, message) in request.messages.iter_mut().enumerate() {
        let Content::Parts(parts) = &mut message.content else { continue };
        for (position, part) in parts.iter_mut().enumerate() {
            if let ContentPart::Image(image) = part
                && is_web_address(&image.url)
            {
                named.push((format!("messages[{index}].content[{position}].image_url"), image));
            }
        }
    }
    named
}

/// Whether Hob may download from this URL, by its scheme.
pub(crate) fn is_web_address(url: &str) -> bool {
    let begins_with =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme));
    begins_with("http://") || begins_with("https://")
}

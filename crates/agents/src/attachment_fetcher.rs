//! Images and files that a request names by URL. Hob downloads them itself, with the same checks as `web_fetch`. An engine never gets the
//! URL: it would connect from inside the owner's network, and nothing would check the target. The caller policy has already checked
//! whether the caller may name URLs.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::{StreamExt, TryStreamExt, stream};
use hob_core::caller_policy::is_web_address;
use hob_core::{AskError, Content, ContentPart, GenerateRequest, Image};

use crate::builtin::web_fetch::{Fetcher, Redirects, WebFetchOptions};

/// Images that one request may name by URL.
const MAX_IMAGES: usize = 16;

/// Bytes of an image.
const MAX_IMAGE_BYTES: usize = 10 << 20;

/// The time for an image, redirects included.
const IMAGE_TIMEOUT: Duration = Duration::from_secs(20);

/// The time for a file, redirects included.
const FILE_TIMEOUT: Duration = Duration::from_secs(30);

/// Images of a request that are downloaded at the same time.
const AT_ONCE: usize = 4;

/// Downloads images, which are passed on as `data:` URLs.
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
        let options = WebFetchOptions {
            timeout: IMAGE_TIMEOUT,
            max_bytes: MAX_IMAGE_BYTES,
            accept: "image/*",
            ..options
        };
        ImageFetcher { fetcher: Fetcher::new(options) }
    }

    /// Replaces the URLs of images by the images.
    pub async fn fetch_all(&self, request: &mut GenerateRequest) -> Result<(), AskError> {
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
        let image = fetch(&self.fetcher, address, "image", MAX_IMAGE_BYTES).await?;
        picture_url(&image)
            .ok_or_else(|| "what is at this address is no PNG, JPEG, GIF, WebP or BMP image".to_owned())
    }
}

/// Downloads files of any kind.
pub struct FileFetcher {
    fetcher: Fetcher,
    max_bytes: usize,
}

impl FileFetcher {
    /// Downloads from the addresses that `options` allow, up to `max_bytes` of a file.
    pub fn new(options: WebFetchOptions, max_bytes: usize) -> Self {
        let options = WebFetchOptions { timeout: FILE_TIMEOUT, max_bytes, accept: "*/*", ..options };
        FileFetcher { fetcher: Fetcher::new(options), max_bytes }
    }

    /// The content of a file, or the reason why not.
    pub async fn fetch(&self, address: &str) -> Result<Vec<u8>, String> {
        fetch(&self.fetcher, address, "file", self.max_bytes).await
    }
}

/// What is at an address. `what` names it in the reason why not.
async fn fetch(fetcher: &Fetcher, address: &str, what: &str, max_bytes: usize) -> Result<Vec<u8>, String> {
    let page = fetcher.fetch(address, Redirects::Anywhere).await;
    let page = page.map_err(|error| format!("the {what} cannot be fetched: {error}"))?;
    match page.is_cut {
        true => Err(format!("the {what} is larger than {} MiB", max_bytes >> 20)),
        false => Ok(page.body),
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

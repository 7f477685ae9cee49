//! Reads the body of a response with a limit on its size.

use reqwest::{Error, Response};

/// The body; `None` if it is longer than the limit. Memory grows with what arrives.
pub async fn response_body(mut response: Response, most_bytes: usize) -> Result<Option<Vec<u8>>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > most_bytes {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use hob_testkit::{FakeServer, Reply};

    use super::*;
    use crate::http_client::{HttpClientOptions, ProxyUse, http_client};

    #[tokio::test]
    async fn a_body_over_the_limit_is_refused() {
        let server = FakeServer::start(|_| Reply::json(200, "[1, 2]")).await;
        let options = HttpClientOptions { proxy: ProxyUse::Never, ..HttpClientOptions::default() };
        let client = http_client(options).unwrap();
        for (most_bytes, expected) in [(6, Some(b"[1, 2]".to_vec())), (5, None)] {
            let response = client.get(server.url()).send().await.unwrap();
            assert_eq!(response_body(response, most_bytes).await.unwrap(), expected);
        }
    }
}

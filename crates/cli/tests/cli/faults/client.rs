//! A client that notices when the server is gone.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

/// Longer than any answer of these tests takes.
const LIMIT: Duration = Duration::from_secs(60);

pub struct Client {
    http: reqwest::Client,
    url: String,
}

/// An answer, with its status.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
    pub retry_after: Option<String>,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Client {
    /// Of a server at an address such as `127.0.0.1:4000`.
    pub fn of(address: &str) -> Self {
        hob_net::install_crypto();
        let http = reqwest::Client::builder().no_proxy().timeout(LIMIT).build().expect("a client");
        Client { http, url: format!("http://{address}") }
    }

    /// `None` if the server ends before it has answered.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Option<Answer> {
        self.send_as(None, method, path, body).await
    }

    /// The same with a key.
    pub async fn send_as(
        &self,
        key: Option<&str>,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Option<Answer> {
        let request = self.http.request(method, format!("{}{path}", self.url));
        let request = match key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        received(request).await
    }

    /// What was created; `None` if the server ends first. Any other answer than a good one is a failure of the test.
    pub async fn created(&self, method: Method, path: &str, body: &Value) -> Option<Value> {
        let answer = self.send(method, path, Some(body)).await?;
        assert!(answer.is_success(), "{path} {body}: {answer:?}");
        Some(answer.body)
    }

    /// What is there, with status 200.
    pub async fn get(&self, path: &str) -> Result<Value, String> {
        match self.send(Method::GET, path, None).await {
            Some(answer) if answer.is_success() => Ok(answer.body),
            answer => Err(format!("{path}: {answer:?}")),
        }
    }

    /// Uploads a document.
    pub async fn upload(&self, name: &str, text: &str) -> Option<Answer> {
        let request = self.http.post(format!("{}/v1/memory/documents?name={name}", self.url));
        received(request.header("content-type", "application/octet-stream").body(text.to_owned())).await
    }
}

async fn received(request: reqwest::RequestBuilder) -> Option<Answer> {
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    let retry_after = response.headers().get("retry-after");
    let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let text = response.text().await.ok()?;
    Some(Answer { status, body: serde_json::from_str(&text).unwrap_or(Value::String(text)), retry_after })
}

//! The WebDriver protocol of chromedriver: commands of one session as JSON over HTTP. Knows nothing of the pages.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use hob_net::install_crypto;
use serde_json::{Value, json};

/// Far longer than the browser takes to end.
const END_LIMIT: Duration = Duration::from_secs(120);

/// A session of chromedriver. Dropping it ends the browser.
pub struct WebDriver {
    client: reqwest::Client,
    port: u16,
    session: String,
}

impl WebDriver {
    /// Starts a browser with these capabilities.
    pub async fn connect(port: u16, capabilities: &Value) -> Self {
        install_crypto();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let body = json!({ "capabilities": { "alwaysMatch": capabilities } });
        let request = client.post(format!("http://127.0.0.1:{port}/session")).json(&body);
        let started = result_of(request).await.expect("Chromium starts");
        let session = started["sessionId"].as_str().expect("a session").to_owned();
        WebDriver { client, port, session }
    }

    /// Reads a state of the browser. The error is the reason that chromedriver gives.
    pub async fn get(&self, command: &str) -> Result<Value, String> {
        result_of(self.client.get(self.url(command))).await
    }

    /// Sends a command. The error is the reason that chromedriver gives.
    pub async fn post(&self, command: &str, body: &Value) -> Result<Value, String> {
        result_of(self.client.post(self.url(command)).json(body)).await
    }

    fn url(&self, command: &str) -> String {
        format!("http://127.0.0.1:{}/session/{}/{command}", self.port, self.session)
    }
}

/// Sends a request, and unwraps the field `value` that every answer has.
async fn result_of(request: reqwest::RequestBuilder) -> Result<Value, String> {
    let response = request.send().await.map_err(|error| error.to_string())?;
    let is_success = response.status().is_success();
    let answer: Value = response.json().await.map_err(|error| error.to_string())?;
    let value = answer["value"].clone();
    if is_success { Ok(value) } else { Err(format!("{}: {}", value["error"], value["message"])) }
}

impl Drop for WebDriver {
    /// Killing chromedriver would leave Chromium running, so this ends the session, without the runtime, which may have ended.
    fn drop(&mut self) {
        let WebDriver { port, session, .. } = self;
        let Ok(mut driver) = TcpStream::connect(("127.0.0.1", *port)) else { return };
        let request = format!(
            "DELETE /session/{session} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n"
        );
        // chromedriver answers when Chromium has ended, and keeps the connection open.
        let mut answer = [0; 12];
        let ended = driver
            .set_read_timeout(Some(END_LIMIT))
            .and_then(|()| driver.write_all(request.as_bytes()))
            .and_then(|()| driver.read_exact(&mut answer));
        if let Err(error) = ended {
            eprintln!("Chromium may still run: {error}");
        }
    }
}

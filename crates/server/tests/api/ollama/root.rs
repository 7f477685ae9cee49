//! `/` says that Ollama runs to those who look for it, and is the chat page for browsers.

use hob_config::ServerConfig;
use hob_testkit::Transcript;
use reqwest::Method;

use crate::fixtures::scripted;

const BROWSER: &str =
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";

#[tokio::test]
async fn a_program_finds_ollama_and_a_browser_the_page() {
    let server = scripted(ServerConfig::default()).await;
    let asked = async |method: Method, client: &str, accept: &str| {
        let request = server.client.request(method, server.url("/"));
        let answer = request.header("user-agent", client).header("accept", accept).send().await.unwrap();
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        (answer.status().as_u16(), kind, answer.text().await.unwrap())
    };
    let recorded = Transcript::load("ollama/root").body;
    let running = (200, "text/plain; charset=utf-8".to_owned(), recorded.clone());
    assert_eq!(asked(Method::GET, "curl/8.14.1", "*/*").await, running);
    assert_eq!(asked(Method::GET, "python-requests/2.32", "*/*").await, running);
    // How Ollama's own program finds out whether its server runs.
    let (status, kind, body) =
        asked(Method::HEAD, "ollama/0.13.5 (amd64 linux) Go/go1.24.1", "application/json").await;
    assert_eq!((status, kind.as_str(), body.as_str()), (200, "text/plain; charset=utf-8", ""));
    let (status, kind, page) = asked(Method::GET, BROWSER, "text/html,application/xhtml+xml,*/*;q=0.8").await;
    assert_eq!((status, kind.as_str()), (200, "text/html; charset=utf-8"));
    assert!(page.contains("<html"), "{page}");
}

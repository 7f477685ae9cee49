use hob_testkit::{Closing, ClosingServer, FakeServer, Reply};
use tokio::time::Instant;

use super::*;
use crate::wire::resend::CLOSED_WHILE_IDLE;

#[test]
fn an_endpoint_never_shows_its_key() {
    let key = KeyHeader::bearer("s3cret".to_owned().into());
    let options = EndpointOptions { key: Some(key), ..EndpointOptions::new("vllm", "http://localhost:1") };
    assert!(!format!("{options:?}").contains("s3cret"));
    let endpoint = Endpoint::new(options).unwrap();
    assert!(!format!("{endpoint:?}").contains("s3cret"));
}

/// An endpoint with the transport for other machines.
fn remote(server: &ClosingServer, resend: Resend) -> Endpoint {
    let options = EndpointOptions::new("vllm", server.url());
    let remote = RemoteClientOptions {
        headers: HeaderMap::new(),
        connect_timeout: DEFAULT_CONNECT_TIMEOUT,
        read_timeout: options.timeout,
        idle_timeout: POOL_IDLE_TIMEOUT,
        proxy: ProxyUse::Never,
        fixed_address: None,
        resend,
        certificates: CertificateCheck::Verify,
    };
    Endpoint {
        transport: Transport::Remote(Box::new(RemoteClient::new(remote).unwrap())),
        ..Endpoint::new(options).unwrap()
    }
}

async fn ask(endpoint: &Endpoint) -> Result<Bytes, EngineError> {
    endpoint.body(endpoint.post("/", b"{}".to_vec()).await?).await
}

#[tokio::test]
async fn a_request_on_a_closed_connection_is_sent_on_a_new_one() {
    for (closing, resend) in [(Closing::Unread, Resend::Never), (Closing::Read, Resend::Unanswered)] {
        let server = ClosingServer::start(closing, "ok").await;
        let endpoint = remote(&server, resend);
        let mut asked = 0;
        while asked < 50 {
            let begun = Instant::now();
            let answer = ask(&endpoint).await;
            // On a busy machine the connection may end so late that the engine could have worked on the request.
            if answer.is_err() && begun.elapsed() >= CLOSED_WHILE_IDLE {
                continue;
            }
            asked += 1;
            assert_eq!(answer.map_err(|error| error.to_string()), Ok(Bytes::from("ok")), "{asked}");
        }
        assert!(server.connections() >= 50);
    }
}

#[tokio::test]
async fn a_request_that_may_have_been_paid_for_is_not_sent_again() {
    let server = ClosingServer::start(Closing::Read, "ok").await;
    let endpoint = remote(&server, Resend::Never);
    assert!(ask(&endpoint).await.is_ok());
    assert!(matches!(ask(&endpoint).await, Err(EngineError::Interrupted { .. })));
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_invalid_host_is_named() {
    let error = Endpoint::new(EndpointOptions::new("vllm", "::nonsense")).unwrap_err();
    assert!(error.to_string().contains("'::nonsense' is not a valid URL"), "{error}");
}

#[tokio::test]
async fn an_answer_with_too_many_values_is_refused() {
    // One value is the list itself.
    for (numbers, expected) in [(ANSWER.values - 1, None), (ANSWER.values, Some("8,000,000"))] {
        let body = format!("[{}0]", "0,".repeat(numbers - 1));
        let server = FakeServer::replying(Reply::json(200, body)).await;
        let endpoint = Endpoint::new(EndpointOptions::new("vllm", server.url())).unwrap();
        let error = ask(&endpoint).await.err().map(|error| error.to_string());
        match expected {
            None => assert_eq!(error, None),
            Some(limit) => {
                let error = error.unwrap();
                assert!(error.contains("vllm") && error.contains(limit), "{error}");
            }
        }
    }
}

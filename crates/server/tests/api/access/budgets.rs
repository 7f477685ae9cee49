//! 500 requests at once against a budget. `docs/keys.md` states the bound: together they use at most the budget times what a call uses,
//! divided by what it reserves; and never more than the budget where it uses no more than that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use hob_core::token_estimate::{prompt_tokens, tokens_of};
use hob_core::{
    Collector, Delta, Engine, EngineError, FinishReason, GenerateRequest, Generation, GenerationStream,
    Message, ModelInfo, Role, Usage,
};
use hob_server::raise_open_files;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{NANO_DOLLARS_PER_TOKEN, Team, post};
use crate::fixtures::loopback_config;
use crate::support::{TestServer, WAIT_LIMIT, plain_parts};

const REQUESTS: usize = 500;
const QUESTION: &str = "hi";
/// To this question, the engine says one word and then nothing, until its client leaves.
const ENDLESS_QUESTION: &str = "go";
const WORD: &str = "word";
/// The most tokens of an answer that each request asks for.
const MAX_TOKENS: u64 = 95;

/// An engine that answers when its gate is open. Every answer has used the same number of tokens, whatever limit it had.
struct GatedEngine {
    key: &'static str,
    completion_tokens: u64,
    arrived: AtomicUsize,
    gate: watch::Sender<bool>,
}

impl GatedEngine {
    fn new(key: &'static str, completion_tokens: u64) -> Self {
        GatedEngine { key, completion_tokens, arrived: AtomicUsize::new(0), gate: watch::Sender::new(false) }
    }

    fn usage(&self) -> Usage {
        Usage {
            prompt_tokens: reserved_for_prompt(),
            completion_tokens: self.completion_tokens,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        }
    }

    async fn arrive(&self) {
        self.arrived.fetch_add(1, Ordering::SeqCst);
        self.gate.subscribe().wait_for(|is_open| *is_open).await.unwrap();
    }

    fn deltas(&self) -> [Delta; 3] {
        let finish = Delta::Finish { choice: 0, reason: FinishReason::Stop };
        [Delta::text(WORD), finish, Delta::Done { usage: Some(self.usage()) }]
    }
}

#[async_trait]
impl Engine for GatedEngine {
    fn key(&self) -> &str {
        self.key
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        self.arrive().await;
        let mut collector = Collector::default();
        for delta in self.deltas() {
            collector.push(delta);
        }
        Ok(collector.finish(&request.model).unwrap())
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.arrive().await;
        let deltas = match request.messages.last().unwrap().content.text() == ENDLESS_QUESTION {
            false => stream::iter(self.deltas().map(Ok)).boxed(),
            true => stream::iter([Ok(Delta::text(WORD))]).chain(stream::pending()).boxed(),
        };
        Ok(GenerationStream { warnings: Vec::new(), deltas })
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        Ok(vec![ModelInfo::named("m")])
    }

    async fn health(&self) -> bool {
        true
    }
}

/// What a call reserves for its prompt: the estimate for the question.
fn reserved_for_prompt() -> u64 {
    let messages = vec![Message::new(Role::User, QUESTION)];
    prompt_tokens(&GenerateRequest { messages, ..GenerateRequest::default() })
}

/// What a request does with its answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Client {
    /// Waits for the whole answer.
    Whole,
    /// Reads a stream to its end.
    Streamed,
    /// Leaves after the first word of a stream.
    Leaving,
}

impl Client {
    fn body(self) -> Value {
        let question = if self == Client::Leaving { ENDLESS_QUESTION } else { QUESTION };
        json!({
            "model": "m",
            "messages": [{ "role": "user", "content": question }],
            "max_tokens": MAX_TOKENS,
            "stream": self != Client::Whole,
        })
    }
}

/// Waits for a condition.
async fn until(is_met: impl AsyncFn() -> bool) {
    let waiting = async {
        while !is_met().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, waiting).await.expect("the condition is never met");
}

/// A budget, and what each answer uses of it.
struct Case {
    engine: &'static str,
    budget: &'static str,
    /// The budget in what is counted: tokens, or thousand millionths of a dollar.
    limit: u64,
    /// What a token counts.
    unit: u64,
    /// Those of each complete answer.
    completion_tokens: u64,
}

impl Case {
    fn reserved(&self) -> u64 {
        (reserved_for_prompt() + MAX_TOKENS) * self.unit
    }

    fn used(&self) -> u64 {
        (reserved_for_prompt() + self.completion_tokens) * self.unit
    }

    /// What a stream has used that its client has left after one word.
    fn used_until_left(&self) -> u64 {
        (reserved_for_prompt() + tokens_of(WORD.len() as u64)) * self.unit
    }

    /// The most that all requests together use, as `docs/keys.md` states it.
    fn bound(&self) -> u64 {
        self.limit.max(self.limit * self.used() / self.reserved())
    }
}

/// Sends 500 requests at once, lets the engine answer when each of them is admitted or refused, and checks what the key has used. Returns
/// how many were admitted, and what they have used.
async fn spend(case: &Case, clients: &[Client]) -> (u64, u64) {
    // A connection for each request, and its other end.
    raise_open_files();
    let team = Team::new();
    let engine = Arc::new(GatedEngine::new(case.engine, case.completion_tokens));
    let parts = team.parts_with(plain_parts(Arc::clone(&engine) as Arc<dyn Engine>));
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let key = team.member("ana", json!({ "budgets": [case.budget], "cloud": true })).await;
    let refused = Arc::new(AtomicUsize::new(0));
    let requests = (0..REQUESTS).map(|index| {
        let client = clients[index % clients.len()];
        let url = server.url("/v1/chat/completions");
        let request = server.client.post(url).bearer_auth(&key).json(&client.body());
        let refused = Arc::clone(&refused);
        tokio::spawn(async move {
            let mut response = request.send().await.unwrap();
            if response.status() == 429 {
                let body: Value = response.json().await.unwrap();
                assert_eq!(body["error"]["code"], "insufficient_quota", "{body}");
                refused.fetch_add(1, Ordering::SeqCst);
                return None;
            }
            assert_eq!(response.status(), 200);
            match client {
                Client::Whole => {
                    let body: Value = response.json().await.unwrap();
                    assert_eq!(body["choices"][0]["message"]["content"], WORD);
                }
                Client::Streamed => assert!(response.text().await.unwrap().ends_with("[DONE]\n\n")),
                Client::Leaving => {
                    let mut read = Vec::new();
                    while !String::from_utf8_lossy(&read).contains(WORD) {
                        read.extend_from_slice(&response.chunk().await.unwrap().unwrap());
                    }
                }
            }
            Some(client)
        })
    });
    let requests: Vec<_> = requests.collect();
    let decided = || engine.arrived.load(Ordering::SeqCst) + refused.load(Ordering::SeqCst);
    until(async || decided() == REQUESTS).await;
    // All that are admitted run now, and what they reserve fits into the budget as often as it can.
    let admitted = engine.arrived.load(Ordering::SeqCst) as u64;
    assert_eq!(admitted, case.limit / case.reserved());
    assert_eq!(team.used("ana").await, admitted * case.reserved());
    engine.gate.send_replace(true);
    let mut used = 0;
    for request in requests {
        used += match request.await.unwrap() {
            None => 0,
            Some(Client::Leaving) => case.used_until_left(),
            Some(Client::Whole | Client::Streamed) => case.used(),
        };
    }
    // The server notices a moment later that a client has left.
    until(async || team.used("ana").await == used).await;
    assert!(used <= case.bound(), "{used} of {}, and at most {}", case.limit, case.bound());
    // What is used up stays used up.
    if used >= case.limit {
        let (status, body) = post(&server, "/v1/chat/completions", &key, &Client::Whole.body()).await;
        assert_eq!((status, &body["error"]["code"]), (429, &json!("insufficient_quota")), "{body}");
    }
    (admitted, used)
}

const ALL_CLIENTS: [Client; 3] = [Client::Whole, Client::Streamed, Client::Leaving];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_at_once_never_use_more_tokens_than_the_budget() {
    let case =
        Case { engine: "scripted", budget: "10k tokens/day", limit: 10_000, unit: 1, completion_tokens: 40 };
    let (admitted, used) = spend(&case, &ALL_CLIENTS).await;
    assert!(admitted > 0 && used < case.limit, "{admitted} {used}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_at_once_never_use_more_dollars_than_the_budget() {
    let case = Case {
        engine: "cloud",
        budget: "12.5 USD/month",
        limit: 12_500_000_000,
        unit: NANO_DOLLARS_PER_TOKEN,
        completion_tokens: MAX_TOKENS,
    };
    let (admitted, used) = spend(&case, &[Client::Whole, Client::Streamed]).await;
    assert_eq!(used, admitted * case.reserved());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_beyond_their_limit_exceed_a_budget_of_tokens_by_no_more_than_the_bound() {
    let case =
        Case { engine: "scripted", budget: "10k tokens/day", limit: 10_000, unit: 1, completion_tokens: 295 };
    let (_, used) = spend(&case, &[Client::Whole, Client::Streamed]).await;
    assert!(used > case.limit, "the estimate was too low, so this shows the bound: {used}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_beyond_their_limit_exceed_a_budget_of_dollars_by_no_more_than_the_bound() {
    let case = Case {
        engine: "cloud",
        budget: "10 USD/day",
        limit: 10_000_000_000,
        unit: NANO_DOLLARS_PER_TOKEN,
        completion_tokens: 195,
    };
    spend(&case, &ALL_CLIENTS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_before_its_answer_uses_what_was_reserved() {
    let case = Case {
        engine: "cloud",
        budget: "10 USD/day",
        limit: 10_000_000_000,
        unit: NANO_DOLLARS_PER_TOKEN,
        completion_tokens: MAX_TOKENS,
    };
    let team = Team::new();
    let engine = Arc::new(GatedEngine::new(case.engine, case.completion_tokens));
    let parts = team.parts_with(plain_parts(Arc::clone(&engine) as Arc<dyn Engine>));
    let server = TestServer::start_parts(parts, loopback_config()).await;
    let key = team.member("ana", json!({ "budgets": [case.budget], "cloud": true, "parallel": 1 })).await;
    let path = "/v1/chat/completions";
    let request = server.client.post(server.url(path)).bearer_auth(&key).json(&Client::Whole.body());
    let asking = tokio::spawn(request.send());
    until(async || engine.arrived.load(Ordering::SeqCst) == 1).await;
    asking.abort();
    // The request has ended when the limit of requests at once is not the reason for a refusal.
    let mut never = Client::Whole.body();
    never["max_tokens"] = json!(case.limit / case.unit);
    until(async || post(&server, path, &key, &never).await.1["error"]["code"] == "insufficient_quota").await;
    assert_eq!(team.used("ana").await, case.reserved());
}

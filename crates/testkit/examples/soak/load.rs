//! What the clients do: some of everything, again and again, with pauses, so that the load is the same at the start and at the end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hob_testkit::Gateway;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::http::{Call, field};

/// Clients at the same time.
const CLIENTS: usize = 8;

/// After each operation.
const PAUSE: Duration = Duration::from_millis(40);

/// Failures that are kept.
const MAX_FAILURES: usize = 1_000;

/// How long a message may wait for its answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

pub struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

struct Shared {
    port: u16,
    is_over: AtomicBool,
    /// How long the answers took since the last sample.
    latencies: Mutex<Vec<Duration>>,
    /// Operations since the last sample.
    done: Mutex<usize>,
    failures: Mutex<Vec<String>>,
}

impl Load {
    pub fn start(port: u16, gateway: Gateway) -> Self {
        let shared = Arc::new(Shared {
            port,
            is_over: AtomicBool::new(false),
            latencies: Mutex::default(),
            done: Mutex::default(),
            failures: Mutex::default(),
        });
        let mut clients: Vec<_> =
            (0..CLIENTS).map(|client| tokio::spawn(Arc::clone(&shared).work(client))).collect();
        clients.push(tokio::spawn(Arc::clone(&shared).talk(gateway)));
        Load { shared, clients }
    }

    /// The operations since the last call, and how long their answers took.
    pub fn take(&self) -> (usize, Vec<Duration>) {
        (std::mem::take(&mut *lock(&self.shared.done)), std::mem::take(&mut *lock(&self.shared.latencies)))
    }

    /// Stops the clients. Returns what failed.
    pub async fn stop(self) -> Vec<String> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.expect("a client that does not panic");
        }
        std::mem::take(&mut *lock(&self.shared.failures))
    }
}

impl Shared {
    async fn work(self: Arc<Self>, client: usize) {
        // Every client begins with another operation.
        let mut number = client;
        while !self.is_over.load(Ordering::Relaxed) {
            if let Err(failure) = self.operation(client, number).await {
                let mut failures = lock(&self.failures);
                if failures.len() < MAX_FAILURES {
                    failures.push(failure);
                }
            }
            *lock(&self.done) += 1;
            number += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn operation(&self, client: usize, number: usize) -> Result<(), String> {
        match number % 12 {
            0 | 1 => self.timed(&chat(false)).await.map(drop),
            2 | 3 => match self.timed(&chat(true)).await? {
                answer if answer.contains("[DONE]") => Ok(()),
                answer => Err(format!("an incomplete stream: {answer}")),
            },
            4 => chat(true).leave_early(self.port).await,
            5 => {
                let body = json!({ "model": "smollm2", "input": "The crane flies." });
                self.timed(&Call::post("/v1/embeddings", &body)).await.map(drop)
            }
            6 => self.document(client, number).await,
            7 => self.task().await,
            8 => self.saved_chat().await,
            9 => self.response().await,
            10 => self.page(number).await,
            _ => {
                let body = json!({ "query": "crane", "top_k": 5 });
                self.timed(&Call::post("/v1/memory/search", &body)).await.map(drop)
            }
        }
    }

    async fn timed(&self, call: &Call) -> Result<String, String> {
        let began = Instant::now();
        let answer = call.answer(self.port).await?;
        lock(&self.latencies).push(began.elapsed());
        Ok(answer)
    }

    /// Replaces a document of the client.
    async fn document(&self, client: usize, number: usize) -> Result<(), String> {
        let call = Call {
            method: "POST",
            path: format!("/v1/memory/documents?name=crane{client}.md"),
            content_type: "application/octet-stream",
            body: format!("# Crane {client}\n\nThe crane flies over the marsh for the {number}th time.\n"),
        };
        self.timed(&call).await.map(drop)
    }

    async fn task(&self) -> Result<(), String> {
        let body = json!({ "prompt": "Hello", "schedule_type": "interval", "schedule_value": 3600 });
        let id = id_of(&self.timed(&Call::post("/v1/tasks", &body)).await?)?;
        self.timed(&Call::post(&format!("/v1/tasks/{id}/pause"), &json!({}))).await?;
        self.timed(&Call::delete(format!("/v1/tasks/{id}"))).await.map(drop)
    }

    async fn saved_chat(&self) -> Result<(), String> {
        let id = id_of(&self.timed(&Call::post("/v1/chats", &json!({}))).await?)?;
        let turn = json!({ "parent": null, "question": { "text": "Why is the sky blue?" } });
        self.timed(&Call::post(&format!("/v1/chats/{id}/turns"), &turn)).await?;
        self.timed(&Call::delete(format!("/v1/chats/{id}"))).await.map(drop)
    }

    async fn response(&self) -> Result<(), String> {
        let body = json!({ "model": "default", "input": "Hello", "store": true });
        let id = id_of(&self.timed(&Call::post("/v1/responses", &body)).await?)?;
        self.timed(&Call::delete(format!("/v1/responses/{id}"))).await.map(drop)
    }

    async fn page(&self, number: usize) -> Result<(), String> {
        let pages = [
            "/",
            "/dashboard",
            "/documents",
            "/tasks",
            "/v1/calls?limit=20",
            "/v1/usage",
            "/v1/savings",
            "/metrics",
            "/health",
        ];
        self.timed(&Call::get(pages[number / 12 % pages.len()])).await.map(drop)
    }

    /// Sends messages of a channel, one after the other, and waits for each answer.
    async fn talk(self: Arc<Self>, gateway: Gateway) {
        if tokio::time::timeout(ANSWER_LIMIT, gateway.opened(1)).await.is_err() {
            lock(&self.failures).push("the server does not connect to the gateway".to_owned());
            return;
        }
        let mut number = 0;
        while !self.is_over.load(Ordering::Relaxed) {
            let frames = gateway.frames().len();
            // Few for each sender, because the answers to one are limited.
            let message = json!({
                "channel": "telegram", "sender": format!("s{}", number % 500), "content": "Hello",
                "message_id": number.to_string(), "conversation_id": format!("c{}", number % 500),
            });
            gateway.push(message.to_string());
            if tokio::time::timeout(ANSWER_LIMIT, gateway.received(frames + 1)).await.is_err() {
                lock(&self.failures).push(format!("message {number} is not answered"));
            }
            *lock(&self.done) += 1;
            number += 1;
            tokio::time::sleep(PAUSE * 25).await;
        }
    }
}

fn chat(is_streamed: bool) -> Call {
    let messages = json!([{ "role": "user", "content": "Why is the sky blue?" }]);
    let body = json!({ "model": "default", "agent": "none", "stream": is_streamed, "messages": messages });
    Call::post("/v1/chat/completions", &body)
}

fn id_of(answer: &str) -> Result<String, String> {
    field(answer, "id").ok_or_else(|| format!("an answer without an id: {answer}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

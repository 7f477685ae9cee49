//! What clients do: chats, streams, stored responses, tasks, notes and searches, through the load balancer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fastrand::Rng;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::cluster::KEY;
use super::engine::{NOTE, SAVED, mark_of, prompt};
use super::nginx::REPLICA;

/// A request, from its start to the last byte of its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub what: String,
    /// The address of the replica that answered, or should have.
    pub replica: Option<String>,
    pub began: Instant,
    pub ended: Instant,
    /// Why it failed.
    pub failure: Option<String>,
}

/// A chat with its mark in the log of the engine.
#[derive(Debug, Clone, Copy)]
pub struct Answered {
    pub mark: u64,
    pub ended: Instant,
}

/// What was acknowledged, and so must be there at the end.
#[derive(Debug, Default)]
pub struct Acknowledged {
    /// Ids, and the texts of the answers.
    pub responses: Vec<(String, String)>,
    /// Ids, and the subjects of the prompts.
    pub tasks: Vec<(String, String)>,
    /// A word of each note and file.
    pub words: Vec<String>,
}

pub struct Load {
    client: reqwest::Client,
    url: String,
    numbers: AtomicUsize,
    /// Chats that ended well.
    pub chats: watch::Sender<usize>,
    pub is_over: AtomicBool,
    pub exchanges: Mutex<Vec<Exchange>>,
    pub answered: Mutex<Vec<Answered>>,
    pub acknowledged: Mutex<Acknowledged>,
    /// Requests that were refused with 503 and repeated.
    pub refused: AtomicUsize,
}

/// An answer with status 200 or 201.
pub struct Answer {
    pub text: String,
    /// What of the request had no effect.
    warnings: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Only chats, which continue without the database. The others then wait for it.
    Talker,
    Any,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Database {
    Needed,
    /// It must be answered without the database too.
    NotNeeded,
}

impl Load {
    pub fn new(url: String) -> Self {
        hob_net::install_crypto();
        Load {
            client: reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client"),
            url,
            numbers: AtomicUsize::new(0),
            chats: watch::Sender::new(0),
            is_over: AtomicBool::new(false),
            exchanges: Mutex::default(),
            answered: Mutex::default(),
            acknowledged: Mutex::default(),
            refused: AtomicUsize::new(0),
        }
    }

    /// Works until at least `count` operations are done and the faults are over.
    pub async fn work(&self, count: usize, client: Client, mut rng: Rng) {
        let mut done = 0;
        while done < count || !self.is_over.load(Ordering::Relaxed) {
            done += 1;
            let operations = match client {
                Client::Talker => 60,
                Client::Any => 100,
            };
            match rng.u8(..operations) {
                0..35 => self.chat().await,
                35..60 => self.stream().await,
                60..75 => self.store_response().await,
                75..83 => self.create_task(&mut rng).await,
                83..90 => self.save_note().await,
                _ => self.search(&mut rng).await,
            }
        }
    }

    async fn chat(&self) {
        let subject = self.subject("chat");
        let body = json!({ "model": "default", "agent": "none", "messages": messages(&subject) });
        let Some(Answer { text, .. }) = self.post("/v1/chat/completions", &body, Database::NotNeeded).await
        else {
            return;
        };
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        self.note_chat(answer["choices"][0]["message"]["content"].as_str().unwrap_or_default(), &subject);
    }

    async fn stream(&self) {
        let subject = self.subject("stream");
        let body = json!({ "model": "default", "stream": true, "messages": messages(&subject) });
        let Some(Answer { text, .. }) = self.post("/v1/chat/completions", &body, Database::NotNeeded).await
        else {
            return;
        };
        let events = text.lines().filter_map(|line| line.strip_prefix("data: {"));
        let contents = events.filter_map(|event| {
            let event: Value = serde_json::from_str(&format!("{{{event}")).expect("JSON");
            event["choices"][0]["delta"]["content"].as_str().map(str::to_owned)
        });
        let answer: String = contents.collect();
        if text.contains("data: [DONE]") {
            self.note_chat(&answer, &subject);
        } else {
            let mut exchanges = lock(&self.exchanges);
            let last = exchanges.iter_mut().rfind(|exchange| exchange.what.contains(&subject));
            last.expect("its request").failure = Some(format!("an incomplete stream: {text}"));
        }
    }

    pub fn note_chat(&self, answer: &str, subject: &str) {
        let mark = mark_of(answer, subject).unwrap_or_else(|| panic!("'{answer}' answers '{subject}'"));
        lock(&self.answered).push(Answered { mark, ended: Instant::now() });
        self.chats.send_modify(|count| *count += 1);
    }

    async fn store_response(&self) {
        let subject = self.subject("response");
        let body = json!({ "model": "default", "store": true, "input": prompt(&subject) });
        let Some(Answer { text, warnings }) = self.post("/v1/responses", &body, Database::Needed).await
        else {
            return;
        };
        let response: Value = serde_json::from_str(&text).expect("JSON");
        let id = response["id"].as_str().expect("an id").to_owned();
        // The answer says so if the database was away for too long.
        if warnings.iter().any(|warning| warning.ends_with("store")) {
            return;
        }
        // Another replica finds it too.
        self.get(&format!("/v1/responses/{id}")).await;
        lock(&self.acknowledged).responses.push((id, response["output"].to_string()));
    }

    /// Creates a task that runs once, some seconds later.
    async fn create_task(&self, rng: &mut Rng) {
        let subject = self.subject("task");
        let after = Duration::from_millis(rng.u64(1000..4000));
        self.create(&subject, &|| {
            json!({ "schedule_type": "once", "schedule_value": (jiff::Timestamp::now() + after).to_string() })
        })
        .await;
    }

    /// Creates a task with this schedule. Returns its id if it was acknowledged.
    pub async fn create(&self, subject: &str, schedule: &(dyn Fn() -> Value + Sync)) -> Option<String> {
        loop {
            let mut body = schedule();
            body["prompt"] = json!(prompt(subject));
            match self.send(Method::POST, "/v1/tasks", Some(&body)).await {
                Reply::Answer(Answer { text, .. }) => {
                    let task: Value = serde_json::from_str(&text).expect("JSON");
                    let id = task["id"].as_str().expect("an id").to_owned();
                    lock(&self.acknowledged).tasks.push((id.clone(), subject.to_owned()));
                    return Some(id);
                }
                Reply::Refused { retry_after } => self.wait(retry_after).await,
                Reply::OverBudget | Reply::Failed => return None,
            }
        }
    }

    /// An agent saves a note with a tool.
    async fn save_note(&self) {
        let word = self.subject("heron");
        let words = format!("{NOTE}The {word} stands in the reeds.");
        let body = json!({ "model": "default", "agent": "orchestrator", "messages": messages(&words) });
        let Some(Answer { text, .. }) = self.post("/v1/chat/completions", &body, Database::NotNeeded).await
        else {
            return;
        };
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        // Without the database the agent says that the tool failed.
        if answer["choices"][0]["message"]["content"] == SAVED {
            lock(&self.acknowledged).words.push(word);
        }
    }

    async fn search(&self, rng: &mut Rng) {
        let word = {
            let acknowledged = lock(&self.acknowledged);
            if acknowledged.words.is_empty() {
                return;
            }
            acknowledged.words[rng.usize(..acknowledged.words.len())].clone()
        };
        self.find(&word).await;
    }

    /// Searches for a word that must be found.
    pub async fn find(&self, word: &str) {
        let body = json!({ "query": word, "top_k": 5 });
        let Some(Answer { text, .. }) = self.post("/v1/memory/search", &body, Database::Needed).await else {
            return;
        };
        if !text.contains(word) {
            self.fail(format!("the search for {word} found {text}"));
        }
    }

    /// Notes a failure that no kill excuses.
    pub fn fail(&self, failure: String) {
        let now = Instant::now();
        let exchange =
            Exchange { what: String::new(), replica: None, began: now, ended: now, failure: Some(failure) };
        lock(&self.exchanges).push(exchange);
    }

    pub fn subject(&self, kind: &str) -> String {
        format!("{kind}{}q", self.numbers.fetch_add(1, Ordering::Relaxed))
    }

    async fn post(&self, path: &str, body: &Value, database: Database) -> Option<Answer> {
        loop {
            match self.send(Method::POST, path, Some(body)).await {
                Reply::Answer(answer) => return Some(answer),
                Reply::OverBudget | Reply::Failed => return None,
                Reply::Refused { retry_after } if database == Database::Needed => {
                    self.wait(retry_after).await
                }
                Reply::Refused { .. } => {
                    self.fail(format!("{path} was refused, but needs no database: {body}"));
                    return None;
                }
            }
        }
    }

    /// A change that needs no more than its path.
    pub async fn post_empty(&self, path: &str) -> Option<Answer> {
        self.post(path, &json!({}), Database::Needed).await
    }

    pub async fn get(&self, path: &str) -> Option<Answer> {
        loop {
            match self.send(Method::GET, path, None).await {
                Reply::Answer(answer) => return Some(answer),
                Reply::OverBudget | Reply::Failed => return None,
                Reply::Refused { retry_after } => self.wait(retry_after).await,
            }
        }
    }

    pub async fn wait(&self, retry_after: Duration) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(retry_after).await;
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Reply {
        let answer = self.send_with(KEY, method, path, body).await;
        match answer {
            Reply::OverBudget => {
                self.fail(format!("{path} was refused for a budget, but the owner has none"));
                Reply::Failed
            }
            other => other,
        }
    }

    /// Sends a request with this key.
    pub async fn send_with(&self, key: &str, method: Method, path: &str, body: Option<&Value>) -> Reply {
        let what = format!("{method} {path} {}", body.map(Value::to_string).unwrap_or_default());
        let request = self.client.request(method, format!("{}{path}", self.url)).bearer_auth(key);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let began = Instant::now();
        let (mut replica, mut retry_after, mut warnings) = (None, None, Vec::new());
        let answer: Result<(u16, String), reqwest::Error> = async {
            let response = request.send().await?;
            let header = |name: &str| {
                let value = response.headers().get(name)?;
                value.to_str().ok().map(str::to_owned)
            };
            // The last one, if the first could not be reached.
            replica = header(REPLICA).and_then(|all| all.rsplit(", ").next().map(str::to_owned));
            retry_after = header("retry-after").and_then(|seconds| seconds.parse().ok());
            let texts = response.headers().get_all("x-hob-warning").iter();
            warnings = texts.filter_map(|text| text.to_str().ok().map(str::to_owned)).collect();
            Ok((response.status().as_u16(), response.text().await?))
        }
        .await;
        let ended = Instant::now();
        let (reply, failure) = match (answer, retry_after) {
            (Ok((200 | 201, text)), _) => (Reply::Answer(Answer { text, warnings }), None),
            (Ok((503, _)), Some(seconds)) => {
                (Reply::Refused { retry_after: Duration::from_secs(seconds) }, None)
            }
            (Ok((429, text)), _) if text.contains("insufficient_quota") => (Reply::OverBudget, None),
            (Ok((status, text)), _) => (Reply::Failed, Some(format!("{status}: {text}"))),
            (Err(error), _) => (Reply::Failed, Some(format!("{error:?}"))),
        };
        lock(&self.exchanges).push(Exchange { what, replica, began, ended, failure });
        reply
    }
}

pub enum Reply {
    Answer(Answer),
    /// With 503, until the database is back.
    Refused {
        retry_after: Duration,
    },
    /// With 429: the budget of the key does not suffice.
    OverBudget,
    Failed,
}

pub fn messages(subject: &str) -> Value {
    json!([{ "role": "user", "content": prompt(subject) }])
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

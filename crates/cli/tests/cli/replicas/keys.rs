//! The limits and the budget of one key, whose requests reach three replicas.

use std::time::Duration;

use futures::StreamExt;
use hob_testkit::{Gateway, GatewayScript};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::cluster::{Cluster, KEY, REPLICAS};
use super::engine::{EngineLog, prompt};

/// What the key may send in a minute. Each replica gets as many requests, so that it spends every share that it has leased.
const PER_MINUTE: usize = 60;

/// Requests that wait for an answer at the same time.
const AT_ONCE: usize = 12;

/// In tokens. Calls are small at first and grow, so that about a hundred fit.
const BUDGET: u64 = 5_000;

const MAX_TOKENS: u64 = 200;

/// More than a call reserves, which is `MAX_TOKENS` and the estimate of its prompt.
const NEED: u64 = MAX_TOKENS + 100;

/// The most that a killed replica has leased and not spent: what one call needs, and a share of what is left.
const LOST_WITH_A_REPLICA: u64 = NEED + BUDGET / 16;

/// How often a state that must come is asked for. The time limit of the test ends a wait that is in vain.
const POLL: Duration = Duration::from_millis(50);

struct Client {
    http: reqwest::Client,
    secret: String,
}

/// The secret of a new key, which every replica knows.
pub async fn create_key(cluster: &Cluster, name: &str, rules: Value) -> String {
    Client::with_key(cluster, name, rules).await.secret
}

#[derive(Debug)]
struct Answer {
    status: u16,
    retry_after: Option<u64>,
    code: Option<String>,
    text: String,
}

impl Client {
    /// With a new key, which every replica knows.
    async fn with_key(cluster: &Cluster, name: &str, rules: Value) -> Self {
        hob_net::install_crypto();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client");
        let mut body = rules;
        body["name"] = json!(name);
        let created =
            http.post(format!("{}/v1/keys", cluster.url())).bearer_auth(KEY).json(&body).send().await;
        let created = created.expect("an answer").text().await.expect("an answer");
        let created: Value = serde_json::from_str(&created).expect("JSON");
        let secret = created["secret"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
        let client = Client { http, secret };
        for index in 0..REPLICAS {
            client.wait_until_known(&cluster.address(index)).await;
        }
        client
    }

    async fn wait_until_known(&self, address: &str) {
        let url = format!("http://{address}/v1/keys/self");
        loop {
            let own = self.http.get(&url).bearer_auth(&self.secret).send().await.expect("an answer");
            if own.status() == 200 {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Asks one replica; `None` if it ends before it has answered.
    async fn ask(&self, address: &str, subject: &str) -> Option<Answer> {
        let messages = json!([{ "role": "user", "content": prompt(subject) }]);
        let body =
            json!({ "model": "default", "agent": "none", "max_tokens": MAX_TOKENS, "messages": messages });
        let url = format!("http://{address}/v1/chat/completions");
        let response = self.http.post(url).bearer_auth(&self.secret).json(&body).send().await.ok()?;
        let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        let (status, retry_after) =
            (response.status().as_u16(), retry_after.and_then(|seconds| seconds.parse().ok()));
        let text = response.text().await.ok()?;
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        let code = body["error"]["code"].as_str().map(str::to_owned);
        Some(Answer { status, retry_after, code, text })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_answer_the_sixty_requests_a_minute_of_a_key_and_no_more() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let mut cluster = Cluster::start(EngineLog::default(), &gateway).await;
    let addresses: Vec<String> = (0..REPLICAS).map(|index| cluster.address(index)).collect();
    for attempt in 0_u32.. {
        let rules = json!({ "requests_per_minute": PER_MINUTE });
        let client = Client::with_key(&cluster, &format!("ana{attempt}"), rules).await;
        // In the first half of a minute, so that all requests are probably in it.
        while Timestamp::now().as_second() % 60 >= 30 {
            tokio::time::sleep(POLL).await;
        }
        let minute = Timestamp::now().as_second() / 60;
        let requests = (0..PER_MINUTE * REPLICAS).map(|number| {
            let (client, address) = (&client, &addresses[number % REPLICAS]);
            async move { client.ask(address, &format!("minute{number}q")).await.expect("it is not killed") }
        });
        let answers: Vec<Answer> = futures::stream::iter(requests).buffer_unordered(AT_ONCE).collect().await;
        if Timestamp::now().as_second() / 60 != minute {
            // The key may send more in the next minute, so this says nothing.
            continue;
        }
        let (answered, refused): (Vec<Answer>, Vec<Answer>) =
            answers.into_iter().partition(|answer| answer.status == 200);
        assert_eq!(answered.len(), PER_MINUTE, "{refused:?}\n{}", cluster.logs());
        for answer in refused {
            assert_eq!((answer.status, answer.code.as_deref()), (429, Some("rate_limit_exceeded")));
            assert!(answer.retry_after.is_some_and(|seconds| (1..=60).contains(&seconds)), "{answer:?}");
        }
        break;
    }
    cluster.stop_replicas().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_holds_across_replicas_that_are_killed() {
    let day = || Timestamp::now().as_second() / 86_400;
    loop {
        let began = day();
        let wrong = spend_across_kills().await;
        // The budget begins again with a day.
        if day() == began {
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
            return;
        }
    }
}

/// Spends a budget at three replicas, kills two of them while they answer, and returns what is wrong.
async fn spend_across_kills() -> Vec<String> {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let engines = EngineLog::default();
    let mut cluster = Cluster::start(engines.clone(), &gateway).await;
    let rules = json!({ "budgets": [format!("{BUDGET} tokens/day")] });
    let client = Client::with_key(&cluster, "ana", rules).await;
    let (mut refused, mut kills) = (0, 0);
    for number in 0_usize.. {
        let (index, subject) = (number % REPLICAS, format!("budget{number}q"));
        let address = cluster.address(index);
        if [10, 26].contains(&number) {
            let killing = async {
                while !engines.calls().iter().any(|call| call.subject == subject) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                cluster.kill_replica(index).await;
            };
            // What it answers, if anything, is of no interest.
            let (_, ()) = tokio::join!(client.ask(&address, &subject), killing);
            cluster.start_replica(index).await;
            client.wait_until_known(&address).await;
            kills += 1;
            continue;
        }
        let answer = client.ask(&address, &subject).await.expect("it is not killed");
        match (answer.status, answer.code.as_deref()) {
            (200, _) => refused = 0,
            (429, Some("insufficient_quota")) => refused += 1,
            _ => return vec![format!("{subject}: {} {}\n{}", answer.status, answer.text, cluster.logs())],
        }
        // None of them has enough left.
        if refused == REPLICAS {
            break;
        }
    }
    cluster.stop_replicas().await;
    let shown = cluster.command_line().run(&["key", "show", "ana", "--json"]).await;
    let Ok(shown) = serde_json::from_str::<Value>(&shown.stdout) else {
        return vec![format!("the key is not shown: {shown:?}")];
    };
    let counted = shown["usage"][0]["used"].as_u64().unwrap_or_default();
    // The engine reports its mark and two more tokens.
    let of_key = engines.calls().into_iter().filter(|call| call.subject.starts_with("budget"));
    let spent: u64 = of_key.map(|call| call.mark + 2).sum();
    let lost = kills * LOST_WITH_A_REPLICA;
    let least = BUDGET - lost - REPLICAS as u64 * NEED;
    let mut wrong = Vec::new();
    if spent > BUDGET || spent < least {
        wrong.push(format!("{spent} tokens were spent, not {least} to {BUDGET}"));
    }
    if counted < spent || counted > spent + lost || counted > BUDGET {
        wrong.push(format!("{counted} tokens count, but {spent} were spent, and {lost} may be lost"));
    }
    if !wrong.is_empty() {
        wrong.push(cluster.logs());
    }
    wrong
}

//! A key with a budget, which is spent at all replicas while they are killed and the database restarts.

use std::sync::atomic::Ordering;

use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use super::checks::Evidence;
use super::cluster::{Cluster, REPLICAS};
use super::faults::Outage;
use super::keys::create_key;
use super::load::{Answer, Load, Reply, messages};

const NAME: &str = "spender";

/// What the subjects of its questions begin with.
const SUBJECT: &str = "budget";

/// The least number of questions.
const QUESTIONS: usize = 20;

/// Of one round, in tokens. The engine reports the number of a call as its tokens, and there are fewer calls than this.
const MAX_TOKENS: u64 = 50_000;

pub struct Budget {
    secret: String,
    /// In tokens.
    limit: u64,
    /// What a call reserves at most.
    max_tokens: u64,
    /// A budget begins again with its month.
    month: (i16, i8),
}

impl Budget {
    pub async fn start(cluster: &Cluster, rounds: usize) -> Self {
        let max_tokens = MAX_TOKENS * rounds as u64;
        let limit = 20 * max_tokens;
        let month = month();
        let rules = json!({ "budgets": [format!("{limit} tokens/month")] });
        Budget { secret: create_key(cluster, NAME, rules).await, limit, max_tokens, month }
    }

    /// Asks until the faults are over. Returns how many questions the budget refused.
    pub async fn spend(&self, load: &Load) -> usize {
        let (mut asked, mut refused) = (0, 0);
        while asked < QUESTIONS || !load.is_over.load(Ordering::Relaxed) {
            asked += 1;
            let subject = load.subject(SUBJECT);
            let body = json!({
                "model": "default", "agent": "none", "max_tokens": self.max_tokens, "messages": messages(&subject),
            });
            loop {
                let path = "/v1/chat/completions";
                match load.send_with(&self.secret, Method::POST, path, Some(&body)).await {
                    Reply::Answer(Answer { text, .. }) => {
                        let answer: Value = serde_json::from_str(&text).expect("JSON");
                        let content = &answer["choices"][0]["message"]["content"];
                        load.note_chat(content.as_str().unwrap_or_default(), &subject);
                    }
                    // Without the database, a replica that has spent its share cannot get another.
                    Reply::Refused { retry_after } => {
                        load.wait(retry_after).await;
                        continue;
                    }
                    Reply::OverBudget => refused += 1,
                    Reply::Failed => {}
                }
                break;
            }
        }
        refused
    }

    /// The replicas have stopped: what counts is what was spent, and the shares that were lost with a process or its connection.
    pub async fn check(&self, cluster: &Cluster, evidence: &Evidence, outages: &[Outage]) -> Vec<String> {
        if month() != self.month {
            return Vec::new();
        }
        let shown = cluster.command_line().run(&["key", "show", NAME, "--json"]).await;
        let Ok(shown) = serde_json::from_str::<Value>(&shown.stdout) else {
            return vec![format!("the key is not shown: {shown:?}")];
        };
        let counted = shown["usage"][0]["used"].as_u64().unwrap_or_default();
        // The engine reports the number of the call and two more tokens.
        let calls = evidence.calls.iter().filter(|call| call.subject.starts_with(SUBJECT));
        let spent: u64 = calls.map(|call| call.mark + 2).sum();
        let killed = evidence.lives.iter().filter(|life| life.killed.is_some()).count();
        let losses = (killed + outages.len() * REPLICAS) as u64;
        // What one call needs with its prompt, and a sixteenth of what is left.
        let share = self.max_tokens + 1_000 + self.limit / 16;
        if spent <= counted && counted <= self.limit && counted <= spent + losses * share {
            return Vec::new();
        }
        let limit = self.limit;
        vec![format!(
            "{counted} of {limit} tokens count, {spent} were spent, and {losses} shares of {share} may be lost"
        )]
    }
}

fn month() -> (i16, i8) {
    let date = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    (date.year(), date.month())
}

//! Real llama.cpp servers, as processes that are killed, stopped and restarted under load.

use futures::StreamExt;
use futures::future::join_all;
use hob_core::Backoff;
use hob_engines::multi_host::BreakerOptions;
use hob_engines::{MultiHost, MultiHostOptions};
use hob_testkit::{LlamaServer, free_port};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::*;

/// Longer than any wait here takes. A wait that is not over by then has failed.
const WAIT_LIMIT: Duration = Duration::from_secs(300);

/// The number of concurrent clients.
const CROWD: usize = 6;

/// Three servers on two cores, so each is small.
const ARGUMENTS: [&str; 8] = ["--threads", "1", "--parallel", "4", "-c", "2048", "--alias", "smollm2"];

fn signal(server: &LlamaServer, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// The results so far.
#[derive(Debug, Default)]
struct Tally {
    /// What the test does now.
    stage: &'static str,
    answered: usize,
    /// Broke after the first delta.
    broken: Vec<String>,
    /// Failed before the first delta.
    failed: Vec<String>,
}

impl Tally {
    /// Counts first, because a report may cut off what follows.
    fn report(&self) -> String {
        let Tally { stage, answered, broken, failed } = self;
        let (broken, failed) = (first_of(broken), first_of(failed));
        format!("{stage}: {answered} answered; {broken} broken; {failed} failed")
    }

    /// An error, and when it happened.
    fn during_stage(&self, error: &EngineError) -> String {
        format!("{}: {error}", self.stage)
    }
}

/// The number of errors, and the first of them.
fn first_of(errors: &[String]) -> String {
    format!("{} {:?}", errors.len(), &errors[..errors.len().min(3)])
}

/// Clients that send one request after another until they are dropped.
struct Load {
    tally: Arc<watch::Sender<Tally>>,
    _askers: JoinSet<()>,
}

impl Load {
    fn on(engine: &Arc<dyn Engine>) -> Self {
        let tally = Arc::new(watch::Sender::new(Tally::default()));
        let mut askers = JoinSet::new();
        for asker in 0..CROWD {
            let (engine, tally) = (Arc::clone(engine), Arc::clone(&tally));
            askers.spawn(async move {
                for question in 0.. {
                    let request = asking(&format!("Asker {asker} wants {question} words. Say hello."), 8);
                    // Some clients request a complete answer.
                    match question % 3 {
                        0 => whole(&engine, &request, &tally).await,
                        _ => streamed(&engine, &request, &tally).await,
                    }
                }
            });
        }
        Load { tally, _askers: askers }
    }

    fn begin(&self, stage: &'static str) {
        self.tally.send_modify(|tally| tally.stage = stage);
    }

    /// Waits for this many further answers.
    async fn answers(&self, count: usize) {
        let goal = self.tally.borrow().answered + count;
        self.until(|tally| tally.answered >= goal, || format!("fewer than {goal} answers")).await;
    }

    async fn until(&self, reached: impl Fn(&Tally) -> bool, trouble: impl Fn() -> String) {
        let mut tally = self.tally.subscribe();
        let waited = tokio::time::timeout(WAIT_LIMIT, tally.wait_for(|tally| reached(tally))).await;
        assert!(waited.is_ok(), "{} after {WAIT_LIMIT:?}: {}", trouble(), self.tally.borrow().report());
    }

    /// Waits until a host has started this many further answers.
    async fn answers_of(&self, host: &Counted, count: usize) {
        let goal = host.answers() + count;
        let trouble = || format!("{} started {} of {goal} answers", host.engine.address(), host.answers());
        self.until(|_| host.answers() >= goal, trouble).await;
    }
}

async fn whole(engine: &Arc<dyn Engine>, request: &GenerateRequest, tally: &watch::Sender<Tally>) {
    match engine.generate(request).await {
        Ok(_) => tally.send_modify(|tally| tally.answered += 1),
        Err(error) => tally.send_modify(|tally| tally.failed.push(tally.during_stage(&error))),
    }
}

async fn streamed(engine: &Arc<dyn Engine>, request: &GenerateRequest, tally: &watch::Sender<Tally>) {
    let mut deltas = match engine.stream(request).await {
        Ok(stream) => stream.deltas,
        Err(error) => return tally.send_modify(|tally| tally.failed.push(tally.during_stage(&error))),
    };
    while let Some(delta) = deltas.next().await {
        if let Err(error) = delta {
            return tally.send_modify(|tally| tally.broken.push(tally.during_stage(&error)));
        }
    }
    tally.send_modify(|tally| tally.answered += 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_are_killed_stopped_and_restarted_and_only_answers_under_way_are_lost() {
    let ports = [free_port(), free_port(), free_port()];
    let mut servers = join_all(ports.map(|port| LlamaServer::start(port, &ARGUMENTS))).await;
    let hosts = ports.map(|port| Counted::at(Style::LLAMACPP, &format!("http://127.0.0.1:{port}")));
    let options = MultiHostOptions {
        breaker: BreakerOptions {
            pauses: Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(1) },
            ..BreakerOptions::default()
        },
        health_check_after: Duration::from_millis(500),
        ..MultiHostOptions::default()
    };
    let engine =
        MultiHost::of(hosts.iter().map(|host| Arc::clone(host) as Arc<dyn Engine>).collect(), options)
            .unwrap();
    let load = Load::on(&engine);
    load.begin("all run");
    for host in &hosts {
        load.answers_of(host, 2).await;
    }

    // Killed while it answers.
    load.begin("one is killed");
    servers[0].kill().await;
    load.answers(2 * CROWD).await;

    // Restarted, it is used again.
    load.begin("it is restarted");
    servers[0] = LlamaServer::start(ports[0], &ARGUMENTS).await;
    load.answers_of(&hosts[0], 2).await;

    // Stopped, it accepts connections and sends nothing. Other hosts answer the waiting clients.
    load.begin("another is stopped");
    signal(&servers[1], Signal::STOP);
    load.answers(3 * CROWD).await;
    load.begin("it continues");
    signal(&servers[1], Signal::CONT);
    load.answers_of(&hosts[1], 2).await;

    let tally = load.tally.send_replace(Tally::default());
    assert!(tally.failed.is_empty() && tally.broken.len() <= CROWD, "{}", tally.report());
}

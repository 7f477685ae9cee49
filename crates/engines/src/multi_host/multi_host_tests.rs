//! Which host answers, with hosts that behave as a test sets them.

#[path = "failing_host_tests.rs"]
mod failing_hosts;
#[path = "hanging_host_tests.rs"]
mod hanging_hosts;

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use futures::{StreamExt, stream};
use hob_core::{Delta, FinishReason, Message, Role};
use tokio::time::timeout;

use super::host_table::ListChange;
use super::*;

/// How a host behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Well,
    /// No server listens.
    Gone,
    Refuses(u16),
    /// Closes the connection after the request.
    HangsUp,
    /// Closes the connection after the first delta.
    BreaksOff,
    /// Accepts requests and sends nothing.
    Hangs,
    /// Times out after a while.
    TimesOut,
    /// No longer has the model that it lists.
    Lacks,
    /// Answers, and rejects requests for its list of models.
    KeepsItsList(u16),
}

fn refused(status: u16) -> EngineError {
    EngineError::Refused {
        engine: "vllm".into(),
        status,
        message: "no".into(),
        code: None,
        param: None,
        retry_after: None,
    }
}

struct Host {
    address: String,
    models: Mutex<Vec<&'static str>>,
    behaviour: Mutex<Behaviour>,
    asked: AtomicUsize,
    heard: AtomicUsize,
    looked: AtomicUsize,
}

impl Host {
    fn set(&self, behaviour: Behaviour) {
        *self.behaviour.lock().unwrap() = behaviour;
    }

    fn behaviour(&self) -> Behaviour {
        *self.behaviour.lock().unwrap()
    }

    /// The number of requests.
    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// The number of requests for its models.
    fn heard(&self) -> usize {
        self.heard.load(Ordering::Relaxed)
    }

    fn gone(&self) -> EngineError {
        EngineError::Unreachable {
            engine: "vllm".into(),
            address: self.address.clone(),
            reason: "Connection refused".into(),
        }
    }

    async fn deltas(&self) -> Result<Vec<Result<Delta, EngineError>>, EngineError> {
        let broken = || EngineError::Interrupted {
            engine: "vllm".into(),
            reason: "the engine closed the connection".into(),
        };
        let behaviour = self.behaviour();
        if behaviour != Behaviour::Gone {
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
        match behaviour {
            Behaviour::Gone => Err(self.gone()),
            Behaviour::Refuses(status) => Err(refused(status)),
            Behaviour::Lacks => Err(EngineError::ModelNotFound {
                engine: "vllm".into(),
                model: "m".into(),
                available: Vec::new(),
            }),
            Behaviour::HangsUp => Ok(vec![Err(broken())]),
            Behaviour::BreaksOff => Ok(vec![Ok(Delta::text("half")), Err(broken())]),
            Behaviour::Hangs => std::future::pending().await,
            Behaviour::TimesOut => {
                Err(EngineError::Timeout { engine: "vllm".into(), after: Duration::from_secs(120) })
            }
            Behaviour::Well | Behaviour::KeepsItsList(_) => Ok(vec![
                Ok(Delta::text(self.address.clone())),
                Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }),
                Ok(Delta::Done { usage: None }),
            ]),
        }
    }
}

#[async_trait]
impl Engine for Host {
    fn key(&self) -> &str {
        "vllm"
    }

    fn address(&self) -> &str {
        &self.address
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let mut collector = hob_core::Collector::default();
        for delta in self.deltas().await? {
            collector.push(delta?);
        }
        Ok(collector.finish(&request.model).unwrap())
    }

    async fn stream(&self, _: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let deltas = self.deltas().await?;
        Ok(GenerationStream { warnings: Vec::new(), deltas: Box::pin(stream::iter(deltas)) })
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        match self.behaviour() {
            Behaviour::Gone => return Err(self.gone()),
            Behaviour::Hangs => std::future::pending().await,
            _ => {}
        }
        self.heard.fetch_add(1, Ordering::Relaxed);
        if let Behaviour::KeepsItsList(status) = self.behaviour() {
            return Err(refused(status));
        }
        Ok(self.models.lock().unwrap().iter().map(|id| ModelInfo::named(*id)).collect())
    }

    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        match self.behaviour() {
            Behaviour::Well => Some(ModelInfo { context: Some(4_096), ..model.clone() }),
            Behaviour::Hangs => std::future::pending().await,
            _ => None,
        }
    }

    async fn health(&self) -> bool {
        self.looked.fetch_add(1, Ordering::Relaxed);
        !matches!(self.behaviour(), Behaviour::Gone | Behaviour::Hangs)
    }
}

/// Three hosts that have the model `m`, and one engine over them.
fn three(options: MultiHostOptions) -> (Arc<dyn Engine>, Vec<Arc<Host>>) {
    let host = |name: &str| {
        Arc::new(Host {
            address: format!("http://{name}:8000"),
            models: Mutex::new(vec!["m"]),
            behaviour: Mutex::new(Behaviour::Well),
            asked: AtomicUsize::new(0),
            heard: AtomicUsize::new(0),
            looked: AtomicUsize::new(0),
        })
    };
    let hosts: Vec<Arc<Host>> = ["a", "b", "c"].map(host).into();
    let engines = hosts.iter().map(|host| Arc::clone(host) as Arc<dyn Engine>).collect();
    (MultiHost::of(engines, options).unwrap(), hosts)
}

fn asking(model: &str, question: &str) -> GenerateRequest {
    GenerateRequest {
        model: model.into(),
        messages: vec![Message::new(Role::User, question)],
        ..GenerateRequest::default()
    }
}

/// A request whose home is this host.
fn question_for(host: usize, hosts: &[Arc<Host>]) -> GenerateRequest {
    let weight = |request: &GenerateRequest, index: usize| {
        affinity::weight(affinity::conversation(request), affinity::host(&hosts[index].address))
    };
    (0..)
        .map(|number| asking("m", &format!("question {number}")))
        .find(|request| (0..hosts.len()).max_by_key(|index| weight(request, *index)) == Some(host))
        .unwrap()
}

/// The address of the host that answers.
async fn answer(engine: &Arc<dyn Engine>, request: &GenerateRequest) -> Result<String, EngineError> {
    engine.generate(request).await.map(|generation| generation.answer.content)
}

fn asked(hosts: &[Arc<Host>]) -> Vec<usize> {
    hosts.iter().map(|host| host.asked()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_conversation_stays_where_it_began() {
    let (engine, hosts) = three(MultiHostOptions::default());
    for home in 0..3 {
        let mut request = question_for(home, &hosts);
        for turn in 0..5 {
            assert_eq!(answer(&engine, &request).await.unwrap(), hosts[home].address, "turn {turn}");
            request.messages.push(Message::new(Role::Assistant, "Yes."));
            request.messages.push(Message::new(Role::User, format!("And {turn}?")));
        }
    }
    assert_eq!(asked(&hosts), [5, 5, 5]);
    assert_eq!(hosts[0].heard(), 1, "it was heard once, before it was relied on");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_does_not_tell_its_models_is_asked_all_the_same() {
    for status in [401, 404] {
        let (engine, hosts) = three(MultiHostOptions::default());
        hosts.iter().for_each(|host| host.set(Behaviour::KeepsItsList(status)));
        let request = question_for(1, &hosts);
        for _ in 0..3 {
            assert_eq!(answer(&engine, &request).await.unwrap(), hosts[1].address, "{status}");
        }
        assert_eq!(hosts[1].heard(), 1, "and not for its list every time");
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_is_asked_for_only_where_it_is() {
    let (engine, hosts) = three(MultiHostOptions::default());
    *hosts[2].models.lock().unwrap() = vec!["m", "large"];
    let ids: Vec<String> = engine.list_models().await.unwrap().into_iter().map(|model| model.id).collect();
    assert_eq!(ids, ["m", "large"]);
    for number in 0..10 {
        let request = asking("large", &format!("question {number}"));
        assert_eq!(answer(&engine, &request).await.unwrap(), hosts[2].address);
    }
    let error = answer(&engine, &asking("huge", "Hello?")).await.unwrap_err();
    assert_eq!(error.to_string(), "vllm has no model 'huge'; it has m, large");

    hosts[2].set(Behaviour::Gone);
    let error = answer(&engine, &asking("large", "Hello?")).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot reach vllm at http://c:8000: Connection refused");
    let ids: Vec<String> = engine.list_models().await.unwrap().into_iter().map(|model| model.id).collect();
    assert_eq!(ids, ["m"]);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_returns_with_another_model_is_checked_again() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(0, &hosts);
    engine.list_models().await.unwrap();
    hosts[0].set(Behaviour::Gone);
    answer(&engine, &request).await.unwrap();
    // Such a server would answer with any model that it has loaded.
    *hosts[0].models.lock().unwrap() = vec!["other"];
    hosts[0].set(Behaviour::Well);
    tokio::time::advance(BreakerOptions::default().pauses.longest).await;
    assert_ne!(answer(&engine, &request).await.unwrap(), hosts[0].address);
    assert_eq!((hosts[0].asked(), hosts[0].heard()), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_stream_counts_until_it_ends_or_is_dropped() {
    let hosts = three(MultiHostOptions::default()).1;
    let engines: Vec<Arc<dyn Engine>> =
        hosts.iter().map(|host| Arc::clone(host) as Arc<dyn Engine>).collect();
    let table = Arc::new(HostTable::new(engines, BreakerOptions::default(), Instant::now()));
    let multi_host = MultiHost {
        key: "vllm".into(),
        address: String::new(),
        table: Arc::clone(&table),
        discovery: None,
        options: MultiHostOptions::default(),
        next: AtomicU64::new(0),
    };
    let request = question_for(1, &hosts);
    let dropped = multi_host.stream(&request).await.unwrap();
    let mut read = multi_host.stream(&request).await.unwrap();
    assert_eq!(table.in_flight(), [0, 2, 0]);
    drop(dropped);
    assert_eq!(table.in_flight(), [0, 1, 0]);
    while let Some(delta) = read.deltas.next().await {
        let is_done = matches!(delta.unwrap(), Delta::Done { .. });
        assert_eq!(table.in_flight(), [0, usize::from(!is_done), 0]);
    }
    hosts[1].set(Behaviour::Hangs);
    let waiting = timeout(Duration::from_secs(1), multi_host.generate(&request)).await;
    assert!(waiting.is_err());
    assert_eq!(table.in_flight(), [0, 0, 0], "a caller that disconnected is not waited for");
}

#[tokio::test(start_paused = true)]
async fn a_crowd_on_one_host_flows_over_to_the_others() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(0, &hosts);
    let mut streams = Vec::new();
    for _ in 0..12 {
        streams.push(engine.stream(&request).await.unwrap());
    }
    let asked = asked(&hosts);
    assert!(asked[0] >= 5 && asked[1] > 0 && asked[2] > 0, "{asked:?}");
}

/// Two Hobs that found the same hosts in another order.
#[tokio::test(start_paused = true)]
async fn two_tables_over_the_same_hosts_choose_alike_and_a_lost_host_moves_only_its_share() {
    let (_, hosts) = three(MultiHostOptions::default());
    let table = |order: &[usize]| {
        let engines = order.iter().map(|index| Arc::clone(&hosts[*index]) as Arc<dyn Engine>).collect();
        HostTable::new(engines, BreakerOptions::default(), Instant::now())
    };
    let home = |table: &HostTable, request: &GenerateRequest| {
        let slot = table.take(with_affinity(request), &[], Instant::now()).unwrap();
        slot.host().address().to_owned()
    };
    let (one, other, fewer) = (table(&[0, 1, 2]), table(&[2, 0, 1]), table(&[1, 0]));
    let (mut moved, mut stayed) = (0, 0);
    for number in 0..300 {
        let request = asking("m", &format!("question {number}"));
        let chosen = home(&one, &request);
        assert_eq!(home(&other, &request), chosen);
        if chosen == hosts[2].address {
            moved += 1;
        } else {
            assert_eq!(home(&fewer, &request), chosen, "it moved for no reason");
            stayed += 1;
        }
    }
    assert!((70..130).contains(&moved) && moved + stayed == 300, "{moved}");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_listed_again_while_it_answers_is_the_same_host() {
    let (_, hosts) = three(MultiHostOptions::default());
    let engines: Vec<Arc<dyn Engine>> = hosts.iter().map(|host| Arc::clone(host) as _).collect();
    let table = HostTable::new(engines, BreakerOptions::default(), Instant::now());
    let request = question_for(0, &hosts);
    let slot = table.take(with_affinity(&request), &[], Instant::now()).unwrap();
    assert_eq!(slot.host().address(), hosts[0].address);
    let known = |host: &Host| table.known(&host.address).unwrap();

    let change = table.replace(vec![known(&hosts[1]), known(&hosts[2])]);
    let expected = ListChange { added: Vec::new(), removed: vec![hosts[0].address.clone()] };
    assert_eq!(change, expected);
    let elsewhere = table.take(with_affinity(&request), &[], Instant::now()).unwrap();
    assert_ne!(elsewhere.host().address(), hosts[0].address);
    drop(elsewhere);

    let change = table.replace(vec![known(&hosts[0]), known(&hosts[1]), known(&hosts[2])]);
    assert_eq!(change, ListChange { added: vec![hosts[0].address.clone()], removed: Vec::new() });
    assert_eq!(table.in_flight(), [1, 0, 0]);
    drop(slot);
    assert_eq!(table.in_flight(), [0, 0, 0]);
    table.replace(vec![known(&hosts[1])]);
    assert!(table.known(&hosts[0].address).is_none(), "no request holds it");
}

#[test]
fn one_host_is_itself_and_none_is_nothing() {
    assert!(MultiHost::of(Vec::new(), MultiHostOptions::default()).is_none());
    let (engine, hosts) = three(MultiHostOptions::default());
    assert_eq!(
        (engine.address(), engine.members().len()),
        ("http://a:8000, http://b:8000, http://c:8000", 3)
    );
    let one =
        MultiHost::of(vec![Arc::clone(&hosts[0]) as Arc<dyn Engine>], MultiHostOptions::default()).unwrap();
    assert_eq!((one.address(), one.members().len()), ("http://a:8000", 0));
}

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
async fn a_lost_host_affects_no_caller_and_is_found_again() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(1, &hosts);
    assert_eq!(answer(&engine, &request).await.unwrap(), hosts[1].address);
    hosts[1].set(Behaviour::Gone);
    let elsewhere = answer(&engine, &request).await.unwrap();
    assert_ne!(elsewhere, hosts[1].address);
    assert_eq!(answer(&engine, &request).await.unwrap(), elsewhere, "its second home is always the same");

    hosts[1].set(Behaviour::Well);
    assert_eq!(answer(&engine, &request).await.unwrap(), elsewhere, "not before the pause is over");
    tokio::time::advance(BreakerOptions::default().pauses.first).await;
    assert_eq!(answer(&engine, &request).await.unwrap(), hosts[1].address);
    assert_eq!(hosts[1].heard(), 2, "a host that returned is checked before it is asked");
}

#[tokio::test(start_paused = true)]
async fn a_request_lost_before_its_first_delta_is_retried_once() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(0, &hosts);
    hosts[0].set(Behaviour::HangsUp);
    let stream = engine.stream(&request).await.unwrap();
    assert!(stream.deltas.map(Result::unwrap).collect::<Vec<_>>().await.len() == 3);
    assert_eq!(asked(&hosts).iter().sum::<usize>(), 2);

    hosts.iter().for_each(|host| host.set(Behaviour::HangsUp));
    let error = answer(&engine, &request).await.unwrap_err();
    assert!(matches!(error, EngineError::Interrupted { .. }), "{error}");
    assert_eq!(asked(&hosts).iter().sum::<usize>(), 4, "a question that breaks hosts breaks two at most");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_again_once_a_piece_is_out() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(2, &hosts);
    hosts[2].set(Behaviour::BreaksOff);
    let deltas: Vec<_> = engine.stream(&request).await.unwrap().deltas.collect().await;
    assert_eq!(deltas[0].as_ref().unwrap(), &Delta::text("half"));
    assert!(matches!(deltas[1], Err(EngineError::Interrupted { .. })));
    assert_eq!((deltas.len(), asked(&hosts)), (2, vec![0, 0, 1]));
}

#[tokio::test(start_paused = true)]
async fn a_host_whose_answers_all_break_is_skipped() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(2, &hosts);
    hosts[2].set(Behaviour::BreaksOff);
    for _ in 0..3 {
        let deltas: Vec<_> = engine.stream(&request).await.unwrap().deltas.collect().await;
        assert!(deltas.last().unwrap().is_err());
    }
    let deltas: Vec<_> = engine.stream(&request).await.unwrap().deltas.collect().await;
    assert!(deltas.iter().all(Result::is_ok), "{deltas:?}");
    assert_eq!(hosts[2].asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_only_lists_its_models_is_skipped_for_growing_times() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(0, &hosts);
    hosts[0].set(Behaviour::HangsUp);
    for _ in 0..3 {
        answer(&engine, &request).await.unwrap();
        engine.list_models().await.unwrap();
    }
    let mut asked = Vec::new();
    for _ in 0..8 {
        tokio::time::advance(BreakerOptions::default().pauses.first).await;
        engine.list_models().await.unwrap();
        answer(&engine, &request).await.unwrap();
        asked.push(hosts[0].asked());
    }
    assert_eq!(asked, [4, 4, 5, 5, 5, 5, 6, 6]);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_may_have_been_sent_is_never_reported_as_unsent() {
    for behaviour in [Behaviour::HangsUp, Behaviour::Refuses(500)] {
        let (engine, hosts) = three(MultiHostOptions::default());
        hosts.iter().for_each(|host| host.set(Behaviour::Lacks));
        hosts[0].set(behaviour);
        let error = answer(&engine, &question_for(0, &hosts)).await.unwrap_err();
        assert!(!matches!(error, EngineError::ModelNotFound { .. }), "{error}");
        assert_eq!(asked(&hosts), [1, 1, 1]);
    }
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
async fn a_request_that_may_have_been_charged_is_not_repeated() {
    let (engine, hosts) = three(MultiHostOptions { resend: Resend::Never, ..MultiHostOptions::default() });
    let request = question_for(0, &hosts);
    hosts[0].set(Behaviour::HangsUp);
    let error = answer(&engine, &request).await.unwrap_err();
    assert!(matches!(error, EngineError::Interrupted { .. }), "{error}");
    assert_eq!(asked(&hosts), [1, 0, 0]);
    // Nothing was sent, so a second request costs nothing.
    hosts[0].set(Behaviour::Gone);
    assert_ne!(answer(&engine, &request).await.unwrap(), hosts[0].address);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_may_be_in_progress_is_not_repeated_elsewhere() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(0, &hosts);
    hosts[0].set(Behaviour::TimesOut);
    let error = answer(&engine, &request).await.unwrap_err();
    assert!(matches!(error, EngineError::Timeout { .. }), "{error}");
    assert_eq!(asked(&hosts), [1, 0, 0]);
    // A slow complete answer says nothing about the host, however often it happens.
    for _ in 0..5 {
        answer(&engine, &request).await.unwrap_err();
    }
    assert_eq!(asked(&hosts), [6, 0, 0]);
    // After the third silent stream in a row the host is skipped.
    for _ in 0..3 {
        assert!(engine.stream(&request).await.is_err());
    }
    assert_ne!(answer(&engine, &request).await.unwrap(), hosts[0].address);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_for_a_hanging_host_is_sent_elsewhere() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(0, &hosts);
    assert_eq!(answer(&engine, &request).await.unwrap(), hosts[0].address);
    hosts[0].set(Behaviour::Hangs);
    let began = Instant::now();
    let elsewhere = answer(&engine, &request).await.unwrap();
    assert_ne!(elsewhere, hosts[0].address);
    assert_eq!(began.elapsed(), MultiHostOptions::default().health_check_after * MAX_FAILED_CHECKS);
    // No other request waits for it.
    assert_eq!(answer(&engine, &request).await.unwrap(), elsewhere);
    assert_eq!(asked(&hosts)[0], 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_for_the_only_host_with_a_model_keeps_waiting() {
    let (engine, hosts) = three(MultiHostOptions::default());
    *hosts[2].models.lock().unwrap() = vec!["large"];
    engine.list_models().await.unwrap();
    hosts[2].set(Behaviour::Hangs);
    let request = asking("large", "Hello?");
    let waiting = timeout(Duration::from_secs(100), answer(&engine, &request)).await;
    assert!(waiting.is_err(), "{waiting:?}");
    // Once another host has the request, no caller waits for the hung one.
    *hosts[1].models.lock().unwrap() = vec!["large"];
    engine.list_models().await.unwrap();
    let began = Instant::now();
    assert_eq!(answer(&engine, &request).await.unwrap(), hosts[1].address);
    assert!(began.elapsed() <= MultiHostOptions::default().health_check_after * MAX_FAILED_CHECKS);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_that_waits_for_a_host_looks_at_it_together() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(0, &hosts);
    answer(&engine, &request).await.unwrap();
    hosts[0].set(Behaviour::Hangs);
    let crowd = join_all((0..4).map(|_| answer(&engine, &request))).await;
    assert!(crowd.iter().all(Result::is_ok), "{crowd:?}");
    assert_eq!((hosts[0].asked(), hosts[0].looked.load(Ordering::Relaxed)), (5, MAX_FAILED_CHECKS as usize));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_slow_but_alive_is_waited_for() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(0, &hosts);
    answer(&engine, &request).await.unwrap();
    hosts[0].set(Behaviour::Hangs);
    let waiting = answer(&engine, &request);
    tokio::pin!(waiting);
    for _ in 0..10 {
        // Only every second check fails, so the host does not count as hung.
        hosts[0].set(Behaviour::Hangs);
        let look = timeout(MultiHostOptions::default().health_check_after, &mut waiting).await;
        assert!(look.is_err(), "it went elsewhere");
        hosts[0].set(Behaviour::Well);
        let look = timeout(MultiHostOptions::default().health_check_after, &mut waiting).await;
        assert!(look.is_err(), "it went elsewhere");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mistake_of_the_caller_does_not_skip_a_host() {
    let (engine, hosts) = three(MultiHostOptions::default());
    let request = question_for(0, &hosts);
    hosts[0].set(Behaviour::Refuses(400));
    for _ in 0..10 {
        let error = answer(&engine, &request).await.unwrap_err();
        assert!(matches!(error, EngineError::Refused { status: 400, .. }), "{error}");
    }
    assert_eq!(asked(&hosts), [10, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_full_or_loading_sends_its_callers_on() {
    for status in [429, 503] {
        let (engine, hosts) = three(MultiHostOptions::default());
        hosts.iter().for_each(|host| host.set(Behaviour::Refuses(status)));
        hosts[2].set(Behaviour::Well);
        let request = question_for(0, &hosts);
        assert_eq!(answer(&engine, &request).await.unwrap(), hosts[2].address, "{status}");
        assert_eq!(asked(&hosts)[0], 1);
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
async fn without_hosts_the_error_names_all_and_the_first_that_returns_answers() {
    let (engine, hosts) = three(MultiHostOptions::default());
    hosts.iter().for_each(|host| host.set(Behaviour::Gone));
    let error = answer(&engine, &question_for(0, &hosts)).await.unwrap_err().to_string();
    for host in &hosts {
        assert!(error.contains(&host.address), "{error}");
    }
    assert!(!engine.health().await);
    assert!(engine.list_models().await.is_err());
    hosts[1].set(Behaviour::Well);
    assert_eq!(answer(&engine, &question_for(0, &hosts)).await.unwrap(), hosts[1].address);
    assert!(engine.health().await);
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

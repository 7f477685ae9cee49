//! Hosts that are lost, break off, refuse or reject, and what happens to their requests.

use super::*;

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
async fn a_host_without_details_of_a_model_is_not_forgiven_and_another_is_asked() {
    let (engine, hosts) = three(MultiHostOptions::default());
    engine.list_models().await.unwrap();
    let request = question_for(0, &hosts);
    hosts[0].set(Behaviour::HangsUp);
    for _ in 0..4 {
        answer(&engine, &request).await.unwrap();
        for _ in 0..16 {
            assert!(engine.describe(&ModelInfo::named("m")).await.is_some());
        }
    }
    assert_eq!(hosts[0].asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_only_describes_its_models_is_skipped() {
    let (engine, hosts) = three(MultiHostOptions::default());
    engine.list_models().await.unwrap();
    let request = question_for(0, &hosts);
    for _ in 0..4 {
        hosts[0].set(Behaviour::HangsUp);
        answer(&engine, &request).await.unwrap();
        hosts[0].set(Behaviour::Well);
        for _ in 0..16 {
            assert!(engine.describe(&ModelInfo::named("m")).await.is_some());
        }
    }
    assert_eq!(hosts[0].asked(), 3);
}

#[tokio::test(start_paused = true)]
async fn no_details_from_any_host_do_not_wait_for_one_that_is_skipped() {
    let (engine, hosts) = three(MultiHostOptions::default());
    engine.list_models().await.unwrap();
    hosts.iter().for_each(|host| host.set(Behaviour::KeepsItsList(404)));
    hosts[0].set(Behaviour::Gone);
    answer(&engine, &question_for(0, &hosts)).await.unwrap();
    hosts[0].set(Behaviour::Hangs);
    let began = Instant::now();
    assert_eq!(engine.describe(&ModelInfo::named("m")).await, None);
    assert_eq!(began.elapsed(), Duration::ZERO);
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

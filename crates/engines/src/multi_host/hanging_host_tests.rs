//! Hosts that accept requests and send nothing.

use super::*;
use crate::multi_host::failover::MAX_FAILED_CHECKS;

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

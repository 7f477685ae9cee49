//! Runs outside the schedule of a task.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_manual_run_returns_its_result_or_its_obstacle() {
    let world = World::with(Arc::new(SlowEngine::taking(20)), SchedulerOptions::default());
    let task = world.create(every(3600)).await;
    let begun = world.scheduler.run_now(&task.id).await.unwrap();
    assert_eq!(begun.outcome, None);
    let refused = world.scheduler.run_now(&task.id).await.unwrap_err().to_string();
    assert_eq!(refused, format!("the task '{}' is already running", task.id));
    world.pass(25).await;
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!((run.outcome, run.result.as_deref()), (Some(RunOutcome::Succeeded), Some("done")));
    assert_eq!(world.log(&task).await.len(), 2);
    assert_eq!(world.tasks.get(&task.id).await.unwrap().next_run, task.next_run);
}

#[tokio::test(start_paused = true)]
async fn a_manual_run_that_its_caller_leaves_is_stopped_recorded_and_not_tried_again() {
    let world = World::with(Arc::new(SlowEngine::taking(3600)), SchedulerOptions::default());
    let limits = TaskLimits { retries: 3, ..every(86_400).limits };
    let task = world.create(NewTask { limits, ..every(86_400) }).await;
    let left = tokio::time::timeout(Duration::from_secs(5), world.scheduler.run_to_end(&task.id)).await;
    assert!(left.is_err(), "it takes an hour");
    world.scheduler.close().await;
    let log = world.log(&task).await;
    assert_eq!((log.len(), log[0].outcome), (1, Some(RunOutcome::Interrupted)));
    assert_eq!(log[0].error.as_deref(), Some("it was stopped"));
    assert_eq!(world.tasks.get(&task.id).await.unwrap().next_run, task.next_run);
}

#[tokio::test(start_paused = true)]
async fn a_manual_run_that_its_caller_leaves_while_it_is_claimed_does_not_stay_open() {
    for polls in 1..5 {
        let world = World::with(Arc::new(SlowEngine::taking(3600)), SchedulerOptions::default());
        let task = world.create(every(86_400)).await;
        {
            let mut run = pin!(world.scheduler.run_to_end(&task.id));
            for _ in 0..polls {
                let is_pending =
                    poll_fn(|context| Poll::Ready(run.as_mut().poll(context).is_pending())).await;
                assert!(is_pending, "it takes an hour");
                // The claim makes progress meanwhile.
                world.log(&task).await;
            }
        }
        world.scheduler.close().await;
        let log = world.log(&task).await;
        let outcomes: Vec<Option<RunOutcome>> = log.iter().map(|run| run.outcome).collect();
        assert_eq!(outcomes, [Some(RunOutcome::Interrupted)], "{polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_started_continues_without_its_caller() {
    for polls in 1..5 {
        let world = World::with(Arc::new(SlowEngine::taking(20)), SchedulerOptions::default());
        let task = world.create(every(86_400)).await;
        {
            let mut begun = pin!(world.scheduler.run_now(&task.id));
            for _ in 0..polls {
                if poll_fn(|context| Poll::Ready(begun.as_mut().poll(context).is_ready())).await {
                    break;
                }
                // The claim makes progress meanwhile.
                world.log(&task).await;
            }
        }
        world.pass(25).await;
        let log = world.log(&task).await;
        let outcomes: Vec<Option<RunOutcome>> = log.iter().map(|run| run.outcome).collect();
        assert_eq!(outcomes, [Some(RunOutcome::Succeeded)], "{polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_manual_run_may_use_another_model() {
    let engine = Arc::new(ScriptedEngine::saying(&["hello"]));
    let world = World::with(Arc::clone(&engine) as Arc<dyn Engine>, SchedulerOptions::default());
    let task = world.create(NewTask { model: Some("usual".into()), ..every(3600) }).await;
    let options = TaskRunOptions { model: Some("other".into()), ..TaskRunOptions::default() };
    world.scheduler.run_with(&task.id, options).await.unwrap();
    world.scheduler.run_to_end(&task.id).await.unwrap();
    let models: Vec<String> = engine.requests().into_iter().map(|request| request.model).collect();
    assert_eq!(models, ["other", "usual"]);
}

#[tokio::test(start_paused = true)]
async fn runs_outside_the_schedule_are_limited_for_each_key() {
    let world = World::with(Arc::new(SlowEngine::taking(20)), SchedulerOptions::default());
    let of_key = |key: &str| {
        let permit = Permit { key: Some(key.into()), ..Permit::up_to(Reach::Act) };
        NewTask { permit, ..every(86_400) }
    };
    for _ in 0..4 {
        let task = world.create(of_key("ana")).await;
        world.scheduler.run_now(&task.id).await.unwrap();
    }
    let task = world.create(of_key("ana")).await;
    let refused = world.scheduler.run_to_end(&task.id).await.unwrap_err();
    assert!(
        matches!(&refused, TaskError::TooManyRuns { key: Some(key), most: 4 } if key == "ana"),
        "{refused}"
    );
    assert_eq!(world.log(&task).await, [], "nothing was started");
    let other = world.create(of_key("ben")).await;
    world.scheduler.run_now(&other.id).await.unwrap();
    world.pass(60).await;
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!(run.outcome, Some(RunOutcome::Succeeded));
}

#[tokio::test(start_paused = true)]
async fn a_key_cannot_store_tasks_without_limit() {
    let world = World::with(greeter(), SchedulerOptions::default());
    let of_key = || {
        let permit = Permit { key: Some("ana".into()), ..Permit::up_to(Reach::Act) };
        NewTask { permit, ..every(86_400) }
    };
    let first = world.create(of_key()).await;
    for _ in 1..200 {
        world.create(of_key()).await;
    }
    let refused = world.tasks.create(of_key()).await.unwrap_err().to_string();
    assert_eq!(
        refused,
        "the key 'ana' has 200 tasks that have not ended; cancel or delete one of them first"
    );
    world.create(every(86_400)).await;
    world.tasks.change(&first.id, TaskChange::Cancel).await.unwrap();
    world.create(of_key()).await;
}

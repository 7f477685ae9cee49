//! How tasks of several keys share the slots.

use super::*;

#[tokio::test(start_paused = true)]
async fn many_tasks_of_one_key_do_not_delay_those_of_others() {
    let world = World::with(Arc::new(SlowEngine::taking(500)), SchedulerOptions::default());
    let of_key = |key: Option<&str>| {
        let permit = Permit { key: key.map(Into::into), ..Permit::up_to(Reach::Act) };
        NewTask { permit, ..every(3600) }
    };
    let mut many = Vec::new();
    for _ in 0..10 {
        many.push(world.create(of_key(Some("ana"))).await);
    }
    let others = [world.create(of_key(Some("ben"))).await, world.create(of_key(None)).await];
    // The first poll finds all of them due.
    world.pass(3700).await;
    world.scheduler.start();
    world.pass(50).await;
    for task in &others {
        assert_eq!(world.log(task).await.len(), 1, "there are four slots");
    }
    let mut begun = 0;
    for task in &many {
        begun += world.log(task).await.len();
    }
    assert_eq!(begun, 2, "half of the slots");
    // Without others, the key gets all slots.
    world.pass(500).await;
    let mut begun = 0;
    for task in &many {
        begun += world.log(task).await.len();
    }
    assert_eq!(begun, 6);
}

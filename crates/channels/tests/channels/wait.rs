//! Waits of tests, each with a limit.

use std::time::Duration;

/// Far longer than anything here takes: a test that waits this long has failed.
pub const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// Waits for something that another task or process does.
pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

//! Leases end by the clock of the server, because the clocks of the processes may differ.

use std::time::Duration;

use hob_db::postgres::SERVER_CLOCK;

/// SQL for the current time of leases. If the parameter is not NULL, it is that time.
pub(super) fn lease_now(parameter: &str) -> String {
    format!("coalesce({parameter}::bigint, {SERVER_CLOCK})")
}

pub(super) fn microseconds(lease: Duration) -> i64 {
    i64::try_from(lease.as_micros()).unwrap_or(i64::MAX)
}

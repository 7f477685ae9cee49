//! Entry for the fuzz target of pages. Takes any bytes and panics if a promise of the crate is broken. Only in builds with
//! `--cfg fuzzing`.

use hob_core::Moment;
use hob_core::time::from_microseconds;

use crate::call_record::tokens_per_second;
use crate::entry::{Cost, Entry, Series};
use crate::packed::{Packed, pack, unpack};

/// A route is a word of the program.
const ROUTE: &str = "/v1/chat/completions";

/// A page of the database. A call that is written is read again as it was.
pub fn page(bytes: &[u8]) {
    let Ok(page) = std::str::from_utf8(bytes) else { return };
    let Ok(calls) = unpack(page) else { return };
    for mut call in calls {
        let latency = from_microseconds(call.latency_us);
        let speed = tokens_per_second(call.outcome, call.completion_tokens, latency);
        assert!(speed.is_none_or(f64::is_finite), "a call has no speed");
        let _ = Moment::from_microseconds(call.started).day();
        call.route = call.route.take().map(|_| ROUTE.to_owned());
        if let Some(entry) = entry(&call) {
            check_written(&call, &entry);
        }
    }
}

fn check_written(call: &Packed<'_>, entry: &Entry<'_>) {
    let mut text = b"[".to_vec();
    assert!(pack(call.series, entry, &mut text).is_ok(), "a call cannot be written");
    text.push(b']');
    let again = std::str::from_utf8(&text).ok().and_then(|page| unpack(page).ok());
    let again = again.as_deref().map(|calls| format!("{calls:?}"));
    assert_eq!(again, Some(format!("[{call:?}]")), "a call changes when it is written");
}

/// The entry of which a call was made; `None` if it has numbers that Hob does not write.
fn entry<'a>(call: &'a Packed<'_>) -> Option<Entry<'a>> {
    let number = |value: Option<u64>| value.map(i64::try_from).transpose().ok();
    if call.streamed > 1 || call.estimated > 1 {
        return None;
    }
    Some(Entry {
        started: Moment::from_microseconds(call.started),
        series: Series { engine: "", model: "", agent: "", source: "", key: "" },
        run: &call.run,
        streamed: call.streamed == 1,
        prompt_tokens: i64::try_from(call.prompt_tokens).ok()?,
        completion_tokens: i64::try_from(call.completion_tokens).ok()?,
        cached_tokens: number(call.cached_tokens)?,
        estimated: call.estimated == 1,
        latency_us: call.latency_us,
        first_token_us: call.first_token_us,
        energy_uj: number(call.energy_uj)?,
        outcome: call.outcome,
        finish_reason: call.finish_reason.as_deref(),
        error: call.error.as_deref(),
        cost: number(call.cost_pico)?.map_or(Cost::Free, Cost::Pico),
        end_user: call.end_user.as_deref(),
        request_id: call.request_id.as_deref(),
        route: call.route.as_ref().map(|_| ROUTE),
        host: call.host.as_deref(),
        queue_us: call.queue_us,
    })
}

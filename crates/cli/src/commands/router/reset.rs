//! `hob router reset`.

use anyhow::Result;
use hob_routing::RoutingStore;

use super::note_empty;
use crate::commands::confirm::Confirmation;
use crate::output;
use crate::output::number::counted;

pub fn run(store: Option<&dyn RoutingStore>, confirmation: Confirmation) -> Result<()> {
    let classes = store.map(RoutingStore::knowledge).transpose()?.map_or(0, |knowledge| knowledge.len());
    let decisions = store.map(RoutingStore::count).transpose()?.unwrap_or(0);
    let Some(store) = store.filter(|_| classes > 0 || decisions > 0) else {
        note_empty();
        return Ok(());
    };
    let what = format!("everything the router learned from {}", counted(decisions, "decision"));
    if !confirmation.is_given(&what)? {
        output::note("Nothing was deleted.");
        return Ok(());
    }
    store.reset()?;
    output::note(format_args!("Deleted {what}."));
    Ok(())
}

//! Replaces the tools of sources and of the mailbox of a running app when a reload changes their settings.

use std::sync::Arc;

use hob_config::Config;
use hob_core::Tool;
use hob_db::Storage;
use hob_mail::mail_tool;
use hob_sources::{SourceService, source_tools};

use crate::ask::AskService;
use crate::service_slot::ServiceSlot;
use crate::startup::mail::imap_account;
use crate::startup::sources::open_sources;

/// The place of the tools that read the owner's sources and mailbox.
pub(crate) type SourceSlot = ServiceSlot<SourceTools>;

/// The tools that read the owner's sources and mailbox.
#[derive(Clone, Default)]
pub(crate) struct SourceTools {
    pub(crate) mail: Option<Arc<dyn Tool>>,
    pub(crate) sources: Vec<Arc<dyn Tool>>,
}

impl SourceTools {
    pub(crate) fn new(config: &Config, sources: Option<&Arc<SourceService>>) -> Self {
        let mail = imap_account(&config.mail).map(|account| mail_tool(account, config.mail.folder.clone()));
        SourceTools { mail, sources: sources.map(source_tools).unwrap_or_default() }
    }
}

/// Gives a service the tools that are available now.
pub(crate) type RefreshTools = Box<dyn Fn(&AskService) + Send + Sync>;

/// Replaces the sources and the mailbox of a running app. Drop it before the app is closed.
pub struct SourceOpener {
    pub(crate) slot: SourceSlot,
    pub(crate) storage: Storage,
    pub(crate) system: Arc<AskService>,
    pub(crate) refresh: RefreshTools,
}

impl SourceOpener {
    /// Runs that start from now on have the sources and the mailbox of this configuration. Reads none of them.
    pub fn replace(&self, config: &Config) {
        let sources = open_sources(&config.sources, self.storage.clone());
        self.slot.set(Some(Arc::new(SourceTools::new(config, sources.as_ref()))));
        (self.refresh)(&self.system);
    }
}

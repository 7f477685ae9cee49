//! Writes, reads and checks the audit log. Every call blocks.

use std::sync::Arc;

use hob_db::{DatabaseError, DbResult};
use jiff::Timestamp;
use serde_json::Value;

use crate::audit::{AuditActor, AuditChain, AuditEntry, AuditEvent, AuditFault};
use crate::store::KeyStore;

/// Entries that are read at once.
const PAGE: usize = 1_000;

/// Writes and reads the log. Cheap to clone.
#[derive(Clone)]
pub struct AuditService {
    store: Arc<dyn KeyStore>,
}

impl AuditService {
    pub fn new(store: Arc<dyn KeyStore>) -> Self {
        AuditService { store }
    }

    /// Adds a change that was made. Blocks. A change that cannot be noted is logged: it is made already.
    pub fn note(&self, actor: AuditActor, action: &str, subject: &str, detail: &Value) {
        let event = AuditEvent::new(Timestamp::now(), actor, action, subject, detail);
        if let Err(error) = self.store.append_audit(&event) {
            tracing::error!(
                %error,
                action,
                subject,
                "a change was made, but is not in the audit log. 'hob doctor' checks the database"
            );
        }
    }

    /// The newest entries, the newest first. Blocks.
    pub fn latest(&self, limit: usize) -> DbResult<Vec<AuditEntry>> {
        self.store.latest_audit(limit)
    }

    /// The entries after the one of this number, the oldest first. Blocks.
    pub fn after(&self, number: i64, limit: usize) -> DbResult<Vec<AuditEntry>> {
        self.store.audit_after(number, limit)
    }

    /// Shows every entry to `each`, the oldest first. Blocks.
    pub fn export<E: From<DatabaseError>>(
        &self,
        mut each: impl FnMut(&AuditEntry) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut number = 0;
        loop {
            let page = self.store.audit_after(number, PAGE)?;
            let Some(last) = page.last() else { return Ok(()) };
            number = last.number;
            page.iter().try_for_each(&mut each)?;
        }
    }

    /// Checks the whole chain. Blocks.
    pub fn verify(&self) -> DbResult<Result<AuditChain, AuditFault>> {
        Ok(match self.checked()? {
            (chain, None) => Ok(chain),
            (_, Some(fault)) => Err(fault),
        })
    }

    /// The chain as far as it is in order, and the fault that ends it. Blocks.
    pub fn checked(&self) -> DbResult<(AuditChain, Option<AuditFault>)> {
        let mut chain = AuditChain::default();
        loop {
            let page = self.store.audit_after(chain.last, PAGE)?;
            if page.is_empty() {
                return Ok((chain, None));
            }
            for entry in &page {
                if let Err(fault) = chain.check(entry) {
                    return Ok((chain, Some(fault)));
                }
            }
        }
    }
}

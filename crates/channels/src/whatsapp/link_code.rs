//! The content of the QR code that links an account, while the subprocess waits for the scan.

use std::sync::Arc;

use parking_lot::Mutex;

/// Clones share the code.
#[derive(Debug, Clone, Default)]
pub struct LinkCode(Arc<Mutex<Option<String>>>);

impl LinkCode {
    /// `None` if nothing is to be scanned now.
    pub fn get(&self) -> Option<String> {
        self.0.lock().clone()
    }

    pub(super) fn set(&self, code: Option<String>) {
        *self.0.lock() = code;
    }
}

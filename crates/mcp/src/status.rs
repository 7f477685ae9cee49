//! The status of a server.

use std::sync::Arc;

use hob_core::Tool;

use crate::pins::WithheldTool;

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpState {
    /// Not ready yet, and not failed yet.
    Starting,
    Ready,
    /// It failed or died, and will be restarted.
    Down {
        reason: String,
    },
    Stopped,
}

#[derive(Clone)]
pub struct McpServerStatus {
    pub name: String,
    pub state: McpState,
    /// Its current tools, or those of its last run.
    pub tools: Vec<Arc<dyn Tool>>,
    /// New and changed tools, which are not offered.
    pub withheld: Vec<WithheldTool>,
}

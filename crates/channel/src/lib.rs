//! Messaging: the gateway's WebSocket, its HTTP fallback, and the WhatsApp subprocess.
//!
//! Knows nothing of agents, of the database or of `config.toml`; what to answer is decided by its handlers.

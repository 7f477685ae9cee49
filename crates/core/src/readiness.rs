//! What must work before this process should get requests.

/// A part without which requests fail, such as a database on another machine. `GET /health/ready` asks all of them.
///
/// A part that only slows requests down, or that a request can do without, is none: a load balancer with no ready server answers
/// nothing at all.
pub trait ReadinessCheck: Send + Sync {
    /// The part, for the log.
    fn name(&self) -> &'static str;

    /// Why the part does not work, as far as is known; `None` if it works. Only the owner sees it. Anyone may ask at any rate, so this
    /// reads a state that other code keeps up to date, and sends no request itself.
    fn problem(&self) -> Option<String>;

    /// Whether the part works now, for the metrics. A part may be away for a while without making this process not ready.
    fn is_up(&self) -> bool {
        self.problem().is_none()
    }
}

//! What must work before this process should get requests.

/// A part without which requests fail, such as a database on another machine. `GET /health/ready` asks all of them.
///
/// A part that only slows requests down, or that a request can do without, is none: a load balancer with no ready server answers
/// nothing at all.
pub trait ReadinessCheck: Send + Sync {
    /// The part, for the log.
    fn name(&self) -> &'static str;

    /// Whether the part works, as far as is known. Anyone may ask at any rate, so this reads a state that other code keeps up to date,
    /// and sends no request itself.
    fn is_ready(&self) -> bool;
}

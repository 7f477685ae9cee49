//! The subprocess and whatever it started, as one.

/// The child and whatever it started. They die with the value.
#[cfg(unix)]
pub(super) struct Group(Option<rustix::process::Pid>);

#[cfg(unix)]
impl Group {
    /// The group of a child that was started as the leader of its own.
    pub fn led_by(pid: Option<u32>) -> Self {
        let pid = pid.and_then(|pid| i32::try_from(pid).ok());
        Group(pid.and_then(rustix::process::Pid::from_raw))
    }

    pub fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// The last signal. Once the leader is gone its number may come to mean somebody else, so it is forgotten.
    pub fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.0 = None;
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(leader) = self.0 {
            // The only failure is that nobody is left, which is what a signal is for.
            let _ = rustix::process::kill_process_group(leader, signal);
        }
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Elsewhere there are no process groups: the child alone is killed, by its own handle.
#[cfg(not(unix))]
pub(super) struct Group;

#[cfg(not(unix))]
impl Group {
    pub fn led_by(_pid: Option<u32>) -> Self {
        Group
    }

    pub fn terminate(&self) {}

    pub fn kill(&mut self) {}
}

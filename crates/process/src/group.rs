//! A child and everything that it started, so that stopping a wrapper script also stops the real program.

#[cfg(unix)]
pub use unix::ProcessGroup;

#[cfg(not(unix))]
pub use other::ProcessGroup;

#[cfg(unix)]
mod unix {
    use rustix::process::{Pid, Signal, kill_process_group};

    /// A process group that can still be signalled. Dropping it kills the group.
    #[derive(Debug)]
    pub struct ProcessGroup(Option<Pid>);

    impl ProcessGroup {
        /// The group of a child that was started as its leader.
        pub fn led_by(pid: Option<u32>) -> Self {
            ProcessGroup(pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
        }

        pub fn terminate(&self) {
            self.signal(Signal::TERM);
        }

        /// The last signal to the group: once its leader has ended, the system may give its number to another process.
        pub fn kill(&mut self) {
            self.signal(Signal::KILL);
            self.0 = None;
        }

        /// For a group of which no process is left.
        pub fn forget(mut self) {
            self.0 = None;
        }

        fn signal(&self, signal: Signal) {
            if let Some(leader) = self.0 {
                // It fails only if no process is left.
                let _ = kill_process_group(leader, signal);
            }
        }
    }

    impl Drop for ProcessGroup {
        fn drop(&mut self) {
            self.kill();
        }
    }
}

#[cfg(not(unix))]
mod other {
    /// Systems without process groups: only the child is killed, by its own handle.
    #[derive(Debug)]
    pub struct ProcessGroup;

    impl ProcessGroup {
        pub fn led_by(_pid: Option<u32>) -> Self {
            ProcessGroup
        }

        pub fn terminate(&self) {}

        pub fn kill(&mut self) {}

        pub fn forget(self) {}
    }
}

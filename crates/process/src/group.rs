//! The child and whatever it started, as one: a wrapper script that is told to stop takes the real program with it.

#[cfg(unix)]
pub use unix::ProcessGroup;

#[cfg(not(unix))]
pub use other::ProcessGroup;

#[cfg(unix)]
mod unix {
    use rustix::process::{Pid, Signal, kill_process_group};

    /// A process group that can still be signalled. It dies with its value.
    #[derive(Debug)]
    pub struct ProcessGroup(Option<Pid>);

    impl ProcessGroup {
        /// The group of a child that was started as the leader of its own.
        pub fn led_by(pid: Option<u32>) -> Self {
            ProcessGroup(pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
        }

        pub fn terminate(&self) {
            self.signal(Signal::TERM);
        }

        /// The last signal to the group. Once its leader is gone the number may come to mean somebody else, so it is
        /// forgotten.
        pub fn kill(&mut self) {
            self.signal(Signal::KILL);
            self.0 = None;
        }

        fn signal(&self, signal: Signal) {
            if let Some(leader) = self.0 {
                // The only failure is that nobody is left, which is what a signal is for.
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
    /// Elsewhere there are no process groups: the child alone is killed, by its own handle.
    #[derive(Debug)]
    pub struct ProcessGroup;

    impl ProcessGroup {
        pub fn led_by(_pid: Option<u32>) -> Self {
            ProcessGroup
        }

        pub fn terminate(&self) {}

        pub fn kill(&mut self) {}
    }
}

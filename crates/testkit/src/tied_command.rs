//! Programs that end with the process of the test, even if that is killed.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// The program, which is killed when the thread ends that starts it. Linux only: elsewhere, a test that is killed leaves its programs
/// behind.
pub fn tied_command(program: impl AsRef<OsStr>) -> Command {
    // It sets the signal and then becomes the program, so the id of the process stays the same.
    let Some(setpriv) = setpriv() else { return Command::new(program) };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// An absolute path, because a test may give its program another PATH.
fn setpriv() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").filter(|_| cfg!(target_os = "linux"))?;
    std::env::split_paths(&path).map(|directory| directory.join("setpriv")).find(|program| program.is_file())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Read;
    use std::process::Stdio;
    use std::thread;

    use super::*;

    #[test]
    fn a_program_ends_with_the_thread_that_started_it() {
        let started = thread::spawn(|| {
            let mut command = tied_command("sh");
            command.args(["-c", "echo started; exec sleep 60"]).stdin(Stdio::null()).stdout(Stdio::piped());
            let mut child = command.spawn().expect("started");
            // The signal is set shortly before the program runs, and a thread that ends earlier sends none.
            let mut line = [0; 8];
            child.stdout.as_mut().expect("a pipe").read_exact(&mut line).expect("a line");
            child
        });
        let mut child = started.join().expect("no panic");
        assert!(!child.wait().expect("it ends").success(), "it ended by itself");
    }
}

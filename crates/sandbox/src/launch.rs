//! The few lines of shell that begin every run, inside the sandbox.
//!
//! The code travels in an environment variable: unlike arguments it cannot be seen in the machine's list of processes, and
//! the program's own input stays free.

use crate::job::ScriptLanguage;
use crate::mounts::AllowedMount;

/// Carries the code.
pub const CODE_VARIABLE: &str = "HOB_CODE";

/// The largest value Linux takes in a variable is 128 KiB.
pub const MAX_CODE_BYTES: usize = 96 << 10;

/// How the check of mounts ends when one is not what was allowed.
pub const MOUNT_CHANGED: i32 = 124;
pub const MOUNT_CHANGED_WORDS: &str = "hob: a mount was replaced";

/// `$0` is the file to write. The arguments are pairs of mount and identity up to `--`, then the interpreter.
const SCRIPT: &str = "\
    while [ \"$1\" != -- ]; do \
        [ \"$(stat -c %d:%i -- \"$1\")\" = \"$2\" ] || { echo 'hob: a mount was replaced' >&2; exit 124; }; \
        shift 2; \
    done; \
    shift; \
    printf %s \"$HOB_CODE\" > \"$0\" && unset HOB_CODE && exec \"$@\" \"$0\"";

/// Arguments for `sh` that write the code to a file and run it with `python` or with `sh`. `checked` mounts are compared
/// with what was allowed before anything runs.
pub fn arguments(language: ScriptLanguage, python: &str, checked: &[AllowedMount]) -> Vec<String> {
    let (file, interpreter) = match language {
        // Unbuffered, so that what was printed before a time-out is not lost.
        ScriptLanguage::Python => ("/tmp/main.py", vec![python, "-u", "-B"]),
        ScriptLanguage::Sh => ("/tmp/main.sh", vec!["sh"]),
    };
    let mut arguments = vec!["-c".to_owned(), SCRIPT.to_owned(), file.to_owned()];
    for mount in checked {
        arguments.extend([mount.inside.to_string_lossy().into_owned(), mount.identity.clone()]);
    }
    arguments.push("--".to_owned());
    arguments.extend(interpreter.into_iter().map(str::to_owned));
    arguments
}

//! The shell script that starts every run, inside the sandbox.
//!
//! The code is passed in an environment variable: unlike arguments, it is not in the list of processes, and stdin stays free.

use crate::job::ScriptLanguage;
use crate::mounts::AllowedMount;

pub const CODE_VARIABLE: &str = "HOB_CODE";

/// Linux allows 128 KiB in a variable.
pub const MAX_CODE_BYTES: usize = 96 << 10;

/// The exit code if a mount is not the one that was allowed.
pub const MOUNT_CHANGED: i32 = 124;
pub const MOUNT_CHANGED_TEXT: &str = "hob: a mount was replaced";

/// `$0` is the file to write. The arguments are pairs of mount and identity up to `--`, then the interpreter.
const SCRIPT: &str = "\
    while [ \"$1\" != -- ]; do \
        [ \"$(stat -c %d:%i -- \"$1\")\" = \"$2\" ] || { echo 'hob: a mount was replaced' >&2; exit 124; }; \
        shift 2; \
    done; \
    shift; \
    printf %s \"$HOB_CODE\" > \"$0\" && unset HOB_CODE && exec \"$@\" \"$0\"";

/// Arguments for `sh` that write the code to a file and run it with `python` or `sh`. `checked` mounts are compared with what was
/// allowed first.
pub fn arguments(language: ScriptLanguage, python: &str, checked: &[AllowedMount]) -> Vec<String> {
    let (file, interpreter) = match language {
        // Unbuffered, so that output before a timeout is not lost.
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

//! Gives back the pages of the program's own file that only the start needed.
//!
//! Starting touches a little of everything, and with each page that is touched the kernel maps its fifteen neighbours: of the
//! 30 MB that a waiting server held, two thirds were code and tables it does not look at again. Given back, they are plain
//! page cache, the first thing to go when memory is short. What is needed after all is mapped again at a touch.
#![expect(unsafe_code, reason = "the system call has no safe wrapper")]

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::{fs, io};

unsafe extern "C" {
    fn madvise(start: *mut c_void, length: usize, advice: c_int) -> c_int;
}

/// The number that every Linux but that of one forgotten processor gives it.
const MADV_DONTNEED: c_int = 4;

/// Called when the start is over. Says what the system did not allow.
pub fn give_back_start() -> io::Result<()> {
    let program = fs::read_link("/proc/self/exe")?;
    let mappings = fs::read_to_string("/proc/self/maps")?;
    let unchanging = |line| Mapping::of_unchanging_part(line, &program);
    for Mapping { start, length } in mappings.lines().filter_map(unchanging) {
        // SAFETY: the range is a segment of the running program, which stays where it is until the end, whatever other threads
        // do meanwhile; a library's could be in the middle of being loaded. Nobody has written to its pages: they are
        // code, or the tables at the head of the file. Reading them again brings the same bytes.
        let refused = unsafe { madvise(start as *mut c_void, length, MADV_DONTNEED) };
        if refused != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Mapping {
    start: usize,
    length: usize,
}

impl Mapping {
    /// A line of the kernel's list, if it is of pages of `program` that nobody may have written to: code, and what stands at
    /// the head of the file. The tables behind the code are left alone; the loader has put addresses into them.
    fn of_unchanging_part(line: &str, program: &Path) -> Option<Self> {
        let (head, path) = line.split_at_checked(line.find('/')?)?;
        let mut fields = head.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let is_unchanging = match (fields.next()?, fields.next()?) {
            ("r-xp", _) => true,
            ("r--p", offset) => offset.bytes().all(|digit| digit == b'0'),
            _ => false,
        };
        let start = usize::from_str_radix(start, 16).ok()?;
        let end = usize::from_str_radix(end, 16).ok()?;
        (is_unchanging && Path::new(path) == program)
            .then_some(Mapping { start, length: end.checked_sub(start)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident_file_kilobytes() -> u64 {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssFile:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn only_code_and_the_head_of_the_program_are_given_back() {
        let part = |line| Mapping::of_unchanging_part(line, Path::new("/usr/bin/hob"));
        let given = |line| part(line).is_some();
        assert_eq!(
            part("5000-7000 r-xp 00a2b000 fd:00 1234    /usr/bin/hob"),
            Some(Mapping { start: 0x5000, length: 0x2000 })
        );
        assert!(given("1000-2000 r--p 00000000 fd:00 1234    /usr/bin/hob"));
        let replaced = Path::new("/a directory/with spaces/hob (deleted)");
        let line = "1000-2000 r-xp 00001000 fd:00 1234    /a directory/with spaces/hob (deleted)";
        assert!(Mapping::of_unchanging_part(line, replaced).is_some());
        for kept in [
            "7000-8000 r--p 00a2d000 fd:00 1234    /usr/bin/hob", // where the loader wrote
            "8000-9000 rw-p 00a2e000 fd:00 1234    /usr/bin/hob",
            "9000-a000 rw-p 00000000 00:00 0    [heap]",
            "a000-b000 r-xp 00000000 00:00 0    [vdso]",
            "b000-c000 r-xp 00000000 00:00 0",
            "c000-d000 r--s 00000000 fd:00 1234    /models/shared.gguf",
            "c000-d000 r--p 00000000 fd:00 1235    /usr/lib/libc.so.6", // may be about to be loaded
            "d000-c000 r-xp 00000000 fd:00 1234    /usr/bin/hob",
            "rubbish",
            "",
        ] {
            assert!(!given(kept), "{kept}");
        }
    }

    #[test]
    fn what_only_the_start_needed_is_no_longer_held_and_the_program_runs_on() {
        let before = resident_file_kilobytes();
        give_back_start().unwrap();
        let after = resident_file_kilobytes();
        // The libraries' pages stay, and how many come back at once is up to the system.
        assert!(after < before, "{before} kB before, {after} kB after");
        // Much of what this touches had gone.
        assert_eq!(format!("{:?}", [1.5, 2.5]), "[1.5, 2.5]");
    }
}

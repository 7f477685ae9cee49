//! Gives back the mapped pages of a file that was copied. Knows nothing of models.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "advice about memory is unsafe in general"))]

use std::path::Path;

/// Drops the pages of a mapped file from this process. They come back from the system's cache when they are read again.
///
/// llama.cpp copies weights into a form that is faster to compute with, and keeps the file mapped, because a few tensors are used
/// as they are. The pages of the others would count as memory of this process, although nothing reads them again.
#[cfg(target_os = "linux")]
pub(crate) fn release_file(file: &Path) {
    use std::ptr::with_exposed_provenance_mut;

    use rustix::mm::{Advice, madvise};

    let Ok(file) = file.canonicalize() else { return };
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for (start, end) in maps.lines().filter_map(|line| mapping_of(line, &file)) {
        // SAFETY: the range is a mapping of a file that is only read. Without its pages, the same
        // bytes are read from the file again. If it was unmapped meanwhile, the call fails, or drops pages of another file
        // mapping; memory of the heap is never at the address of a line with this file's name while the model is loaded.
        let _ = unsafe { madvise(with_exposed_provenance_mut(start), end - start, Advice::LinuxDontNeed) };
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn release_file(_file: &Path) {}

/// The addresses in a line of `/proc/self/maps`, if it is a read-only or shared mapping of this file.
#[cfg(target_os = "linux")]
fn mapping_of(line: &str, file: &Path) -> Option<(usize, usize)> {
    let (head, path) = line.split_once('/')?;
    if Path::new("/").join(path) != file {
        return None;
    }
    let mut words = head.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    // A private mapping with changed pages would lose them.
    if rights.contains('w') && !rights.ends_with('s') {
        return None;
    }
    let address = |text: &str| usize::from_str_radix(text, 16).ok();
    let (start, end) = (address(start)?, address(end)?);
    (start < end).then_some((start, end))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_read_only_mappings_of_the_file_are_released() {
        let file = Path::new("/models/with space/a.gguf");
        let line = "7f97423b3000-7f9747fcf000 r--s 00000000 08:01 1234   /models/with space/a.gguf";
        assert_eq!(mapping_of(line, file), Some((0x7f97_423b_3000, 0x7f97_47fc_f000)));
        assert_eq!(mapping_of(&line.replace("a.gguf", "b.gguf"), file), None);
        assert_eq!(mapping_of(&line.replace("r--s", "rw-p"), file), None);
        assert_eq!(mapping_of("7f9778a72000-7f977a0f3000 rw-p 00000000 00:00 0", file), None);
    }
}

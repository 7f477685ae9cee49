// Which mutant is active, and which of them this process reaches. It is a module of every mutated crate.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// More than there are.
const MUTANTS: usize = 1 << 14;

static REACHED: [AtomicBool; MUTANTS] = [const { AtomicBool::new(false) }; MUTANTS];

/// The number of the active mutant, or 0.
pub(crate) fn active() -> u32 {
    static ACTIVE: OnceLock<u32> = OnceLock::new();
    *ACTIVE
        .get_or_init(|| std::env::var("HOB_MUTANT").ok().and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Says that the process comes to the code of these mutants. Written at once, because a process may end in any way. The file is not
/// kept open, because tests count what a process has open.
pub(crate) fn reached(numbers: &[u32]) {
    static LIST: OnceLock<Option<PathBuf>> = OnceLock::new();
    let list = LIST.get_or_init(|| {
        let name = format!("{}-{}", env!("CARGO_PKG_NAME"), std::process::id());
        Some(PathBuf::from(std::env::var_os("HOB_MUTANT_REACHED")?).join(name))
    });
    let Some(list) = list else { return };
    let new: String = numbers
        .iter()
        .filter(|number| !REACHED[**number as usize].swap(true, Ordering::Relaxed))
        .map(|number| format!("{number}\n"))
        .collect();
    if !new.is_empty()
        && let Ok(mut file) = OpenOptions::new().create(true).append(true).open(list)
    {
        let _ = file.write_all(new.as_bytes());
    }
}

/// What a function returns that promises an iterator of one type: the iterator of a mutant, or another one.
pub(crate) enum Either<M, R> {
    Mutant(M),
    Other(R),
}

impl<I, M: Iterator<Item = I>, R: Iterator<Item = I>> Iterator for Either<M, R> {
    type Item = I;

    fn next(&mut self) -> Option<I> {
        match self {
            Either::Mutant(items) => items.next(),
            Either::Other(items) => items.next(),
        }
    }
}

/// The same iterator, if it has such items.
pub(crate) fn iterator_of<I, T: Iterator<Item = I>>(items: T) -> T {
    items
}

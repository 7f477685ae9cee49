//! What the engines of a simulation saw. All hosts of a simulation run in one thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

#[derive(Default)]
struct Entries {
    /// Everything that happened, in order.
    log: Vec<String>,
    /// How often a question was worked on.
    worked_on: BTreeMap<u64, usize>,
    /// The engines that worked on a question since the faults ended.
    worked_in_calm: BTreeMap<usize, usize>,
    is_calm: bool,
    /// The connections that were accepted since the faults ended and are still open.
    open_in_calm: usize,
}

/// Clones share the entries.
#[derive(Clone, Default)]
pub struct Ledger(Rc<RefCell<Entries>>);

impl Ledger {
    pub fn note(&self, what: String) {
        self.0.borrow_mut().log.push(what);
    }

    pub fn log(&self) -> Vec<String> {
        self.0.borrow().log.clone()
    }

    /// An engine starts to work on a question.
    pub fn work(&self, engine: usize, question: u64) {
        let mut entries = self.0.borrow_mut();
        *entries.worked_on.entry(question).or_default() += 1;
        if entries.is_calm {
            *entries.worked_in_calm.entry(engine).or_default() += 1;
        }
        entries.log.push(format!("engine {engine} works on question {question}"));
    }

    /// The question that was worked on most often, and how often.
    pub fn most_worked_on(&self) -> Option<(u64, usize)> {
        let entries = self.0.borrow();
        entries.worked_on.iter().map(|(question, count)| (*question, *count)).max_by_key(|(_, count)| *count)
    }

    /// The faults end.
    pub fn begin_calm(&self) {
        self.0.borrow_mut().is_calm = true;
    }

    pub fn is_calm(&self) -> bool {
        self.0.borrow().is_calm
    }

    /// The number of engines that worked since the faults ended.
    pub fn engines_in_calm(&self) -> usize {
        self.0.borrow().worked_in_calm.len()
    }

    pub fn open_in_calm(&self) -> usize {
        self.0.borrow().open_in_calm
    }

    /// A connection is open until the returned value is dropped.
    pub fn accept(&self) -> OpenConnection {
        let mut entries = self.0.borrow_mut();
        let counted = entries.is_calm;
        entries.open_in_calm += usize::from(counted);
        OpenConnection { ledger: self.clone(), counted }
    }
}

pub struct OpenConnection {
    ledger: Ledger,
    counted: bool,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.ledger.0.borrow_mut().open_in_calm -= usize::from(self.counted);
    }
}

//! Double-entry bookkeeping in whole cents. An entry that does not sum to zero cannot be made.

use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    pub account: String,
    pub cents: i64,
}

#[derive(Debug, PartialEq, Eq)]
pub enum LedgerError {
    /// Debits and credits differ by this much.
    Unbalanced(i64),
    AccountClosed(String),
    Overflow,
}

#[derive(Default)]
pub struct Ledger {
    balances: BTreeMap<String, i64>,
    closed: Vec<String>,
    entries: Vec<Vec<Posting>>,
}

impl Ledger {
    pub fn post_entry(&mut self, postings: Vec<Posting>) -> Result<usize, LedgerError> {
        let mut sum = 0_i64;
        for posting in &postings {
            if self.closed.contains(&posting.account) {
                return Err(LedgerError::AccountClosed(posting.account.clone()));
            }
            sum = sum.checked_add(posting.cents).ok_or(LedgerError::Overflow)?;
        }
        if sum != 0 {
            return Err(LedgerError::Unbalanced(sum));
        }
        for posting in &postings {
            *self.balances.entry(posting.account.clone()).or_default() += posting.cents;
        }
        self.entries.push(postings);
        Ok(self.entries.len() - 1)
    }

    /// The opposite of an earlier entry. Nothing is ever deleted: a mistake is corrected by its mirror image.
    pub fn reverse_entry(&mut self, number: usize) -> Result<usize, LedgerError> {
        let mirrored = self.entries[number]
            .iter()
            .map(|posting| Posting { account: posting.account.clone(), cents: -posting.cents })
            .collect();
        self.post_entry(mirrored)
    }

    pub fn trial_balance(&self) -> i64 {
        self.balances.values().sum()
    }
}

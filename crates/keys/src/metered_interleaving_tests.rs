//! Two servers spend the budget of one key at the same time, in many orders.

use hob_db::{ChangeWatch, DatabaseError};
use hob_sync::{explore, thread};

use super::*;
use crate::audit::{AuditEntry, AuditEvent};
use crate::key::{KeyError, KeyName, KeyRole};
use crate::limits::Budget;
use crate::store::{ChangeFn, StoredKey};

const LIMIT: u64 = 100;

/// A store that counts one window. Each call is one transaction, as in a database.
#[derive(Default)]
struct OneWindow {
    taken: Mutex<u64>,
}

impl KeyStore for OneWindow {
    fn exists(&self) -> bool {
        true
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn lease(&self, _: &QuotaWindow, wanted: u64, limit: u64) -> Result<Lease, DatabaseError> {
        let mut taken = self.taken.lock();
        let lease = Lease::of(wanted, *taken, limit);
        *taken = lease.taken;
        Ok(lease)
    }

    fn charge(&self, _: &QuotaWindow, amount: u64) -> Result<(), DatabaseError> {
        *self.taken.lock() += amount;
        Ok(())
    }

    fn give_back(&self, _: &QuotaWindow, amount: u64) -> Result<(), DatabaseError> {
        let mut taken = self.taken.lock();
        *taken = taken.checked_sub(amount).expect("no more than was leased");
        Ok(())
    }

    fn taken(&self, _: &QuotaWindow) -> Result<u64, DatabaseError> {
        Ok(*self.taken.lock())
    }

    fn insert(&self, _: &StoredKey, _: &AuditEvent) -> Result<bool, DatabaseError> {
        unreachable!("no test creates keys")
    }

    fn list(&self) -> Result<Vec<StoredKey>, DatabaseError> {
        unreachable!("no test lists keys")
    }

    fn get(&self, _: &KeyName) -> Result<Option<StoredKey>, DatabaseError> {
        unreachable!("no test reads keys")
    }

    fn change(&self, _: &KeyName, _: ChangeFn<'_>, _: &AuditEvent) -> Result<StoredKey, KeyError> {
        unreachable!("no test changes keys")
    }

    fn changes(&self) -> Result<i64, DatabaseError> {
        unreachable!("no test changes keys")
    }

    fn watch(&self) -> Result<Option<ChangeWatch>, DatabaseError> {
        unreachable!("no test watches keys")
    }

    fn forget_windows(&self, _: Period, _: i64) -> Result<(), DatabaseError> {
        unreachable!("no test forgets windows")
    }

    fn append_audit(&self, _: &AuditEvent) -> Result<AuditEntry, DatabaseError> {
        unreachable!("no test writes the audit log")
    }

    fn audit_after(&self, _: i64, _: usize) -> Result<Vec<AuditEntry>, DatabaseError> {
        unreachable!("no test reads the audit log")
    }

    fn latest_audit(&self, _: usize) -> Result<Vec<AuditEntry>, DatabaseError> {
        unreachable!("no test reads the audit log")
    }
}

fn noon() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().expect("a moment")
}

fn tokens(amount: u64) -> Amounts {
    Amounts { tokens: amount, ..Amounts::default() }
}

/// The account of the key at one server.
fn server(store: &Arc<OneWindow>) -> Arc<Metered> {
    let parts = MeterParts {
        store: Arc::clone(store) as Arc<dyn KeyStore>,
        price: Arc::new(|_, _, _, _| CallCost::Free),
        on_failure: StoreFailure::Refuse,
        clock: Arc::new(noon),
    };
    let metered = Metered::new("1".into(), "team".into(), Arc::new(parts));
    let budget = Budget::parse(&format!("{LIMIT} tokens/day")).expect("a budget");
    metered.set_rules(&KeyRules { budgets: vec![budget], ..KeyRules::of(KeyRole::Member) });
    Arc::new(metered)
}

/// As [`Metered::take`], with the store in the same thread. The requests of a server do not wait for each other here, so there are
/// more orders than in the product.
fn take(server: &Metered, amount: u64) -> Option<Reservation> {
    loop {
        let shortage = match server.account.lock().reserve(tokens(amount), noon()) {
            Ok(reservation) => return Some(reservation),
            Err(shortage) => shortage,
        };
        server.lease_share(shortage.quota, shortage.window, shortage.wanted?).expect("the store works");
    }
}

/// A call that reserves an amount and uses another. What it used, or zero if it was refused.
fn call(server: &Metered, reserved: u64, used: u64) -> u64 {
    let Some(reservation) = take(server, reserved) else { return 0 };
    server.account.lock().settle(reservation, tokens(used));
    used
}

/// Runs the calls of two servers, each call in a thread, and lets both servers give back what they have left. What was used, and
/// what the store says was taken.
fn spend(calls: [[(u64, u64); 2]; 2]) -> (u64, u64) {
    let store = Arc::new(OneWindow::default());
    let servers = [server(&store), server(&store)];
    let mut threads = Vec::new();
    for (server, calls) in servers.iter().zip(calls) {
        for (reserved, used) in calls {
            let server = Arc::clone(server);
            threads.push(thread::spawn(move || call(&server, reserved, used)));
        }
        let server = Arc::clone(server);
        threads.push(thread::spawn(move || {
            server.give_back_excess().expect("the store works");
            server.write_overdrafts().expect("the store works");
            0
        }));
    }
    let used = threads.into_iter().map(|thread| thread.join().expect("no panic")).sum();
    for server in &servers {
        server.give_back().expect("the store works");
    }
    let taken = *store.taken.lock();
    (used, taken)
}

#[test]
fn servers_never_spend_more_together_than_the_limit() {
    explore(|| {
        let (used, taken) = spend([[(40, 40), (30, 10)], [(40, 40), (50, 50)]]);
        assert!(used <= LIMIT, "{used} of {LIMIT}");
        assert_eq!(taken, used, "what was not used is given back, and nothing else");
    });
}

#[test]
fn what_calls_use_beyond_their_reservation_is_charged_once() {
    explore(|| {
        let (used, taken) = spend([[(10, 35), (10, 5)], [(10, 60), (20, 20)]]);
        assert_eq!(taken, used);
    });
}

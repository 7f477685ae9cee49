//! For tests on a simulated network: the seeds, and the faults of the machines and of the network between them.

use std::time::Duration;

use turmoil::{Builder, Sim};

use crate::dice::Dice;

/// The name of the machine on which Hob runs.
pub const CALLER: &str = "hob";

/// The seeds to try, unless `HOB_SIM_SEEDS` says otherwise.
const SEEDS: u64 = 200;

/// There is a fault in one of so many steps, which is about one in each second.
const STEPS_PER_FAULT: u64 = 100;

/// A simulation that this seed decides. It fails if it takes ten minutes of its own time.
pub fn simulation<'a>(seed: u64) -> Sim<'a> {
    Builder::new()
        .rng_seed(seed)
        .tick_duration(Duration::from_millis(10))
        .simulation_duration(Duration::from_secs(600))
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(40))
        .tcp_capacity(1024)
        .enable_random_order()
        .build()
}

/// Runs the test once for each seed, or for the seed of `HOB_SIM_SEED`. A failure prints its seed.
pub fn for_each_seed(test: impl Fn(u64)) {
    let seeds = match setting("HOB_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..setting("HOB_SIM_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        let _note = SeedNote(seed);
        test(seed);
    }
}

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is '{text}', and must be a number")))
}

/// Prints the seed of a simulation that fails.
struct SeedNote(u64);

impl Drop for SeedNote {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the simulation failed; to repeat it: HOB_SIM_SEED={} ./dev test --simulation", self.0);
        }
    }
}

/// The faults of some machines, and of the network between them and Hob.
pub struct SimulatedFaults {
    dice: Dice,
    machines: Vec<Machine>,
}

struct Machine {
    name: String,
    faults: MachineFaults,
    has_crashed: bool,
}

/// What may happen to a machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MachineFaults {
    /// It crashes, and the network between it and Hob has faults.
    Both,
    Network,
    Crashes,
}

impl SimulatedFaults {
    pub fn new(seed: u64, machines: impl IntoIterator<Item = String>) -> Self {
        let faults = SimulatedFaults { dice: Dice::new(seed), machines: Vec::new() };
        machines.into_iter().fold(faults, |faults, name| faults.with(name, MachineFaults::Both))
    }

    /// The same with faults of the network between Hob and a client, which does not crash.
    pub fn with_client(self, name: &str) -> Self {
        self.with(name.to_owned(), MachineFaults::Network)
    }

    /// The same with crashes of Hob.
    pub fn with_restarts(self) -> Self {
        self.with(CALLER.to_owned(), MachineFaults::Crashes)
    }

    fn with(mut self, name: String, faults: MachineFaults) -> Self {
        self.machines.push(Machine { name, faults, has_crashed: false });
        self
    }

    /// Called after every step of the simulation. Returns what it did, if anything.
    pub fn step(&mut self, sim: &mut Sim<'_>) -> Option<String> {
        if !self.dice.one_in(STEPS_PER_FAULT) {
            return None;
        }
        let index = self.dice.index(self.machines.len());
        let Machine { name, faults, has_crashed } = &mut self.machines[index];
        let what = match (*faults, self.dice.below(5)) {
            (MachineFaults::Crashes, _) | (MachineFaults::Both, 4) if *has_crashed => {
                sim.bounce(name.as_str());
                *has_crashed = false;
                "starts again"
            }
            (MachineFaults::Crashes, _) | (MachineFaults::Both, 4) => {
                sim.crash(name.as_str());
                *has_crashed = true;
                "crashes"
            }
            (_, 0) => {
                sim.partition(CALLER, name.as_str());
                "loses everything"
            }
            (_, 1) => {
                sim.hold(CALLER, name.as_str());
                "delays everything"
            }
            _ => {
                sim.release(CALLER, name.as_str());
                "works"
            }
        };
        Some(format!("{:?}: {name} {what}", sim.elapsed()))
    }

    /// Ends all faults.
    pub fn end(&mut self, sim: &mut Sim<'_>) {
        for Machine { name, faults, has_crashed } in &mut self.machines {
            if *faults != MachineFaults::Crashes {
                sim.release(CALLER, name.as_str());
            }
            if std::mem::take(has_crashed) {
                sim.bounce(name.as_str());
            }
        }
    }
}

//! NVIDIA cards, with the counters of their driver. Its library is loaded at run time, so that one program works with and without
//! it.

use std::error::Error;
use std::sync::Arc;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use super::counter::{EnergyCounter, FoundMeters};

/// The used functions of the driver.
trait Driver: Send + Sync {
    fn cards(&self) -> Result<u32, NvmlError>;
    fn name(&self, card: u32) -> Result<String, NvmlError>;
    /// Since the driver was loaded. Cards before Volta have no counter.
    fn millijoules(&self, card: u32) -> Result<u64, NvmlError>;
}

impl Driver for Nvml {
    fn cards(&self) -> Result<u32, NvmlError> {
        self.device_count()
    }

    fn name(&self, card: u32) -> Result<String, NvmlError> {
        self.device_by_index(card)?.name()
    }

    fn millijoules(&self, card: u32) -> Result<u64, NvmlError> {
        self.device_by_index(card)?.total_energy_consumption()
    }
}

struct Card {
    driver: Arc<dyn Driver>,
    number: u32,
    name: String,
}

/// The cards with a counter. May take a second.
pub(super) fn find() -> FoundMeters {
    match Nvml::init() {
        Ok(driver) => cards_of(Arc::new(driver)),
        // Without the library there are no cards.
        Err(NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound | NvmlError::DriverNotLoaded) => {
            FoundMeters::default()
        }
        Err(error) => FoundMeters {
            refused: vec![format!("the NVIDIA driver failed: {error}")],
            ..FoundMeters::default()
        },
    }
}

fn cards_of(driver: Arc<dyn Driver>) -> FoundMeters {
    let mut found = FoundMeters::default();
    let cards = driver.cards().unwrap_or_else(|error| {
        found.refused.push(format!("the NVIDIA driver does not list its cards: {error}"));
        0
    });
    for number in 0..cards {
        let name = driver.name(number).unwrap_or_else(|_| format!("NVIDIA card {number}"));
        match driver.millijoules(number) {
            Ok(_) => found.counters.push(Box::new(Card { driver: Arc::clone(&driver), number, name })),
            Err(NvmlError::NotSupported) => found.refused.push(format!("{name} has no energy counter")),
            Err(error) => found.refused.push(format!("cannot read the energy counter of {name}: {error}")),
        }
    }
    found
}

impl EnergyCounter for Card {
    fn name(&self) -> String {
        format!("{} (NVML)", self.name)
    }

    fn read(&mut self) -> Result<u64, Box<dyn Error + Send + Sync>> {
        Ok(self.driver.millijoules(self.number)?.saturating_mul(1000))
    }

    fn wraps_after(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A driver of three cards: one that counts, one that is too old to, one that fell off its bus.
    struct Fake {
        millijoules: AtomicU64,
    }

    impl Driver for Fake {
        fn cards(&self) -> Result<u32, NvmlError> {
            Ok(3)
        }

        fn name(&self, card: u32) -> Result<String, NvmlError> {
            let names = ["NVIDIA RTX 4090", "NVIDIA GTX 1080"];
            names.get(card as usize).map(|name| (*name).to_owned()).ok_or(NvmlError::GpuLost)
        }

        fn millijoules(&self, card: u32) -> Result<u64, NvmlError> {
            match (card, self.millijoules.load(Ordering::Relaxed)) {
                (0, 0) | (2, _) => Err(NvmlError::GpuLost),
                (0, millijoules) => Ok(millijoules),
                _ => Err(NvmlError::NotSupported),
            }
        }
    }

    /// A driver whose cards are in trouble.
    struct Failing;

    impl Driver for Failing {
        fn cards(&self) -> Result<u32, NvmlError> {
            Err(NvmlError::GpuLost)
        }

        fn name(&self, _: u32) -> Result<String, NvmlError> {
            Err(NvmlError::GpuLost)
        }

        fn millijoules(&self, _: u32) -> Result<u64, NvmlError> {
            Err(NvmlError::GpuLost)
        }
    }

    #[test]
    fn a_failing_driver_is_reported() {
        let found = cards_of(Arc::new(Failing));
        assert!(found.counters.is_empty());
        let [reason] = &found.refused[..] else { panic!("{:?}", found.refused) };
        assert!(reason.starts_with("the NVIDIA driver does not list its cards: "), "{reason}");
    }

    #[test]
    fn cards_with_a_counter_are_read_and_the_others_are_named() {
        let driver = Arc::new(Fake { millijoules: AtomicU64::new(5_000) });
        let mut found = cards_of(Arc::clone(&driver) as _);
        let [card] = &mut found.counters[..] else { panic!("one card counts") };
        assert_eq!((card.name().as_str(), card.wraps_after()), ("NVIDIA RTX 4090 (NVML)", None));
        assert_eq!(card.read().unwrap(), 5_000_000);
        driver.millijoules.store(0, Ordering::Relaxed);
        assert!(card.read().is_err(), "it fell off its bus");
        assert_eq!(found.refused[0], "NVIDIA GTX 1080 has no energy counter");
        assert!(
            found.refused[1].starts_with("cannot read the energy counter of NVIDIA card 2: "),
            "{:?}",
            found.refused
        );
        assert_eq!(found.refused.len(), 2);
    }
}

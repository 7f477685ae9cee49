//! Processors with energy counters (RAPL, Intel and AMD), in the powercap files of Linux.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use super::counter::{EnergyCounter, FoundMeters};

pub(super) const POWERCAP: &str = "/sys/class/powercap";

/// A processor package. Its parts and the whole board have counters too, which would count most energy twice.
struct Package {
    name: String,
    energy: PathBuf,
    wraps_after: Option<u64>,
}

/// The packages with a readable counter. Many kernels restrict them to root, because a precise meter can leak secrets.
pub(super) fn find(directory: &Path) -> FoundMeters {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut zones: Vec<(u32, PathBuf)> =
        entries.filter_map(|entry| Some((number(entry.file_name().to_str()?)?, entry.path()))).collect();
    zones.sort_unstable();
    let mut found = FoundMeters::default();
    for (_, zone) in zones {
        let Some(mut package) = package(&zone) else { continue };
        match package.read() {
            Ok(_) => found.counters.push(Box::new(package)),
            Err(error) => {
                found.refused.push(format!("cannot read {}: {error}", package.energy.display()));
            }
        }
    }
    found
}

/// `intel-rapl:0` is a zone, also for AMD; `intel-rapl:0:1` is a part of it, and `intel-rapl-mmio:0` a duplicate.
fn number(name: &str) -> Option<u32> {
    name.strip_prefix("intel-rapl:")?.parse().ok()
}

fn package(zone: &Path) -> Option<Package> {
    let name = fs::read_to_string(zone.join("name")).ok()?.trim().to_owned();
    let wraps_after = fs::read_to_string(zone.join("max_energy_range_uj")).ok();
    name.starts_with("package-").then(|| Package {
        name,
        energy: zone.join("energy_uj"),
        wraps_after: wraps_after.and_then(|text| text.trim().parse().ok()),
    })
}

impl EnergyCounter for Package {
    fn name(&self) -> String {
        format!("{} (RAPL)", self.name)
    }

    fn read(&mut self) -> Result<u64, Box<dyn Error + Send + Sync>> {
        Ok(fs::read_to_string(&self.energy)?.trim().parse()?)
    }

    fn wraps_after(&self) -> Option<u64> {
        self.wraps_after
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tempfile::TempDir;

    use super::*;
    use crate::energy::counter::EnergyCounters;

    /// A directory like the kernel's, with zones of these names, each with 1,000 microjoules on its counter.
    fn powercap(zones: &[(&str, &str)]) -> TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("intel-rapl")).unwrap();
        for (zone, name) in zones {
            let zone = directory.path().join(zone);
            fs::create_dir(&zone).unwrap();
            fs::write(zone.join("name"), format!("{name}\n")).unwrap();
            fs::write(zone.join("max_energy_range_uj"), "2000\n").unwrap();
            fs::write(zone.join("energy_uj"), "1000\n").unwrap();
        }
        directory
    }

    fn names(found: &FoundMeters) -> Vec<String> {
        found.counters.iter().map(|counter| counter.name()).collect()
    }

    #[test]
    fn only_whole_packages_are_counted_and_each_once() {
        let directory = powercap(&[
            ("intel-rapl:10", "package-10"),
            ("intel-rapl:2", "psys"),
            ("intel-rapl:0", "package-0"),
            ("intel-rapl:0:0", "core"),
            ("intel-rapl:0:1", "package-0"),
            ("intel-rapl:1", "package-1-die-0"),
            ("intel-rapl-mmio:0", "package-0"),
            ("dtpm", "dtpm"),
        ]);
        let found = find(directory.path());
        assert_eq!(names(&found), ["package-0 (RAPL)", "package-1-die-0 (RAPL)", "package-10 (RAPL)"]);
        assert_eq!(found.refused, Vec::<String>::new());
    }

    #[test]
    fn a_counter_wraps_and_may_disappear() {
        let directory = powercap(&[("intel-rapl:0", "package-0")]);
        let energy = directory.path().join("intel-rapl:0/energy_uj");
        let counters = find(directory.path()).counters;
        let (mut counters, start) = (EnergyCounters::new(counters), Instant::now());
        let mut second = 0;
        let mut advance = || {
            second += 1;
            counters.advance(start + Duration::from_secs(second))
        };
        assert_eq!(advance(), None);
        fs::write(&energy, "1900\n").unwrap();
        assert_eq!(advance(), Some(900));
        fs::write(&energy, "300\n").unwrap();
        assert_eq!(advance(), Some(400));
        fs::remove_file(&energy).unwrap();
        assert_eq!(advance(), None);
        fs::write(&energy, "nonsense\n").unwrap();
        assert_eq!(advance(), None);
    }

    #[test]
    fn an_unreadable_counter_is_named_and_skipped() {
        let directory = powercap(&[("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1")]);
        let energy = directory.path().join("intel-rapl:0/energy_uj");
        fs::remove_file(&energy).unwrap();
        // Also unreadable for root, who may read any file.
        fs::create_dir(&energy).unwrap();
        let found = find(directory.path());
        assert_eq!(names(&found), ["package-1 (RAPL)"]);
        let [refused] = &found.refused[..] else { panic!("{:?}", found.refused) };
        assert!(refused.starts_with(&format!("cannot read {}: ", energy.display())), "{refused}");
    }

    #[test]
    fn a_machine_without_the_directory_has_no_counters_and_no_error() {
        let found = find(Path::new("/nowhere/at/all"));
        assert_eq!((found.counters.len(), found.refused.len()), (0, 0));
    }
}

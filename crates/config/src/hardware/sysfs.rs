//! Graphics cards by the Linux kernel's own list, for those that no vendor's tool reports.

use std::fs;
use std::path::Path;

use crate::hardware::format::gigabytes;
use crate::hardware::gpu::{Adapter, Adapters, GpuVendor};
use crate::hardware::probe::TIMEOUT;

const AMD: u32 = 0x1002;
const INTEL: u32 = 0x8086;
const MOORE_THREADS: u32 = 0x1ed5;

pub(super) async fn look() -> Adapters {
    let reading = tokio::task::spawn_blocking(|| read(Path::new("/sys/class/drm")));
    tokio::time::timeout(TIMEOUT, reading).await.ok().and_then(Result::ok).unwrap_or_default()
}

/// Reads the kernel's directory of display devices.
fn read(directory: &Path) -> Adapters {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut cards: Vec<u32> = entries.filter_map(|entry| number(entry.file_name().to_str()?)).collect();
    cards.sort_unstable();
    cards.into_iter().filter_map(|card| adapter(&directory.join(format!("card{card}/device")))).collect()
}

/// `card0` is a card; `card0-DP-1` is a socket of it.
fn number(name: &str) -> Option<u32> {
    name.strip_prefix("card")?.parse().ok()
}

/// The card, if it is one that can compute: a list of those, since there is no end of display adapters that cannot
/// (ASPEED and Matrox in servers, virtio, QXL, Cirrus, Bochs and VMware in virtual machines). NVIDIA's are left to
/// NVIDIA's tool: without its driver they are of no use.
fn adapter(device: &Path) -> Option<Adapter> {
    let vendor_id = identifier(&device.join("vendor"))?;
    let (vendor, name) = match vendor_id {
        AMD => (GpuVendor::Amd, "AMD"),
        INTEL if !is_part_of_processor(device) => (GpuVendor::Other("Intel".into()), "Intel"),
        MOORE_THREADS => (GpuVendor::Other("Moore Threads".into()), "Moore Threads"),
        _ => return None,
    };
    let vram = contents(&device.join("mem_info_vram_total")).and_then(|bytes| bytes.parse().ok());
    // A driver that can compute reports the memory. A card without it is a display adapter.
    if vendor == GpuVendor::Amd && vram.is_none() {
        return None;
    }
    let model = contents(&device.join("product_name")).unwrap_or_else(|| {
        let device_id = identifier(&device.join("device")).unwrap_or_default();
        format!("{name} GPU [{vendor_id:04x}:{device_id:04x}]")
    });
    Some(Adapter { vendor, model, vram_gb: vram.map(gigabytes) })
}

/// Intel's graphics inside a processor sit on the first bus, `0000:00:02.0`; a card sits behind a bridge. When the place
/// is not known it counts as inside, which is by far the more common.
fn is_part_of_processor(device: &Path) -> bool {
    let place = fs::canonicalize(device).ok();
    let bus = place.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()?.split(':').nth(1));
    bus.is_none_or(|bus| bus == "00")
}

fn identifier(path: &Path) -> Option<u32> {
    u32::from_str_radix(contents(path)?.strip_prefix("0x")?, 16).ok()
}

/// The text of one of the kernel's small files, if it says anything.
fn contents(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A directory like the kernel's, with cards at places on the bus.
    struct Kernel(TempDir);

    impl Kernel {
        fn new() -> Self {
            Kernel(tempfile::tempdir().expect("a directory"))
        }

        fn card(&self, number: u32, place: &str, files: &[(&str, &str)]) -> &Self {
            let device = self.0.path().join("devices").join(place);
            fs::create_dir_all(&device).expect("created");
            for (name, text) in files {
                fs::write(device.join(name), format!("{text}\n")).expect("written");
            }
            let card = self.0.path().join(format!("drm/card{number}"));
            fs::create_dir_all(self.0.path().join(format!("drm/card{number}-DP-1"))).expect("created");
            fs::create_dir_all(&card).expect("created");
            symlink(device, card.join("device")).expect("linked");
            self
        }

        fn found(&self) -> Vec<(String, Option<f64>)> {
            read(&self.0.path().join("drm"))
                .into_iter()
                .map(|adapter| (adapter.model, adapter.vram_gb))
                .collect()
        }
    }

    #[test]
    fn cards_that_compute_are_found_in_order() {
        let kernel = Kernel::new();
        let intel = [("vendor", "0x8086"), ("device", "0x56a0")];
        let amd = [("vendor", "0x1002"), ("device", "0x744c"), ("mem_info_vram_total", "25753026560")];
        let named = [
            ("vendor", "0x1002"),
            ("product_name", "AMD Instinct MI210"),
            ("mem_info_vram_total", "68702699520"),
        ];
        kernel.card(10, "0000:0b:00.0", &intel).card(2, "0000:03:00.0", &amd).card(1, "0000:83:00.0", &named);
        assert_eq!(
            kernel.found(),
            [
                ("AMD Instinct MI210".to_owned(), Some(64.0)),
                ("AMD GPU [1002:744c]".to_owned(), Some(24.0)),
                ("Intel GPU [8086:56a0]".to_owned(), None),
            ]
        );
    }

    #[test]
    fn display_adapters_are_no_cards() {
        let kernel = Kernel::new();
        for (number, vendor) in
            ["0x1a03", "0x1af4", "0x1b36", "0x1013", "0x1234", "0x15ad", "0x102b"].iter().enumerate()
        {
            kernel.card(
                number as u32,
                &format!("0000:0{number}:01.0"),
                &[("vendor", vendor), ("device", "0x2000")],
            );
        }
        let inside_the_processor = [("vendor", "0x8086"), ("device", "0xa780")];
        let old_radeon = [("vendor", "0x1002"), ("device", "0x515e")];
        kernel.card(20, "0000:00:02.0", &inside_the_processor).card(21, "0000:01:03.0", &old_radeon);
        kernel.card(22, "0000:05:00.0", &[("vendor", "garbage")]).card(23, "0000:06:00.0", &[]);
        assert_eq!(kernel.found(), []);
    }

    #[test]
    fn a_machine_without_such_a_list_has_no_cards() {
        assert_eq!(read(Path::new("/nowhere/at/all")), []);
    }
}

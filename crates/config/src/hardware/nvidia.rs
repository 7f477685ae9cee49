//! NVIDIA's cards, by `nvidia-smi`.

use crate::hardware::format::gigabytes;
use crate::hardware::gpu::{Adapter, Adapters, GpuVendor};
use crate::hardware::probe::{ProbeError, ask};

pub(super) async fn look() -> Result<Adapters, ProbeError> {
    let arguments = ["--query-gpu=name,memory.total", "--format=csv,noheader,nounits"];
    Ok(ask("nvidia-smi", &arguments).await?.as_deref().map(parse).unwrap_or_default())
}

/// Reads lines of `name, MiB`. A line of another form is not a card but something the tool had to say.
fn parse(output: &str) -> Adapters {
    output.lines().filter_map(card).collect()
}

fn card(line: &str) -> Option<Adapter> {
    // From the right: a name may have a comma, a number has none.
    let (model, memory) = line.rsplit_once(',')?;
    let (model, memory) = (model.trim(), memory.trim());
    let vram_gb = match memory.strip_suffix("MiB").unwrap_or(memory).trim().parse::<u32>() {
        Ok(mebibytes) => Some(gigabytes(u64::from(mebibytes) << 20)),
        // Such as `[N/A]` on chips that share the processor's memory, or `[Insufficient Permissions]` with MIG.
        Err(_) if memory.starts_with('[') && memory.ends_with(']') => None,
        Err(_) => return None,
    };
    (!model.is_empty()).then(|| Adapter { vendor: GpuVendor::Nvidia, model: model.to_owned(), vram_gb })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cards(sample: &str) -> Vec<(String, Option<f64>)> {
        parse(sample).into_iter().map(|adapter| (adapter.model, adapter.vram_gb)).collect()
    }

    #[test]
    fn several_cards_are_read() {
        let card = ("NVIDIA A100-SXM4-80GB".to_owned(), Some(80.0));
        assert_eq!(cards(include_str!("samples/nvidia-8xa100.csv")), vec![card; 8]);
        assert_eq!(
            cards(include_str!("samples/nvidia-mixed.csv")),
            [("NVIDIA GeForce RTX 4090".to_owned(), Some(24.0)), ("NVIDIA RTX A1000".to_owned(), Some(8.0))]
        );
    }

    #[test]
    fn a_card_that_hides_its_memory_is_still_a_card() {
        assert_eq!(cards(include_str!("samples/nvidia-gb10.csv")), [("NVIDIA GB10".to_owned(), None)]);
        assert_eq!(
            cards(include_str!("samples/nvidia-mig.csv")),
            [("NVIDIA H100 80GB HBM3".to_owned(), None), ("NVIDIA H100 80GB HBM3".to_owned(), Some(79.6))]
        );
    }

    #[test]
    fn complaints_are_no_cards() {
        for sample in [
            include_str!("samples/nvidia-no-driver.txt"),
            include_str!("samples/nvidia-mismatch.txt"),
            include_str!("samples/nvidia-no-devices.txt"),
            "name, memory.total [MiB]\n",
            ", 24564\n",
            "NVIDIA L4, 99999999999999\n",
            "NVIDIA L4, -5\n",
            "\u{0},\u{1}\n,,,\n",
            "",
        ] {
            assert_eq!(cards(sample), [], "{sample:?}");
        }
    }
}

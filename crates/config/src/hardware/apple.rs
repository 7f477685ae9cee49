//! Apple's own graphics, by `system_profiler`. Cards of other makers in older Macs are skipped: the engines that this
//! crate recommends for them do not exist there.

use serde_json::Value;

use crate::hardware::gpu::{Adapter, Adapters, GpuVendor};
use crate::hardware::probe::{ProbeError, ask};

pub(super) async fn look() -> Result<Adapters, ProbeError> {
    if !cfg!(target_os = "macos") {
        return Ok(Adapters::new());
    }
    let report = ask("system_profiler", &["SPDisplaysDataType", "-json"]).await?;
    Ok(report.as_deref().map(parse).unwrap_or_default())
}

/// Apple's processor and graphics share their memory, which the report does not mention.
pub(super) fn with_unified_memory(adapters: Adapters, ram_gb: f64) -> Adapters {
    adapters.into_iter().map(|adapter| Adapter { vram_gb: Some(ram_gb), ..adapter }).collect()
}

fn parse(output: &str) -> Adapters {
    let report: Value = serde_json::from_str(output).unwrap_or_default();
    let displays = report.get("SPDisplaysDataType").and_then(Value::as_array);
    displays.into_iter().flatten().filter_map(graphics).collect()
}

fn graphics(display: &Value) -> Option<Adapter> {
    let text = |key| display.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let model = text("sppci_model");
    let by_apple =
        text("spdisplays_vendor").to_ascii_lowercase().ends_with("apple") || model.starts_with("Apple ");
    (by_apple && !model.is_empty()).then(|| Adapter {
        vendor: GpuVendor::Apple,
        model: model.to_owned(),
        vram_gb: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apples_graphics_share_the_memory_of_the_machine() {
        let found = with_unified_memory(parse(include_str!("samples/apple-m2-max.json")), 64.0);
        let expected =
            Adapter { vendor: GpuVendor::Apple, model: "Apple M2 Max".into(), vram_gb: Some(64.0) };
        assert_eq!(found, [expected]);
    }

    #[test]
    fn an_intel_mac_has_no_apple_graphics() {
        assert_eq!(parse(include_str!("samples/apple-intel.json")), []);
    }

    #[test]
    fn garbage_is_no_graphics() {
        for output in
            ["", "null", "{}", "{\"SPDisplaysDataType\": {}}", "{\"SPDisplaysDataType\": [1, {}, null]}"]
        {
            assert_eq!(parse(output), [], "{output}");
        }
    }
}

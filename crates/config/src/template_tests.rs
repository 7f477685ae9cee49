//! The file that `init` writes must load, say everything there is, and match the example.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::agent::AgentName;
use crate::hardware::{Cpu, Gpu, GpuVendor, Platform};
use crate::read::{Source, read};
use crate::savings::TokenPrice;

fn loaded(text: &str) -> Config {
    let (config, warnings) = read(Source { file: "config.toml", text, home: None }).expect("it loads");
    assert_eq!(warnings, [], "{text}");
    config
}

/// The template with every default switched on.
fn uncommented(text: &str) -> String {
    let key = |rest: &&str| rest.starts_with(|first: char| first.is_ascii_lowercase());
    text.lines().map(|line| line.strip_prefix('#').filter(key).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

fn machine() -> Hardware {
    Hardware {
        platform: Platform { os: "linux".into(), arch: "x86_64".into() },
        cpu: Cpu { brand: "AMD EPYC 7763".into(), physical_cores: Some(64), logical_cores: 128 },
        ram_gb: 503.5,
        gpus: vec![Gpu {
            vendor: GpuVendor::Nvidia,
            model: "NVIDIA L40S".into(),
            vram_gb: Some(45.0),
            count: 4,
        }],
        notes: Vec::new(),
    }
}

#[test]
fn a_written_file_gives_the_defaults_and_the_recommended_engine() {
    for engine in EngineName::ALL {
        let mut expected = Config::default();
        expected.engine.default = Some(engine);
        expected.engine.recommended = Some(engine);
        assert_eq!(list(&loaded(&template(engine, Some(&machine())))), list(&expected));
        assert_eq!(list(&loaded(&template(engine, None))), list(&expected));
    }
}

#[test]
fn the_hardware_found_stands_on_top() {
    let text = template(EngineName::Vllm, Some(&machine()));
    insta::assert_snapshot!(text.lines().take(14).collect::<Vec<_>>().join("\n"), @r"
    # Hob's configuration. Command-line flags override this file.
    #
    # Lines like '#port = 8000' show the default. Remove the '#' to set your own value.
    #
    # Written for this machine:
    #   Platform  linux x86_64
    #   CPU       AMD EPYC 7763, 64 cores, 128 threads
    #   Memory    503.5 GB
    #   GPU       4 x NVIDIA L40S, 45.0 GB each


    # The HTTP server that 'hob serve' starts.
    [server]
    ");
}

#[test]
fn a_card_with_a_hostile_name_cannot_write_settings() {
    let mut hardware = machine();
    hardware.gpus[0].model = "x\n[server]\nport = 1\r\u{0}\u{7f}".into();
    assert_eq!(loaded(&template(EngineName::Vllm, Some(&hardware))).server.port, 8000);
}

#[test]
fn only_the_engine_is_set_and_the_rest_follows_the_defaults() {
    let text = template(EngineName::Ollama, None);
    let set: Vec<&str> =
        text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', '['])).collect();
    assert_eq!(set, ["default = \"ollama\"", "recommended = \"ollama\""]);
}

#[test]
fn every_default_shown_is_one_that_loads() {
    let text = uncommented(&template(EngineName::Ollama, None));
    let set = text.lines().filter(|line| line.contains(" = ") && !line.starts_with('#')).count();
    let keys: usize = list(&Config::default()).iter().map(|section| section.keys.len()).sum();
    assert_eq!(set, keys);
    let mut expected = Config::default();
    expected.engine.default = Some(EngineName::Ollama);
    expected.engine.recommended = Some(EngineName::Ollama);
    assert_eq!(list(&loaded(&text)), list(&expected));
}

/// The names of the plain fields of a struct, found in its debug output: independent of the list of keys.
fn field_names(shown: impl std::fmt::Debug) -> BTreeSet<String> {
    let shown = format!("{shown:#?}");
    let plain = |line: &str| {
        line.trim()
            .split_once(": ")
            .filter(|(_, value)| !value.ends_with('{'))
            .map(|(name, _)| name.to_owned())
    };
    shown.lines().filter_map(plain).collect()
}

#[test]
fn every_setting_is_in_the_template_and_the_template_has_no_other() {
    let Config {
        server,
        engine,
        intelligence,
        models,
        agent,
        memory,
        sources,
        mail,
        channel,
        scheduler,
        sandbox,
        tools,
        mcp,
        telemetry,
        savings,
        database,
        update,
        provider_keys: _,
        hub: _,
        backends: _,
        passfile: _,
    } = Config::default();
    let fields = [
        ("server", field_names(server)),
        ("engine", field_names(engine)),
        ("intelligence", field_names(intelligence)),
        ("models", field_names(models)),
        ("agent", field_names(agent)),
        ("memory", field_names(memory)),
        ("sources", field_names(sources)),
        ("mail", field_names(mail)),
        ("channel", field_names(channel)),
        ("scheduler", field_names(scheduler)),
        ("sandbox", field_names(sandbox)),
        ("tools", field_names(tools)),
        ("mcp", field_names(mcp)),
        ("telemetry", field_names(telemetry)),
        ("savings", field_names(savings)),
        ("database", field_names(database)),
        ("update", field_names(update)),
    ];
    let text: toml::Table = uncommented(&template(EngineName::Ollama, None)).parse().expect("it is TOML");
    let sections: BTreeSet<&str> = text.keys().map(String::as_str).collect();
    assert_eq!(sections, fields.iter().map(|(name, _)| *name).collect());
    for (section, fields) in fields {
        assert_eq!(key_names(&text[section]), fields, "[{section}]");
    }
}

fn key_names(value: &toml::Value) -> BTreeSet<String> {
    let table = value.as_table().into_iter().flatten();
    let names = |(name, value): (&String, &toml::Value)| match value.as_table() {
        // A section; a table without entries is a key whose names are the user's own.
        Some(table) if !table.is_empty() => key_names(value),
        _ => BTreeSet::from([name.clone()]),
    };
    table.flat_map(names).collect()
}

#[test]
fn every_key_is_explained_in_one_line() {
    for section in list(&Config::default()) {
        for (name, key) in section.full_names().zip(&section.keys) {
            assert!(key.about.ends_with('.') && !key.about.contains('\n'), "{name}: {}", key.about);
        }
        assert!(section.about.ends_with('.') && !section.about.contains('\n'), "{}", section.name);
    }
}

#[test]
fn the_example_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config.example.toml");
    let example = std::fs::read_to_string(path).expect("config.example.toml is at the root of the project");
    assert!(
        example == template(EngineName::Llamacpp, None),
        "config.example.toml is out of date. Run: cargo run -q -p hob-config --example config_example > config.example.toml"
    );
}

prop_compose! {
    fn any_config()(
        port in 1u16..,
        agent in prop::sample::select(vec![None, Some(AgentName::React), Some(AgentName::Codeact)]),
        model in prop::option::of("[a-z0-9:/.'\" \\\\\n\u{e9}-]{0,12}"),
        key in prop::option::of("[ -~]{1,20}"),
        milliseconds in 1u64..100_000_000,
        engine in prop::option::of(prop::sample::select(EngineName::ALL.to_vec())),
        pool in prop::sample::subsequence(EngineName::ALL.to_vec(), 0..4),
        ports in prop::collection::btree_set(81u16.., 0..4),
        arguments in prop::collection::vec(any::<String>(), 0..4),
        path in prop::option::of("/[ -~]{0,12}"),
        max_waiting in 0usize..=1_000_000,
        enabled in any::<bool>(),
        prices in prop::collection::btree_map(any::<String>(), (0u64..=1_000_000_000, 0u64..=1_000_000_000), 0..4),
    ) -> Config {
        let not_blank = |text: &String| !text.trim().is_empty();
        let mut config = Config::default();
        config.server.port = port;
        config.server.agent = agent;
        config.server.model = model.filter(not_blank).map(|model| model.trim().to_owned());
        config.server.api_key = key.filter(not_blank).map(|key| key.trim().into());
        config.server.max_waiting = max_waiting;
        config.engine.default = engine;
        config.engine.pool = pool;
        config.engine.vllm.hosts = ports.iter().map(|port| format!("http://gpu:{port}")).collect();
        config.engine.ollama.timeout = Duration::from_millis(milliseconds);
        config.engine.llamacpp.args = arguments;
        config.engine.llamacpp.model_path = path.clone().map(Into::into);
        config.sandbox.allowlist = path.into_iter().map(Into::into).collect();
        config.sandbox.enabled = enabled;
        let price = |(name, (input, output))| (name, TokenPrice { input, output });
        config.savings.prices = prices.into_iter().map(price).collect();
        config
    }
}

proptest! {
    #[test]
    fn what_is_written_is_what_is_read(config in any_config()) {
        prop_assert_eq!(list(&loaded(&render(&config))), list(&config));
    }
}

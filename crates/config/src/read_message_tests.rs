//! Errors and warnings about a configuration file.

use super::*;

#[test]
fn a_bad_price_is_named_by_its_model_and_line() {
    assert_eq!(
        error("[savings.prices]\ngood = { input = 1, output = 1 }\nbad = { input = 'x', output = 1 }\n"),
        "~/.hob/config.toml:3: savings.prices.bad: expected dollars per million tokens from 0 to 1000, with up to six \
         decimals, such as { input = 1.75, output = 14.0 }, got a section"
    );
    assert_eq!(
        error("savings.prices = 3"),
        "~/.hob/config.toml:1: savings.prices: expected a section [savings.prices], got 3"
    );
}

#[test]
fn a_key_that_no_longer_has_an_effect_is_accepted_with_a_warning() {
    assert_eq!(
        warnings_of("[engine.embedded]\nthreads = 2\ntune = false\n"),
        ["~/.hob/config.toml:3: 'engine.embedded.tune' no longer has any effect"]
    );
}

#[test]
fn a_bad_value_names_file_line_key_and_what_was_expected() {
    assert_eq!(
        error("[server]\nhost = '0.0.0.0'\nport = \"eighty\"\n"),
        "~/.hob/config.toml:3: server.port: expected a number from 1 to 65535, got \"eighty\""
    );
}

#[test]
fn all_bad_values_are_told_at_once_in_the_order_of_the_file() {
    let text = "
        [sandbox]
        timeout = nan
        allowlist = ['data']
        [engine]
        default = 'gpt'
        ollama_host = 'ftp://x'
        sglang = 'http://localhost:30000'
        [engine.llamacpp]
        timeout = -1
        [server]
        port = 0
        agent = 'orchestra'
        workers = 1979-05-27
        allowed_hosts = 'hob'
        [[channel]]
        enabled = true";
    insta::assert_snapshot!(error(text), @r#"
    ~/.hob/config.toml:3: sandbox.timeout: expected a number of seconds above 0 and up to 31536000 (a year), got nan
    ~/.hob/config.toml:4: sandbox.allowlist: expected a list of absolute paths, got a list
    ~/.hob/config.toml:6: engine.default: expected one of ollama, vllm, sglang, llamacpp, litellm, cloud, embedded, got "gpt"
    ~/.hob/config.toml:7: engine.ollama_host: expected an http or https address such as http://localhost:11434, got "ftp://x"
    ~/.hob/config.toml:8: engine.sglang: expected a section [engine.sglang], got "http://localhost:30000"
    ~/.hob/config.toml:10: engine.llamacpp.timeout: expected a number of seconds above 0 and up to 31536000 (a year), got -1
    ~/.hob/config.toml:12: server.port: expected a number from 1 to 65535, got 0
    ~/.hob/config.toml:13: server.agent: expected one of simple, orchestrator, react, codeact, or "" for none, got "orchestra" (did you mean 'orchestrator'?)
    ~/.hob/config.toml:14: server.workers: expected a whole number from 1 to 1000000, got a date
    ~/.hob/config.toml:15: server.allowed_hosts: expected a list of host names without scheme and port, such as ["hob.example.org"], got "hob"
    ~/.hob/config.toml:16: channel: expected a section [channel], got a list
    "#);
}

#[test]
fn a_misspelt_name_is_told_with_the_nearest_one() {
    for (typed, told) in [
        ("engine.default = 'olama'", "embedded, got \"olama\" (did you mean 'ollama'?)"),
        ("engine.default = 'llama.cpp'", "embedded, got \"llama.cpp\" (did you mean 'llamacpp'?)"),
        ("engine.default = 'gpt'", "embedded, got \"gpt\""),
        ("engine.default = 1", "embedded, got 1"),
        (
            "engine.pool = ['vllm', 'Olama', 'gpt']",
            "embedded, got a list with \"Olama\" (did you mean 'ollama'?)",
        ),
        ("engine.pool = ['vllm', 1]", "embedded, got a list"),
        ("memory.backend = 'hybird'", "hybrid, got \"hybird\" (did you mean 'hybrid'?)"),
        ("intelligence.router = 'heuristics'", "grpo, got \"heuristics\" (did you mean 'heuristic'?)"),
        ("sandbox.runtime = 'dokcer'", "of them, got \"dokcer\" (did you mean 'docker'?)"),
    ] {
        let error = error(typed);
        assert!(error.ends_with(told), "{typed}: {error}");
    }
}

#[test]
fn a_long_or_hostile_value_is_shown_briefly_and_harmlessly() {
    let message = error(&format!("[server]\nport = \"\\u001b[31m{}\"", "x".repeat(100_000)));
    assert!(message.contains(r#"got "\u{1b}[31mxxx"#), "{message}");
    assert!(message.chars().count() < 200, "{message}");
}

#[test]
fn what_is_no_toml_is_told_with_its_place() {
    assert_eq!(
        error("[server]\nport 8000\n"),
        "~/.hob/config.toml:2:6: this is not valid TOML: key with no value, expected `=`"
    );
    assert!(
        error("[server]\nport = 1\nport = 2\n")
            .starts_with("~/.hob/config.toml:3:1: this is not valid TOML: duplicate key")
    );
}

#[test]
fn a_key_is_never_repeated_in_a_message() {
    let mut messages = vec![error("[server]\napi_key = 12345678"), error("[engine.vllm]\napi_key = true")];
    assert_eq!(
        messages[0],
        "~/.hob/config.toml:2: server.api_key: expected a string in quotes, got something else"
    );
    messages.push(error("[server]\napi_key = \"12345678"));
    messages.push(error("[server]\napi_key = 12345678abc"));
    for message in messages {
        assert!(!message.contains("1234"), "{message}");
    }
    let loaded = config("[server]\napi_key = 'sk-1234'\n[engine.vllm]\napi_key = 'sk-1234'");
    assert!(!format!("{loaded:?}").contains("1234"));
}

#[test]
fn an_unknown_key_of_the_server_is_one_that_it_must_not_start_with() {
    let many: String = (0..30).map(|number| format!("key{number} = 1\n")).collect();
    for (text, expected) in [
        ("[server]\napi_kye = 'x'".to_owned(), true),
        ("[sever]\napi_key = 'x'".to_owned(), true),
        (format!("{many}[server]\napi_kye = 'x'"), true),
        ("[engine]\nvlm_host = 'x'".to_owned(), false),
        (many, false),
    ] {
        let (_, warnings) = read_text(&text).expect("a usable file");
        assert_eq!(warnings.iter().any(ConfigWarning::is_about_server), expected, "{text}");
    }
}

#[test]
fn an_unknown_key_is_a_warning_with_the_nearest_known_one() {
    let text = "prot = 1
        [server]
        prot = 8000
        max_turns = 3
        colour = 'red'
        [servr]
        port = 1
        [engine.olama]
        host = 'x'
        [\"a\\u001bb\"]
        [engine]
        vlm_host = 'x'";
    insta::assert_snapshot!(warnings_of(text).join("\n"), @r"
    ~/.hob/config.toml:1: unknown key 'prot'
    ~/.hob/config.toml:3: unknown key 'server.prot' (did you mean 'server.port'?)
    ~/.hob/config.toml:4: unknown key 'server.max_turns' (did you mean 'agent.max_turns'?)
    ~/.hob/config.toml:5: unknown key 'server.colour'
    ~/.hob/config.toml:6: unknown section 'servr' (did you mean 'server'?)
    ~/.hob/config.toml:8: unknown section 'engine.olama' (did you mean 'engine.ollama'?)
    ~/.hob/config.toml:10: unknown section 'a\u{1b}b'
    ~/.hob/config.toml:12: unknown key 'engine.vlm_host' (did you mean 'engine.vllm.host'?)
    ");
}

#[test]
fn a_file_full_of_unknown_keys_is_not_told_key_by_key() {
    let text: String = (0..5000).map(|number| format!("key{number} = 1\n")).collect();
    let warnings = warnings_of(&text);
    assert_eq!(warnings.len(), 21);
    assert_eq!(warnings[20], "~/.hob/config.toml: 4980 more unknown keys");
}

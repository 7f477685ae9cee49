//! `hob tools`, without an engine; and the generated page `docs/tools.md`.

use std::fmt::Write;
use std::path::Path;

use serde_json::{Value, json};

use crate::home::{Home, Ran};

/// With every setting that adds a tool.
fn home() -> Home {
    Home::with_config(
        "[sandbox]\nenabled = true\n[channel]\nenabled = true\n[sources]\ncalendar = { me = { file = \"/me.ics\" } }\n\
         feeds = { news = \"https://example.org/feed\" }\npages = { times = \"https://example.org/times\" }\n\
         [sources.weather]\nlatitude = 52.5\nlongitude = 13.4\n\
         [mail]\nimap_host = \"imap.example.org\"\nuser = \"ann@example.org\"\n",
    )
}

async fn listed(home: &Home) -> Vec<Value> {
    let ran = home.run(&["tools", "list", "--json"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).expect("a JSON array")
}

#[tokio::test]
async fn tools_are_listed_with_their_reach() {
    let ran = home().run(&["tools", "list"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let (table, absent) = ran.stdout.split_once("\n\n").expect("what is there, and what is not");
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(lines.next().as_deref(), Some(&["TOOL", "REACH", "DESCRIPTION"][..]));
    let tools: Vec<_> = lines.map(|words| (words[0].to_owned(), words[1].to_owned())).collect();
    for expected in
        [("calculator", "pure"), ("file_read", "read"), ("web_fetch", "act"), ("code_interpreter", "act")]
    {
        assert!(
            tools.iter().any(|(name, reach)| (name.as_str(), reach.as_str()) == expected),
            "{expected:?}: {tools:?}"
        );
    }
    insta::assert_snapshot!(absent, @r"
    Not available:
    llm  only agents can use it, because it calls the engine of the answer. Try 'hob ask --tools llm QUESTION'
    ");
}

#[tokio::test]
async fn without_a_sandbox_no_tool_runs_code() {
    let tools = listed(&Home::empty()).await;
    assert!(tools.iter().any(|tool| tool["name"] == "calculator"));
    assert!(tools.iter().all(|tool| tool["name"] != "code_interpreter"), "{tools:?}");
}

#[tokio::test]
async fn info_shows_the_arguments_a_tool_takes() {
    let home = Home::empty();
    let ran = home.run(&["tools", "info", "calculator"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (facts, schema) = ran.stdout.split_once("\n\n").expect("facts, and a schema below");
    assert!(facts.contains("Reach        pure: computes only"), "{facts}");
    let schema: Value = serde_json::from_str(schema).expect("JSON");
    assert_eq!(schema["required"], json!(["expression"]));

    let ran = home.run(&["tools", "info", "calculator", "--json"]).await;
    let tool: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(
        (&tool["name"], &tool["reach"], &tool["parameters"]),
        (&json!("calculator"), &json!("pure"), &schema)
    );
}

#[tokio::test]
async fn a_tool_runs_and_prints_its_result() {
    let home = Home::empty();
    let ran = home.run(&["tools", "run", "calculator", r#"{"expression": "17 * 23"}"#]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: "391\n".into(), stderr: String::new() });
    // Arguments are optional for a tool without arguments.
    assert_eq!(home.run(&["tools", "run", "current_time"]).await.code, Some(0));
}

#[tokio::test]
async fn a_tool_that_fails_says_why_and_prints_nothing() {
    let home = Home::empty();
    for (arguments, expected) in [
        (&["calculator", r#"{"expression": "1 / 0"}"#][..], "error: "),
        (
            &["calculator", "17 * 23"],
            "error: the arguments are not a JSON object. Pass one such as '{\"expression\": …}'; 'hob tools info \
             calculator' lists the arguments.\n",
        ),
        (&["calculator", "{}"], "error: the arguments do not follow the schema of the tool: "),
        (&["calculater", "{}"], "error: there is no tool 'calculater'; did you mean calculator?\n"),
        (
            &["code_interpreter", r#"{"code": "print(1)"}"#],
            "error: the tool 'code_interpreter' is not available: running code is disabled. Set [sandbox] enabled = true \
             in config.toml to allow it\n",
        ),
        (
            &["channel_list", "{}"],
            "error: the tool 'channel_list' is not available: no channel is configured.",
        ),
        (&["llm", "{}"], "error: the tool 'llm' is not available: only agents can use it"),
        (&["zzz", "{}"], "error: there is no tool 'zzz'; the tools are calculator, "),
    ] {
        let ran = home.run(&[&["tools", "run"], arguments].concat()).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(ran.stderr.starts_with(expected), "{arguments:?}: {}", ran.stderr);
    }
    let ran = home.run(&["tools", "info", "calculater"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("did you mean calculator?"), "{}", ran.stderr);
}

#[tokio::test]
async fn an_mcp_server_that_does_not_start_affects_only_its_own_tools() {
    let home = Home::with_config("[mcp.servers.broken]\ncommand = \"/nowhere/at/all\"\n");
    let ran = home.run(&["tools", "list"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("calculator"), "{}", ran.stdout);
    assert!(ran.stderr.contains("broken"), "the user should hear of it: {}", ran.stderr);
}

#[tokio::test]
async fn mcp_tools_are_listed_and_run_like_built_in_tools() {
    let hob = env!("CARGO_BIN_EXE_hob");
    let home = Home::with_config(&format!(
        "[mcp.servers.twin]\ncommand = \"{hob}\"\nargs = [\"mcp\"]\nreach = \"read\"\n"
    ));
    let tools = listed(&home).await;
    let theirs = tools.iter().find(|tool| tool["name"] == "twin__calculator");
    let theirs = theirs.unwrap_or_else(|| panic!("no tool of the server: {tools:?}"));
    assert_eq!(theirs["reach"], "read", "the reach it is configured with");
    let ran = home.run(&["tools", "run", "twin__calculator", r#"{"expression": "6 * 7"}"#]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: "42\n".into(), stderr: String::new() });
}

#[tokio::test]
async fn changed_mcp_tools_are_reported_and_can_be_accepted() {
    let hob = env!("CARGO_BIN_EXE_hob");
    let home = Home::with_config(&format!("[mcp.servers.twin]\ncommand = \"{hob}\"\nargs = [\"mcp\"]\n"));
    listed(&home).await;
    // As if the tool had another description when it was first seen.
    let path = home.directory().join("mcp_tools.json");
    let mut kept: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("it is kept")).expect("JSON");
    kept["servers"]["twin"]["calculator"] = "0".repeat(64).into();
    std::fs::write(&path, kept.to_string()).expect("it can be written");

    let ran = home.run(&["tools", "list"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.contains("twin__calculator") && ran.stdout.contains("twin__think"), "{}", ran.stdout);
    let advice = "The MCP server 'twin' changed its tools: calculator (changed). They are not offered. Run 'hob tools accept twin'";
    assert!(ran.stderr.contains(advice), "{}", ran.stderr);

    let ran = home.run(&["tools", "accept", "nobody"]).await;
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(1), "error: no MCP server 'nobody' is configured; configured servers: twin\n")
    );
    let ran = home.run(&["tools", "accept", "twin"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("Accepted ") && ran.stdout.contains("twin__calculator"), "{}", ran.stdout);
    assert!(listed(&home).await.iter().any(|tool| tool["name"] == "twin__calculator"));
}

/// Regenerate with `HOB_WRITE_DOCS=1 cargo nextest run -p hob the_page_of_tools`.
#[tokio::test]
async fn the_page_of_tools_is_up_to_date() {
    let home = home();
    let people = home.run(&["tools", "list"]).await.stdout;
    let (_, absent) = people.split_once("Not available:\n").expect("what is not there");
    let page = page(&listed(&home).await, absent);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    if std::env::var_os("HOB_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("docs/tools.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/tools.md is out of date. Run: HOB_WRITE_DOCS=1 cargo nextest run -p hob the_page_of_tools"
    );
}

fn page(tools: &[Value], absent: &str) -> String {
    let text = |tool: &Value, field: &str| tool[field].as_str().expect("text").to_owned();
    let mut page = "# Tools\n\n\
        <!-- Made from the code. To renew it: HOB_WRITE_DOCS=1 cargo nextest run -p hob the_page_of_tools -->\n\n\
        The tools that agents can use. `hob tools list` shows the tools of your own configuration, including those of MCP servers;\n\
        `hob tools run NAME JSON` runs one. [Agents](agents.md#permissions) explains who may use which tool.\n\n\
        | Tool | Reach | Description |\n| --- | --- | --- |\n"
        .to_owned();
    for tool in tools {
        let (name, reach) = (text(tool, "name"), text(tool, "reach"));
        let description = text(tool, "description").replace('\n', " ").replace('|', "\\|");
        writeln!(page, "| [`{name}`](#{name}) | {reach} | {description} |").expect("a string takes all");
    }
    for (name, why) in absent.lines().filter_map(|line| line.split_once(' ')) {
        write!(page, "\n`{name}` is not in this list: {}.\n", why.trim()).expect("a string takes all");
    }
    for tool in tools {
        let schema = serde_json::to_string_pretty(&tool["parameters"]).expect("JSON");
        let limit = tool["timeout_seconds"].as_f64().unwrap_or(30.0);
        write!(
            page,
            "\n## {}\n\nReach `{}`, effect `{}`{}, timeout {limit} s. Arguments:\n\n```json\n{schema}\n```\n",
            text(tool, "name"),
            text(tool, "reach"),
            text(tool, "effect"),
            if tool["untrusted_output"] == true { ", untrusted output" } else { "" },
        )
        .expect("a string takes all");
    }
    page
}

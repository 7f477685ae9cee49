//! The book describes the configuration as it is: its reference has every key, and every example in it loads.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use hob_testkit::repository::{pages, root};

use crate::config::Config;
use crate::env::VARIABLES;
use crate::listing::{ListedSection, list};
use crate::read::{Source, read};

/// What the variables of the environment are for, in the order of the page.
const EXPLAINED: &[(&str, &str)] = &[
    ("HOB_HOME", "Directory for Hob's files: configuration, models, databases. The default is `~/.hob`."),
    ("HOB_CONFIG", "Path of the configuration file. The default is `config.toml` in that directory."),
    ("HOB_API_KEY", "API key that clients must send; overrides `[server] api_key`."),
    ("OPENAI_API_KEY", "API key for OpenAI, or for the service in `[engine.cloud] openai_host`."),
    ("ANTHROPIC_API_KEY", "API key for Anthropic."),
    ("GEMINI_API_KEY", "API key for Google."),
    ("GOOGLE_API_KEY", "The same; used if `GEMINI_API_KEY` is not set."),
    ("HOB_MAIL_PASSWORD", "Password of the e-mail account; overrides `[mail] password`."),
    ("HF_ENDPOINT", "Model hub to download models from, such as a mirror."),
    ("HF_TOKEN", "Token for models with restricted access on the hub."),
    ("HOB_BACKENDS", "Another directory with libraries for graphics cards, as an absolute path."),
    ("HOB_DATABASE_URL", "URL of a PostgreSQL database; overrides `[database] url`."),
    ("HOB_TELEGRAM_TOKEN", "Token of the Telegram bot; overrides `[channel.telegram] token`."),
    ("PGPASSFILE", "Password file of PostgreSQL's clients. The default is `~/.pgpass`."),
    ("HOME", "Home directory, for `~/.hob` and other paths with `~`."),
];

/// Regenerate with `HOB_WRITE_DOCS=1 cargo nextest run -p hob-config the_page_of_settings`.
#[test]
fn the_page_of_settings_has_every_key() {
    let page = page(&list(&Config::default()));
    let path = root().join("docs/configuration.md");
    if std::env::var_os("HOB_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("docs/configuration.md can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/configuration.md is out of date. Run: HOB_WRITE_DOCS=1 cargo nextest run -p hob-config the_page_of_settings"
    );
}

#[test]
fn every_variable_is_explained() {
    let explained: BTreeSet<&str> = EXPLAINED.iter().map(|(name, _)| *name).collect();
    assert_eq!(explained, BTreeSet::from(VARIABLES));
}

fn page(sections: &[ListedSection]) -> String {
    let mut page = "# Configuration\n\n\
        <!-- Made from the code. To renew it: HOB_WRITE_DOCS=1 cargo nextest run -p hob-config the_page_of_settings -->\n\n\
        All settings are in `~/.hob/config.toml`. `hob init` writes this file with a description of every key. All settings are optional.\n\
        Command-line flags override the file, and the file overrides the defaults shown here. An invalid value is an error\n\
        that names the line and the expected value. An unknown key is a warning that suggests the most similar known key;\n\
        in `[server]` it is an error, and `hob serve` does not start.\n\n"
        .to_owned();
    for section in sections {
        let depth = section.name.matches('.').count();
        writeln!(page, "{} [{}]\n\n{}\n", "#".repeat(2 + depth), section.name, section.about)
            .expect("a string takes all");
        if section.keys.is_empty() {
            continue;
        }
        page += "| Key | Default | Description |\n| --- | --- | --- |\n";
        for key in &section.keys {
            let (value, about, expected) = (cell(&key.value), cell(key.about), cell(key.expected));
            writeln!(page, "| `{}` | `{value}` | {about} Takes {expected}. |", key.name)
                .expect("a string takes all");
        }
        page.push('\n');
    }
    page += "## Environment\n\n| Variable | Description |\n| --- | --- |\n";
    for (name, about) in EXPLAINED {
        writeln!(page, "| `{name}` | {about} |").expect("a string takes all");
    }
    page + "| `HOB_LOG` | Log filter for stderr, such as `hob=debug` or `hob_engines=trace`; overrides `-v`. |\n"
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn every_example_of_settings_loads_without_a_warning() {
    let mut files = vec![root().join("README.md")];
    files.extend(pages());
    let mut examples = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("text");
        let mut lines = text.lines();
        while lines.by_ref().any(|line| line == "```toml") {
            let example: String =
                lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect();
            let source = Source { file: "config.toml", text: &example, home: Some(Path::new("/home/ann")) };
            match read(source) {
                Ok((_, warnings)) => assert_eq!(warnings, [], "{}:\n{example}", file.display()),
                Err(error) => panic!("{}: {error}\n{example}", file.display()),
            }
            examples += 1;
        }
    }
    assert!(examples > 0, "the book has examples");
}

//! The commented configuration file that `init` writes.

use crate::config::Config;
use crate::engine_name::EngineName;
use crate::hardware::Hardware;
use crate::listing::list;

const INTRODUCTION: &str = "\
# Hob's configuration. Command-line flags override this file.
#
# Lines like '#port = 8000' show the default. Remove the '#' to set your own value.
";

/// The text of a configuration file that recommends `engine`, with every key explained. `hardware` is what was found on the
/// machine, if the file is for a certain one.
pub fn template(engine: EngineName, hardware: Option<&Hardware>) -> String {
    let mut config = Config::default();
    config.engine.default = Some(engine);
    config.engine.recommended = Some(engine);
    let machine = hardware.map(|hardware| {
        let found: String = hardware.to_string().lines().map(|line| format!("#   {line}\n")).collect();
        format!("#\n# Written for this machine:\n{found}")
    });
    format!("{INTRODUCTION}{}{}", machine.unwrap_or_default(), render(&config))
}

/// Every section and key. What is at its default is commented out, so that a better default reaches the user later.
fn render(config: &Config) -> String {
    let mut text = String::new();
    for (section, default) in list(config).iter().zip(&list(&Config::default())) {
        text += &format!("\n\n# {}\n[{}]\n", section.about, section.name);
        for (key, default) in section.keys.iter().zip(&default.keys) {
            let mark = if key.value == default.value { "#" } else { "" };
            text += &format!("\n# {}\n{mark}{} = {}\n", key.about, key.name, key.value);
        }
    }
    text
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;

//! `hob man`: writes the manual pages, for packagers.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Args, ManArgs};

pub fn run(args: &ManArgs) -> Result<ExitCode> {
    let directory = &args.directory;
    let mut hob = Args::command().disable_help_subcommand(true);
    hob.build();
    std::fs::create_dir_all(directory)
        .and_then(|()| write_pages(&hob, directory))
        .with_context(|| format!("cannot write the manual pages into {}", directory.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// A page for the command, and one for each command inside it.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_pages(inner, directory)?;
    }
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    std::fs::write(directory.join(man.get_filename()), with_examples(&String::from_utf8_lossy(&page)))
}

/// The text below the options is a list of examples. The generator treats it as prose and would join the lines.
fn with_examples(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut among_examples = false;
    for line in page.lines() {
        if among_examples && line.starts_with(".SH ") {
            text += ".fi\n";
            among_examples = false;
        }
        match line {
            ".SH EXTRA" => {
                text += ".SH EXAMPLES\n.nf\n";
                among_examples = true;
            }
            "Examples:" if among_examples => {}
            line => {
                text += line;
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines() {
        let page =
            ".SH OPTIONS\nExamples:\n.SH EXTRA\nExamples:\n  hob a    one\n  hob b    two\n.SH VERSION\nv1\n";
        let expected = ".SH OPTIONS\nExamples:\n.SH EXAMPLES\n.nf\n  hob a    one\n  hob b    two\n.fi\n.SH VERSION\nv1\n";
        assert_eq!(with_examples(page), expected);
    }
}

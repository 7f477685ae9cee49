//! The colours.

use anstyle::{AnsiColor, Style};
use clap::builder::Styles;

pub const GOOD: Style = AnsiColor::Green.on_default().bold();
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();
pub const BAD: Style = AnsiColor::Red.on_default().bold();
pub const NAME: Style = AnsiColor::Cyan.on_default();
pub const STRONG: Style = Style::new().bold();
pub const DIM: Style = Style::new().dimmed();

/// Of the help texts.
pub const HELP: Styles = Styles::styled()
    .header(STRONG)
    .usage(STRONG)
    .literal(NAME)
    .placeholder(DIM)
    .valid(GOOD)
    .invalid(WARNING)
    .error(BAD);

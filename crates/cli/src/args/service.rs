//! Arguments of `hob service`.

use clap::{Parser, Subcommand};

#[derive(Debug, Subcommand)]
pub enum ServiceCommand {
    Install(ServiceInstallArgs),
    /// Stop the service and remove its file; Hob's data stays
    #[command(after_help = examples! {
        "hob service uninstall"
        "sudo hob service uninstall --system"
    })]
    Uninstall(ServiceScopeArgs),
    /// Show whether the service runs
    ///
    /// The exit code is 0 if the service runs, and 1 if not.
    #[command(after_help = examples! {
        "hob service status"
    })]
    Status(ServiceScopeArgs),
    /// Start the service
    #[command(after_help = examples! {
        "hob service start"
    })]
    Start(ServiceScopeArgs),
    /// Stop the service until the next login or start
    #[command(after_help = examples! {
        "hob service stop"
    })]
    Stop(ServiceScopeArgs),
}

/// Install and start the service
///
/// Writes a systemd unit, or a launchd agent on macOS, and starts it. The service runs 'hob serve' with the configuration of this user
/// whenever the user logs in. It listens on 127.0.0.1, for this machine only, unless the configuration has [server] host or you pass
/// --lan. You can repeat the command: it changes only what differs.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob service install                   start Hob whenever you log in"
    "hob service install --lan             the same, and let other machines of your network in"
    "hob service install --print           show the file, and write nothing"
    "sudo hob service install --system     start Hob with the machine, as a user of its own"
})]
pub struct ServiceInstallArgs {
    #[command(flatten)]
    pub scope: ServiceScopeArgs,

    /// Listen on all addresses of this machine, so that your network can use the server
    #[arg(long)]
    pub lan: bool,

    /// Print the file without writing it
    #[arg(long)]
    pub print: bool,
}

#[derive(Debug, Clone, Copy, Parser)]
pub struct ServiceScopeArgs {
    /// The service of the machine instead of this user's; requires root and systemd
    #[arg(long)]
    pub system: bool,
}

//! `hob channel` as it is typed.

use clap::{Parser, Subcommand};

#[derive(Debug, Subcommand)]
pub enum ChannelCommand {
    /// List the channels of the gateway
    List {
        /// WebSocket address of the gateway [default: as configured]
        #[arg(long, value_name = "URL")]
        gateway: Option<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    Send(ChannelSendArgs),
    /// Show whether the gateway answers
    ///
    /// Ends with 0 when it does, and with 1 when not.
    Status {
        /// WebSocket address of the gateway [default: as configured]
        #[arg(long, value_name = "URL")]
        gateway: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Link an account, by a code that is scanned with the phone
    ///
    /// Installs what speaks WhatsApp into Hob's directory when it is not there yet; that needs Node.js with npm.
    Login {
        /// The channel
        #[arg(value_parser = ["whatsapp"])]
        channel: String,
    },
}

/// Send a message
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob channel send telegram 'Dinner is ready.'"
    "hob channel send telegram:12345 'Dinner is ready.'      a gateway that wants to know to whom"
    "hob channel send 4915112345678@s.whatsapp.net 'Dinner is ready.'"
})]
pub struct ChannelSendArgs {
    /// A channel, as 'hob channel list' names it, or an address on WhatsApp
    pub target: String,

    /// What to say
    pub message: String,

    /// Thread to say it in
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,

    /// WebSocket address of the gateway [default: as configured]
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

//! Arguments of `hob channel`.

use clap::{Parser, Subcommand};

#[derive(Debug, Subcommand)]
pub enum ChannelCommand {
    /// List the channels of the gateway
    #[command(after_help = examples! {
        "hob channel list"
        "hob channel list --gateway ws://127.0.0.1:18789/ws"
    })]
    List {
        /// WebSocket URL of the gateway [default: as configured]
        #[arg(long, value_name = "URL")]
        gateway: Option<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    Send(ChannelSendArgs),
    /// Check whether the gateway answers
    ///
    /// The exit code is 0 if the gateway answers, and 1 if not.
    #[command(after_help = examples! {
        "hob channel status"
        "hob channel status --json"
    })]
    Status {
        /// WebSocket URL of the gateway [default: as configured]
        #[arg(long, value_name = "URL")]
        gateway: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Link an account by scanning a QR code
    ///
    /// Installs the WhatsApp bridge into Hob's directory if it is missing, which requires Node.js and npm.
    #[command(after_help = examples! {
        "hob channel login whatsapp"
    })]
    Login {
        /// Channel to log in to
        #[arg(value_parser = ["whatsapp"])]
        channel: String,
    },
}

/// Send a message
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob channel send telegram 'Dinner is ready.'"
    "hob channel send telegram:12345 'Dinner is ready.'      with a recipient, if the gateway needs one"
    "hob channel send 4915112345678@s.whatsapp.net 'Dinner is ready.'"
})]
pub struct ChannelSendArgs {
    /// Channel name from 'hob channel list', or a WhatsApp address
    pub target: String,

    /// Text to send
    pub message: String,

    /// Thread to send the message to
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,

    /// WebSocket URL of the gateway [default: as configured]
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

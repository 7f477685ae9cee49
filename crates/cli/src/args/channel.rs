//! Arguments of `hob channel`.

use clap::{Parser, Subcommand};

#[derive(Debug, Subcommand)]
pub enum ChannelCommand {
    Add(ChannelAddArgs),
    /// Approve a sender by the code that the sender got
    ///
    /// A person who writes to Hob for the first time gets a code, which is valid for an hour.
    #[command(after_help = examples! {
        "hob channel approve ABCD-EFGH"
    })]
    Approve {
        /// Code that the sender got
        code: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// List the approved senders, and those who wait for an approval
    #[command(after_help = examples! {
        "hob channel senders"
        "hob channel senders --json"
    })]
    Senders {
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Withdraw the approval of a sender
    #[command(after_help = examples! {
        "hob channel remove-sender telegram:12345"
    })]
    RemoveSender {
        /// Sender from 'hob channel senders'
        #[arg(value_name = "CHANNEL:SENDER")]
        sender: String,
    },
    Send(ChannelSendArgs),
    /// List the channels to send to: Telegram, e-mail, and those of the gateway
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
    /// Check whether the gateway answers, or without one Telegram and the mail servers
    ///
    /// The exit code is 0 if all of them answer, and 1 if not.
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
    /// Link a WhatsApp account by scanning a QR code
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

/// Connect Telegram or a mail account
///
/// Telegram: asks for the token of a bot, checks it, writes it into config.toml, and waits for a message from your account, which is
/// then approved. E-mail: asks for the address, the servers and the password, logs in to both servers, and writes the account into
/// config.toml. Hob then answers e-mails, and each new sender gets a pairing code. With --read-only, agents can read the mailbox, and
/// nothing is sent. A token or a password on standard input is read without a question.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob channel add telegram"
    "hob channel add telegram --no-wait < token.txt"
    "hob channel add email --read-only     let agents read your mailbox"
    "hob channel add email                 write to Hob by e-mail, with an account of its own"
    "hob channel add email --yes --address hob@example.org --imap-host imap.example.org --smtp-host smtp.example.org < password.txt"
})]
pub struct ChannelAddArgs {
    /// Channel to add
    #[arg(value_parser = ["telegram", "email"])]
    pub channel: String,

    /// Telegram: do not wait for a message from your account
    #[arg(long)]
    pub no_wait: bool,

    /// E-mail: address of the account
    #[arg(long)]
    pub address: Option<String>,

    /// E-mail: IMAP server, which has the mailbox [default: imap. and the domain of the address]
    #[arg(long, value_name = "HOST")]
    pub imap_host: Option<String>,

    /// E-mail: SMTP server, which sends [default: smtp. and the domain of the address]
    #[arg(long, value_name = "HOST")]
    pub smtp_host: Option<String>,

    /// E-mail: let agents read the mailbox, and do not turn the channel on
    #[arg(long, conflicts_with_all = ["smtp_host", "yes"])]
    pub read_only: bool,

    /// E-mail: turn the channel on without a question
    #[arg(short, long)]
    pub yes: bool,
}

/// Send a message
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob channel send telegram:12345 'Dinner is ready.'      to a person or a group from 'hob channel senders'"
    "hob channel send email:ann@example.org 'Dinner is ready.'"
    "hob channel send 4915112345678@s.whatsapp.net 'Dinner is ready.'"
    "hob channel send slack 'Dinner is ready.'               to a channel of the gateway"
})]
pub struct ChannelSendArgs {
    /// telegram:NUMBER, email:ADDRESS, a WhatsApp address, or a channel from 'hob channel list'
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

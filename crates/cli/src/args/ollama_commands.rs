//! Commands with the names and the arguments that users of Ollama know. Hidden: each does what a command of Hob does.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum OllamaCommand {
    /// Chat with a model, or ask it one question: 'hob chat -m MODEL', 'hob ask -m MODEL PROMPT'
    #[command(hide = true)]
    Run {
        /// Model to use; without one, a chat with the default model begins
        model: Option<String>,
        /// Question to ask; without one, a chat begins
        prompt: Vec<String>,
    },
    /// List the models in memory
    #[command(hide = true)]
    Ps {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// List all models: 'hob model list'
    #[command(hide = true, visible_alias = "ls")]
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Download a model: 'hob model pull MODEL'
    #[command(hide = true)]
    Pull {
        model: String,
        /// Do not use the network
        #[arg(long)]
        offline: bool,
    },
    /// Show the details of a model: 'hob model info MODEL'
    #[command(hide = true)]
    Show {
        model: String,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Remove a model from memory
    #[command(hide = true)]
    Stop { model: Option<String> },
    /// Delete a model: 'hob model rm MODEL'
    #[command(hide = true)]
    Rm { model: String },
}

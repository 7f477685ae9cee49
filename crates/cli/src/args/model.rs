//! Arguments of `hob model`.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models of all running engines
    #[command(after_help = examples! {
        "hob model list"
        "hob model list --json | jq -r '.[].model'"
    })]
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show the details of a model
    #[command(after_help = examples! {
        "hob model info qwen3:8b"
    })]
    Info {
        /// Model name from 'hob model list'
        model: String,
        /// Print a JSON array, one element for each engine that has the model
        #[arg(long)]
        json: bool,
    },
    /// Download a model
    ///
    /// Hob itself downloads names of its built-in list, hf:OWNER/REPO and .gguf files, and runs them with the embedded
    /// engine. Ollama pulls all other names, and must be running.
    #[command(after_help = examples! {
        "hob model pull smollm2-135m-instruct            a small model to start with"
        "hob model pull hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M"
        "hob model pull ~/Downloads/model.gguf"
        "hob model pull qwen3:0.6b                       with Ollama"
        ""
        "An interrupted download resumes when you run the command again."
    })]
    Pull {
        /// Model to download
        model: String,
        /// Do not use the network
        #[arg(long)]
        offline: bool,
    },
    /// Choose the default model
    ///
    /// The default model answers requests that name no model. The command writes the setting intelligence.default_model to
    /// the configuration file. 'auto' lets Hob choose a model for each question.
    #[command(after_help = examples! {
        "hob model use smollm2-135m-instruct"
        "hob model use auto"
    })]
    Use {
        /// Model name from 'hob model list', or 'auto'
        model: String,
    },
    /// Delete a model of the embedded engine from disk
    #[command(after_help = examples! {
        "hob model rm smollm2-135m-instruct"
    })]
    Rm {
        /// Model name from 'hob model list'
        model: String,
    },
    /// Find the weight format that runs a model fastest on this machine
    #[command(after_help = examples! {
        "hob model tune smollm2-135m-instruct"
    })]
    Tune {
        /// Model of the embedded engine
        model: String,
        /// Keep the requantised weights even if they are not faster; they are smaller
        #[arg(long)]
        always: bool,
    },
}

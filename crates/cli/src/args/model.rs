//! `hob model` as it is typed.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models of all running engines
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show what is known of a model
    Info {
        /// The model, as 'hob model list' names it
        model: String,
        /// Print a JSON array, one element for each engine that has the model
        #[arg(long)]
        json: bool,
    },
    /// Download a model
    ///
    /// A name of the built-in list, hf:owner/repo and a .gguf file are kept by Hob itself and answered by its embedded
    /// engine. Every other name is Ollama's, which has to run.
    #[command(after_help = examples! {
        "hob model pull smollm2-135m-instruct            the small one to start with"
        "hob model pull hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M"
        "hob model pull ~/Downloads/model.gguf"
        "hob model pull qwen3:0.6b                       with Ollama"
        ""
        "  A download that was stopped goes on where it was when it is started again."
    })]
    Pull {
        /// The model
        model: String,
        /// Use nothing but what is on this machine
        #[arg(long)]
        offline: bool,
    },
    /// Choose the model that answers when a request names none
    ///
    /// Writes the setting intelligence.default_model into the configuration file. 'auto' lets Hob choose a model for each question.
    #[command(after_help = examples! {
        "hob model use smollm2-135m-instruct"
        "hob model use auto"
    })]
    Use {
        /// The model, as 'hob model list' names it, or 'auto'
        model: String,
    },
    /// Remove a model of the embedded engine from the disk
    Rm {
        /// The model, as 'hob model list' names it
        model: String,
    },
    /// Find the form of a model's weights that this machine runs fastest
    Tune {
        /// A model of the embedded engine
        model: String,
        /// Keep the requantised form even where it is no faster; it is smaller
        #[arg(long)]
        always: bool,
    },
}

//! Arguments of `hob model`.

use clap::Subcommand;

/// The most results of a search.
const MAX_RESULTS: usize = 100;

fn results(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=MAX_RESULTS).contains(&count) => Ok(count),
        _ => Err(format!("expected a whole number from 1 to {MAX_RESULTS}")),
    }
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models of all running engines
    #[command(after_help = examples! {
        "hob model list"
        "hob model list --available            models to download, and which of them fit this machine"
        "hob model list --json | jq -r '.[].model'"
    })]
    List {
        /// List the models that Hob downloads by name, with size, licence, memory and expected speed
        #[arg(long)]
        available: bool,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Search the model hub for models that Hob can download
    ///
    /// Shows matches of the built-in list first, then repositories with GGUF files, the most downloaded first.
    #[command(after_help = examples! {
        "hob model search qwen3 coder"
        "hob model search -n 5 mistral"
        "hob model pull hf:OWNER/REPO          download a result"
    })]
    Search {
        /// Words to search for
        #[arg(required = true)]
        words: Vec<String>,
        /// Number of results from the hub
        #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = results)]
        limit: usize,
        /// Search the built-in list only
        #[arg(long)]
        offline: bool,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show the details of a model
    #[command(after_help = examples! {
        "hob model info qwen3:8b"
    })]
    Info {
        /// Model name from 'hob model list' or 'hob model list --available'
        model: String,
        /// Print a JSON array, one element for each engine that has the model
        #[arg(long)]
        json: bool,
    },
    /// Download a model
    ///
    /// Hob itself downloads names of its built-in list ('hob model list --available'), hf:OWNER/REPO (also as
    /// https://huggingface.co/OWNER/REPO) and .gguf files, and runs them with the embedded engine. If Ollama is running, it pulls short names such as qwen3:8b, and all other names.
    #[command(after_help = examples! {
        "hob model pull qwen3:8b                         with Ollama if it is running"
        "hob model pull qwen3-8b                         the same model, always by Hob itself"
        "hob model pull hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M"
        "hob model pull ~/Downloads/model.gguf"
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
    /// the configuration file, and running servers of this home use it at once. 'auto' lets Hob choose a model for each question.
    #[command(after_help = examples! {
        "hob model use smollm2-135m-instruct"
        "hob model use auto"
    })]
    Use {
        /// Model name from 'hob model list' or 'hob model list --available', or 'auto'
        model: String,
    },
    /// Delete a model of the embedded engine from disk
    #[command(after_help = examples! {
        "hob model rm smollm2-135m-instruct"
    })]
    Rm {
        /// Model name from 'hob model list'
        model: String,
        /// Do not ask for confirmation, which the default model needs
        #[arg(short, long)]
        yes: bool,
    },
    /// Find the weight format that runs a model fastest on this machine
    #[command(after_help = examples! {
        "hob model tune smollm2-135m-instruct"
    })]
    Tune {
        /// Model of the embedded engine
        model: String,
        /// Save the converted model even if it is not much faster; it is smaller
        #[arg(long)]
        always: bool,
    },
}

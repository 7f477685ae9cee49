//! Prints `config.example.toml`: the file `hob init` would write, for no machine in particular.

use hob_config::{EngineKey, template};

fn main() {
    print!("{}", template(EngineKey::Llamacpp, None));
}

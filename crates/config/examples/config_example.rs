//! Prints `config.example.toml`: the file `hob init` would write, for no machine in particular.

use hob_config::{EngineName, template};

fn main() {
    print!("{}", template(EngineName::Llamacpp, None));
}

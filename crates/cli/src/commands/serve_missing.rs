//! `hob serve` in a build without the server.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::args::ServeArgs;

pub fn run(_: ServeArgs) -> Result<ExitCode> {
    bail!(
        "this build of hob has no server. Install one that has it, from a checkout of Hob:\n\
         cargo install --path crates/cli --features server"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_the_server_says_how_to_get_it() {
        let args = ServeArgs {
            host: None,
            port: None,
            lan: false,
            engine: None,
            model: None,
            agent: None,
            offline: false,
        };
        let error = run(args).expect_err("there is no server");
        insta::assert_snapshot!(error, @r"
        this build of hob has no server. Install one that has it, from a checkout of Hob:
        cargo install --path crates/cli --features server
        ");
    }
}

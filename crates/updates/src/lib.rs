//! How this Hob was installed, what the newest release is, and the commands that update this kind of installation. Downloads and changes
//! no program. Knows nothing of `config.toml` or of the terminal.

mod address;
mod error;
mod fetch;
mod installation;
mod release;
mod steps;
mod version;

pub use address::ReleaseAddress;
pub use error::UpdateError;
pub use fetch::latest_release;
pub use installation::{InstallMethod, Installation};
pub use release::LatestRelease;
pub use steps::{UNKNOWN_ADDRESS, update_steps};
pub use version::ReleaseVersion;

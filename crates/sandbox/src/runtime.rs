//! Chooses the runtime.

use std::path::Path;

use crate::bwrap::Bwrap;
use crate::checked_job::CheckedJob;
use crate::container::Container;
use crate::error::SandboxError;
use crate::job::JobResult;
use crate::options::{Runtime, SandboxOptions};

#[derive(Debug)]
pub enum Runner {
    Bwrap(Bwrap),
    Container(Container),
}

impl Runner {
    /// The runtime that the options name, if it works.
    pub async fn find(options: &SandboxOptions) -> Result<Self, SandboxError> {
        let bwrap = async |program: &Path| Bwrap::find(program, options.limits).await.map(Runner::Bwrap);
        let container = async |program: &Path| {
            Container::find(program, &options.image, options.limits).await.map(Runner::Container)
        };
        match &options.runtime {
            Runtime::Docker => container(Path::new("docker")).await,
            Runtime::Podman => container(Path::new("podman")).await,
            Runtime::Bwrap => bwrap(Path::new("bwrap")).await,
            Runtime::Path(path) if is_bwrap(path) => bwrap(path).await,
            Runtime::Path(path) => container(path).await,
            Runtime::Auto => {
                let mut tried = Vec::new();
                for name in ["docker", "podman"] {
                    match container(Path::new(name)).await {
                        Ok(runner) => return Ok(runner),
                        Err(error) => tried.push(error.to_string()),
                    }
                }
                bwrap(Path::new("bwrap")).await.map_err(|error| {
                    tried.push(error.to_string());
                    SandboxError::NoRuntime { image: options.image.clone(), tried: tried.join("; ") }
                })
            }
        }
    }

    pub async fn run(&self, run: CheckedJob<'_>) -> Result<JobResult, SandboxError> {
        match self {
            Runner::Bwrap(bwrap) => bwrap.run(run).await,
            Runner::Container(container) => container.run(run).await,
        }
    }

    pub fn describe(&self) -> String {
        match self {
            Runner::Bwrap(bwrap) => bwrap.program().display().to_string(),
            Runner::Container(container) => {
                format!("{} with {}", container.program().display(), container.image())
            }
        }
    }
}

fn is_bwrap(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains("bwrap"))
}

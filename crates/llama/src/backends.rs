//! llama.cpp's global state: what it computes with, once per process and never freed.
//!
//! A usual build contains the backend of the processor. A build with `dynamic-backends` has its backends in libraries and loads them when
//! it starts: the variant for this processor, and those of graphics cards that are there. They lie beside the program, in `../lib/hob`,
//! or in a directory of the user's choice; the current directory does not matter.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use hob_core::EngineError;
use llama_cpp_2::llama_backend::LlamaBackend;

use crate::error::unusable;
use crate::log;
use crate::media;

/// The directory of the user's choice.
static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

static STARTED: OnceLock<Result<Started, String>> = OnceLock::new();

struct Started {
    backend: LlamaBackend,
    /// Why libraries that are there cannot be used.
    problems: Vec<String>,
}

/// Also looks for libraries in this directory. Has no effect after the start.
pub(crate) fn look_in(directory: &Path) {
    CHOSEN.get_or_init(|| directory.to_owned());
}

/// Starts llama.cpp with the first call. May take a second if there is a graphics card.
pub(crate) fn backend() -> Result<&'static LlamaBackend, EngineError> {
    let started = STARTED.get_or_init(|| {
        log::capture();
        media::start();
        let problems = libraries::load()?;
        let backend = LlamaBackend::init().map_err(|error| error.to_string())?;
        Ok(Started { backend, problems })
    });
    match started {
        Ok(started) => Ok(&started.backend),
        Err(reason) => Err(unusable(format!("cannot start llama.cpp: {reason}"))),
    }
}

pub(crate) fn is_started() -> bool {
    matches!(STARTED.get(), Some(Ok(_)))
}

/// Why libraries of backends that are there cannot be used.
pub(crate) fn problems() -> &'static [String] {
    match STARTED.get() {
        Some(Ok(started)) => &started.problems,
        Some(Err(_)) | None => &[],
    }
}

#[cfg(not(feature = "dynamic-backends"))]
mod libraries {
    /// The backends are part of the program.
    pub(super) fn load() -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}

#[cfg(feature = "dynamic-backends")]
#[expect(
    unsafe_code,
    reason = "the bindings load all backends of a directory only, and drop the reasons of failures"
)]
mod libraries {
    use std::ffi::CString;
    use std::path::{Path, PathBuf};

    use llama_cpp_2::llama_backend::load_backends_from_path;
    use llama_cpp_sys_2 as sys;

    use super::CHOSEN;
    use crate::log;

    /// The libraries of graphics cards. NVIDIA's comes first: the same card may also be found by Vulkan's.
    const CARDS: [&str; 5] =
        ["libggml-cuda.so", "libggml-hip.so", "libggml-sycl.so", "libggml-musa.so", "libggml-vulkan.so"];

    const PROCESSOR: &str = "libggml-cpu";

    /// Loads the libraries, and returns why some cannot be used.
    pub(super) fn load() -> Result<Vec<String>, String> {
        let directories = directories()?;
        let mut problems = Vec::new();
        for name in CARDS {
            let Some(path) = directories.iter().map(|place| place.join(name)).find(|path| path.is_file())
            else {
                continue;
            };
            if let Err(reason) = load_one(&path) {
                tracing::warn!(
                    library = %path.display(),
                    reason,
                    "the library of a graphics card cannot be used. Update the driver of the card; 'hob \
                     doctor' shows the cards"
                );
                problems.push(format!("{}: {reason}", path.display()));
            }
        }
        let processor = directories.iter().find(|place| has_processor(place));
        let places =
            || directories.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ");
        let directory = processor.ok_or_else(|| format!("no library {PROCESSOR}-*.so in {}", places()))?;
        load_backends_from_path(directory);
        // SAFETY: the registry is only read, and the calls above have made it.
        if unsafe { sys::ggml_backend_dev_by_type(sys::GGML_BACKEND_DEVICE_TYPE_CPU) }.is_null() {
            return Err(format!(
                "none of the libraries {PROCESSOR}-*.so in {} is for this processor",
                directory.display()
            ));
        }
        Ok(problems)
    }

    /// Absolute ones only.
    fn directories() -> Result<Vec<PathBuf>, String> {
        let program = std::env::current_exe()
            .map_err(|error| format!("the program does not know where it is: {error}"))?;
        let beside = program.parent().unwrap_or(Path::new("/"));
        let mut directories = vec![beside.to_owned()];
        directories.extend(beside.parent().map(|above| above.join("lib/hob")));
        directories.extend(CHOSEN.get().cloned());
        directories.retain(|directory| directory.is_absolute() && directory.to_str().is_some());
        Ok(directories)
    }

    fn has_processor(directory: &Path) -> bool {
        let Ok(entries) = std::fs::read_dir(directory) else { return false };
        let is_one = |name: &str| name.starts_with(PROCESSOR) && name.ends_with(".so");
        entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_one))
    }

    fn load_one(path: &Path) -> Result<(), String> {
        let text = path.to_str().and_then(|text| CString::new(text).ok()).ok_or("its path is no text")?;
        // SAFETY: the path is a zero-terminated string that outlives the call. Loading runs code of the library, which lies in a
        // directory of the program or of the user's choice.
        let (backend, said) = log::listen(|| unsafe { sys::ggml_backend_load(text.as_ptr()) });
        if backend.is_null() {
            return Err(said
                .errors
                .into_iter()
                .next()
                .unwrap_or_else(|| "it does not support this machine".to_owned()));
        }
        // SAFETY: the registry owns the backend, which is not null, for as long as the process runs.
        let devices = unsafe { sys::ggml_backend_reg_dev_count(backend) };
        if devices == 0 { Err("it finds no graphics card".to_owned()) } else { Ok(()) }
    }
}

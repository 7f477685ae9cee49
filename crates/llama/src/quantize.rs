//! Quantises a model.
#![expect(unsafe_code, reason = "llama.cpp's quantiser is a C function that no safe wrapper offers")]

use std::ffi::CString;
use std::path::Path;

use llama_cpp_sys_2 as sys;

use crate::log;

/// Writes `from` to `to` with weights in Q4_0, which llama.cpp rearranges for the vector units of the machine.
pub(crate) fn to_q4_0(from: &Path, to: &Path, threads: i32) -> Result<(), String> {
    let c_path = |path: &Path| {
        let text = path.to_str().ok_or_else(|| format!("{} is not text", path.display()))?;
        CString::new(text).map_err(|error| error.to_string())
    };
    let (from, to) = (c_path(from)?, c_path(to)?);
    let (status, said) = log::listen(|| {
        // SAFETY: both strings are zero-terminated and outlive the call, the parameters are llama.cpp's own defaults with plain
        // fields changed, and the function catches its C++ exceptions and reports them as a status.
        unsafe {
            let mut params = sys::llama_model_quantize_default_params();
            params.nthread = threads;
            params.ftype = sys::LLAMA_FTYPE_MOSTLY_Q4_0;
            params.allow_requantize = true;
            sys::llama_model_quantize(from.as_ptr(), to.as_ptr(), &raw const params)
        }
    });
    match status {
        0 => Ok(()),
        _ => Err(said.errors.into_iter().next().unwrap_or_else(|| "llama.cpp gives no reason".to_owned())),
    }
}

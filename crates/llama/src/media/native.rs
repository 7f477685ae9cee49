//! The functions of `native/media/shim.h`, made safe. Knows nothing of requests.
#![expect(unsafe_code, reason = "the media library is C++")]

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_sys_2 as sys;

use crate::log;

#[repr(C)]
struct RawProjector {
    _private: [u8; 0],
}

#[repr(C)]
struct RawMedia {
    _private: [u8; 0],
}

#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct RawInfo {
    sees: bool,
    hears: bool,
    reads_pictures_whole: bool,
    width: usize,
}

#[repr(C)]
struct RawChunk {
    tokens: *const i32,
    length: usize,
    positions: usize,
    is_read_whole: bool,
}

impl Default for RawChunk {
    fn default() -> Self {
        RawChunk { tokens: ptr::null(), length: 0, positions: 0, is_read_whole: false }
    }
}

#[repr(C)]
struct RawLimit {
    milliseconds: u64,
    is_cancelled: *const AtomicBool,
}

unsafe extern "C" {
    fn hob_media_start(log: sys::ggml_log_callback);
    fn hob_media_text_free(text: *mut c_char);
    fn hob_projector_new(
        path: *const c_char,
        model: *const sys::llama_model,
        threads: i32,
        use_gpu: bool,
        made: *mut *mut RawProjector,
        info: *mut RawInfo,
        error: *mut *mut c_char,
    ) -> bool;
    fn hob_projector_free(projector: *mut RawProjector);
    fn hob_media_picture(
        projector: *const RawProjector,
        width: u32,
        height: u32,
        pixels: *const u8,
        made: *mut *mut RawMedia,
        error: *mut *mut c_char,
    ) -> bool;
    fn hob_media_sound(
        projector: *const RawProjector,
        file: *const u8,
        file_size: usize,
        max_seconds: u32,
        made: *mut *mut RawMedia,
        error: *mut *mut c_char,
    ) -> bool;
    fn hob_media_free(media: *mut RawMedia);
    fn hob_media_length(media: *const RawMedia) -> usize;
    fn hob_media_get(
        projector: *const RawProjector,
        media: *const RawMedia,
        at: usize,
        found: *mut RawChunk,
        error: *mut *mut c_char,
    ) -> bool;
    fn hob_media_encode(
        projector: *mut RawProjector,
        media: *const RawMedia,
        at: usize,
        limit: *const RawLimit,
        vectors: *mut f32,
        size: usize,
        error: *mut *mut c_char,
    ) -> bool;
    fn hob_media_forget_pixels(media: *mut RawMedia, error: *mut *mut c_char) -> bool;
    fn hob_media_read(
        projector: *const RawProjector,
        media: *const RawMedia,
        at: usize,
        vectors: *const f32,
        context: *mut sys::llama_context,
        sequence: i32,
        position: i32,
        first: usize,
        count: usize,
        error: *mut *mut c_char,
    ) -> bool;
}

/// Why a call failed, in the words of the library. Freed by this.
fn message(error: *mut c_char) -> String {
    if error.is_null() {
        return "not enough memory".to_owned();
    }
    // SAFETY: the shim sets a text that ends with a zero byte, and it is freed once, here.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().trim().to_owned();
        hob_media_text_free(error);
        text
    }
}

/// Sets up the media library, once per process. Comes after the log of llama.cpp is set.
pub(crate) fn start() {
    // SAFETY: the callback is a plain function that lives as long as the program.
    unsafe { hob_media_start(Some(log::on_log)) };
}

/// When an encoding ends early.
#[derive(Debug, Clone, Copy)]
pub(super) struct EncodeLimit<'a> {
    pub(super) time: Duration,
    pub(super) is_cancelled: &'a AtomicBool,
}

/// A loaded projector.
#[derive(Debug)]
pub(super) struct NativeProjector {
    raw: NonNull<RawProjector>,
    /// The numbers of a vector.
    pub(super) width: usize,
}

// SAFETY: a projector has no ties to a thread.
unsafe impl Send for NativeProjector {}
// SAFETY: what is shared is only read; encoding, which changes it, takes `&mut`-like care: see `encode`.
unsafe impl Sync for NativeProjector {}

impl NativeProjector {
    /// The model must outlive it.
    pub(super) fn load(path: &Path, model: &LlamaModel, threads: i32, use_gpu: bool) -> Result<Self, String> {
        let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
        let (mut made, mut info, mut error) = (ptr::null_mut(), RawInfo::default(), ptr::null_mut());
        // SAFETY: the path and the model live during the call, and the results are places to write to.
        let is_made = unsafe {
            hob_projector_new(
                path.as_ptr(),
                raw_model(model),
                threads,
                use_gpu,
                &raw mut made,
                &raw mut info,
                &raw mut error,
            )
        };
        match NonNull::new(made).filter(|_| is_made) {
            Some(raw) => {
                tracing::debug!(?info, "loaded a projector");
                Ok(NativeProjector { raw, width: info.width })
            }
            None => Err(message(error)),
        }
    }

    /// The chunks of a picture of red, green and blue bytes.
    pub(super) fn picture(&self, (width, height): (u32, u32), pixels: &[u8]) -> Result<NativeMedia, String> {
        if pixels.len() as u64 != u64::from(width) * u64::from(height) * 3 {
            return Err("it has not the size that it says".to_owned());
        }
        let (mut made, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the projector exists, and the pixels have the size that was just checked.
        let is_made = unsafe {
            hob_media_picture(
                self.raw.as_ptr(),
                width,
                height,
                pixels.as_ptr(),
                &raw mut made,
                &raw mut error,
            )
        };
        NonNull::new(made).filter(|_| is_made).map(NativeMedia).ok_or_else(|| message(error))
    }

    /// The chunks of a file of sound.
    pub(super) fn sound(&self, file: &[u8], max_seconds: u32) -> Result<NativeMedia, String> {
        let (mut made, mut error) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the projector exists, and the file lives during the call.
        let is_made = unsafe {
            hob_media_sound(
                self.raw.as_ptr(),
                file.as_ptr(),
                file.len(),
                max_seconds,
                &raw mut made,
                &raw mut error,
            )
        };
        NonNull::new(made).filter(|_| is_made).map(NativeMedia).ok_or_else(|| message(error))
    }

    /// What each chunk is.
    pub(super) fn chunks(&self, media: &NativeMedia) -> Result<Vec<ChunkShape>, String> {
        let chunk = |at| {
            let (mut found, mut error) = (RawChunk::default(), ptr::null_mut());
            // SAFETY: both exist, the number is below the length, and the results are places to write to.
            let is_found = unsafe {
                hob_media_get(self.raw.as_ptr(), media.0.as_ptr(), at, &raw mut found, &raw mut error)
            };
            if is_found { Ok(found) } else { Err(message(error)) }
        };
        // SAFETY: the media exist.
        let length = unsafe { hob_media_length(media.0.as_ptr()) };
        let shape = |raw: RawChunk| {
            if raw.tokens.is_null() {
                ChunkShape::Vectors {
                    length: raw.length,
                    positions: raw.positions,
                    is_read_whole: raw.is_read_whole,
                }
            } else {
                // SAFETY: the shim sets the length of its tokens, which live as long as the media.
                ChunkShape::Text(unsafe { std::slice::from_raw_parts(raw.tokens, raw.length) }.to_vec())
            }
        };
        (0..length).map(|at| chunk(at).map(shape)).collect()
    }

    /// The vectors of the chunk `at`, which has `length` of them. The caller lets one thread encode at a time.
    pub(super) fn encode(
        &self,
        media: &NativeMedia,
        (at, length): (usize, usize),
        limit: EncodeLimit<'_>,
    ) -> Result<Vec<f32>, String> {
        let mut vectors = vec![0.0; length * self.width];
        let mut error = ptr::null_mut();
        let limit = RawLimit {
            milliseconds: u64::try_from(limit.time.as_millis()).unwrap_or(u64::MAX),
            is_cancelled: limit.is_cancelled,
        };
        // SAFETY: both exist, the flag and the space for the vectors live during the call, and one thread is here at a time.
        let is_done = unsafe {
            hob_media_encode(
                self.raw.as_ptr(),
                media.0.as_ptr(),
                at,
                &raw const limit,
                vectors.as_mut_ptr(),
                vectors.len(),
                &raw mut error,
            )
        };
        if is_done { Ok(vectors) } else { Err(message(error)) }
    }

    /// Reads a part of the vectors of a chunk into the memory of a sequence.
    pub(super) fn read(
        &self,
        context: &mut LlamaContext<'_>,
        media: &NativeMedia,
        (at, vectors): (usize, &[f32]),
        part: &ReadPart,
    ) -> Result<(), String> {
        if (part.first + part.count) * self.width > vectors.len() {
            return Err("there are not so many vectors".to_owned());
        }
        let mut error = ptr::null_mut();
        let is_done = with_raw_context(context, |context| {
            // SAFETY: all exist, the vectors have the length that was just checked, and the context is borrowed for this call alone.
            unsafe {
                hob_media_read(
                    self.raw.as_ptr(),
                    media.0.as_ptr(),
                    at,
                    vectors.as_ptr(),
                    context,
                    part.sequence,
                    part.position,
                    part.first,
                    part.count,
                    &raw mut error,
                )
            }
        });
        match is_done {
            Some(true) => Ok(()),
            Some(false) => Err(message(error)),
            None => Err("the context of the model is unknown".to_owned()),
        }
    }
}

impl Drop for NativeProjector {
    fn drop(&mut self) {
        // SAFETY: made by the shim, and freed once.
        unsafe { hob_projector_free(self.raw.as_ptr()) };
    }
}

/// Vectors to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadPart {
    pub(crate) sequence: i32,
    /// Where the chunk begins.
    pub(crate) position: i32,
    /// The first vector of this part.
    pub(crate) first: usize,
    pub(crate) count: usize,
}

/// What a chunk of a picture or a sound is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChunkShape {
    /// Tokens around or between vectors.
    Text(Vec<i32>),
    Vectors {
        length: usize,
        /// How far the position advances.
        positions: usize,
        /// The model reads all at once.
        is_read_whole: bool,
    },
}

/// A picture or a sound in the form that a projector reads.
#[derive(Debug)]
pub(super) struct NativeMedia(NonNull<RawMedia>);

// SAFETY: media have no ties to a thread.
unsafe impl Send for NativeMedia {}
// SAFETY: they are only changed with `&mut`.
unsafe impl Sync for NativeMedia {}

impl NativeMedia {
    /// Drops the pixels, which are of no use once all chunks are encoded.
    pub(super) fn forget_pixels(&mut self) -> Result<(), String> {
        let mut error = ptr::null_mut();
        // SAFETY: the media exist and are borrowed alone.
        let is_done = unsafe { hob_media_forget_pixels(self.0.as_ptr(), &raw mut error) };
        if is_done { Ok(()) } else { Err(message(error)) }
    }
}

impl Drop for NativeMedia {
    fn drop(&mut self) {
        // SAFETY: made by the shim, and freed once.
        unsafe { hob_media_free(self.0.as_ptr()) };
    }
}

fn raw_model(model: &LlamaModel) -> *const sys::llama_model {
    // SAFETY: `LlamaModel` is a transparent wrapper of this pointer.
    unsafe { (&raw const *model).cast::<*const sys::llama_model>().read() }
}

/// Calls `work` with the pointer in a context. The pointer is valid during the call only: the context is borrowed for it, and nothing
/// returns the pointer. `None` if the pointer is not known.
fn with_raw_context<T>(
    context: &mut LlamaContext<'_>,
    work: impl FnOnce(*mut sys::llama_context) -> T,
) -> Option<T> {
    let address = context_address(&format!("{context:?}"))?;
    Some(work(ptr::with_exposed_provenance_mut(address)))
}

/// The address in the debug output of a context, which is the only place where the wrapper shows it. The version of the wrapper is
/// pinned, and any other output is refused.
fn context_address(shown: &str) -> Option<usize> {
    let digits = shown.strip_prefix("LlamaContext { context: 0x")?.strip_suffix(" }")?;
    let address = usize::from_str_radix(digits, 16).ok()?;
    (address != 0 && address.is_multiple_of(align_of::<usize>())).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_known_output_of_a_context_has_its_address() {
        assert_eq!(context_address("LlamaContext { context: 0x7f00ab10 }"), Some(0x7f00_ab10));
        for other in [
            "LlamaContext { context: 0x0 }",
            "LlamaContext { context: 0x7f00ab11 }",
            "LlamaContext { context: 0x7f00ab10, model: 0x7f00ab20 }",
            "LlamaContext { model: 0x7f00ab20, context: 0x7f00ab10 }",
            "LlamaContext { context: Ptr(0x7f00ab10) }",
            "LlamaContext { .. }",
        ] {
            assert_eq!(context_address(other), None, "{other}");
        }
    }
}

//! The functions of `native/chat/shim.h`, made safe. Knows nothing of what the texts mean.
#![expect(unsafe_code, reason = "the chat layer is C++")]

use std::ffi::{CString, c_char};
use std::ptr::{self, NonNull};

/// The limits of one call into the chat layer.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct CallLimits {
    /// Statements and expressions of a template, or rules of a parser.
    pub(super) steps: u64,
    pub(super) milliseconds: u64,
    /// Bytes of the texts and lists that a template makes.
    pub(super) bytes: usize,
    /// Bytes of the stack of the calling thread.
    pub(super) stack: usize,
}

#[repr(C)]
struct RawText {
    data: *mut c_char,
    size: usize,
}

#[repr(C)]
struct RawTemplate {
    _private: [u8; 0],
}

#[repr(C)]
struct RawFormat {
    _private: [u8; 0],
}

#[repr(C)]
struct RawParser {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn hob_chat_text_free(text: RawText);
    fn hob_chat_template_new(
        source: *const c_char,
        source_size: usize,
        bos: *const c_char,
        eos: *const c_char,
        limits: *const CallLimits,
        made: *mut *mut RawTemplate,
        info: *mut RawText,
        error: *mut RawText,
    ) -> bool;
    fn hob_chat_template_free(chat: *mut RawTemplate);
    fn hob_chat_template_apply(
        chat: *const RawTemplate,
        request: *const c_char,
        request_size: usize,
        limits: *const CallLimits,
        prompt: *mut RawText,
        details: *mut RawText,
        error: *mut RawText,
    ) -> bool;
    fn hob_chat_format_new(
        details: *const c_char,
        details_size: usize,
        made: *mut *mut RawFormat,
        error: *mut RawText,
    ) -> bool;
    fn hob_chat_format_free(format: *mut RawFormat);
    fn hob_chat_parser_new(format: *const RawFormat) -> *mut RawParser;
    fn hob_chat_parser_free(parser: *mut RawParser);
    fn hob_chat_parser_push(
        parser: *mut RawParser,
        text: *const c_char,
        text_size: usize,
        limits: *const CallLimits,
        deltas: *mut RawText,
        error: *mut RawText,
    ) -> bool;
    fn hob_chat_parser_add(
        parser: *mut RawParser,
        text: *const c_char,
        text_size: usize,
        is_reasoning: bool,
    ) -> bool;
    fn hob_chat_parser_finish(
        parser: *mut RawParser,
        complete: bool,
        limits: *const CallLimits,
        deltas: *mut RawText,
        error: *mut RawText,
    ) -> bool;
}

/// A text of the chat layer, which may be absent.
struct NativeText(RawText);

impl NativeText {
    fn none() -> Self {
        NativeText(RawText { data: ptr::null_mut(), size: 0 })
    }

    fn into_string(self) -> String {
        if self.0.data.is_null() {
            return String::new();
        }
        // SAFETY: the shim sets `data` to `size` bytes that live until they are freed.
        let bytes = unsafe { std::slice::from_raw_parts(self.0.data.cast::<u8>(), self.0.size) };
        String::from_utf8_lossy(bytes).into_owned()
    }
}

impl Drop for NativeText {
    fn drop(&mut self) {
        let text = RawText { data: self.0.data, size: self.0.size };
        // SAFETY: the text comes from the shim, or is null, and is freed once.
        unsafe { hob_chat_text_free(text) };
    }
}

/// A template that was read.
#[derive(Debug)]
pub(super) struct NativeTemplate(NonNull<RawTemplate>);

// SAFETY: a template is only read after it was made, except for the analysis that it keeps behind a mutex.
unsafe impl Send for NativeTemplate {}
// SAFETY: as above.
unsafe impl Sync for NativeTemplate {}

impl NativeTemplate {
    /// Reads a template. Also returns what it can, as JSON.
    pub(super) fn new(
        source: &str,
        bos: &str,
        eos: &str,
        limits: CallLimits,
    ) -> Result<(Self, String), String> {
        let [bos, eos] = [bos, eos].map(|text| CString::new(text.replace('\0', "")).unwrap_or_default());
        let mut made = ptr::null_mut();
        let (mut info, mut error) = (NativeText::none(), NativeText::none());
        // SAFETY: the texts live during the call, with their sizes or a zero byte at the end; the results are places to write to.
        let is_made = unsafe {
            hob_chat_template_new(
                source.as_ptr().cast(),
                source.len(),
                bos.as_ptr(),
                eos.as_ptr(),
                &raw const limits,
                &raw mut made,
                &raw mut info.0,
                &raw mut error.0,
            )
        };
        match NonNull::new(made).filter(|_| is_made) {
            Some(made) => Ok((NativeTemplate(made), info.into_string())),
            None => Err(error.into_string()),
        }
    }

    /// Renders a request. Returns the prompt, and how to read the answer as JSON.
    pub(super) fn apply(&self, request: &str, limits: CallLimits) -> Result<(String, String), String> {
        let (mut prompt, mut details, mut error) =
            (NativeText::none(), NativeText::none(), NativeText::none());
        // SAFETY: the template exists, the request lives during the call, and the results are places to write to.
        let is_done = unsafe {
            hob_chat_template_apply(
                self.0.as_ptr(),
                request.as_ptr().cast(),
                request.len(),
                &raw const limits,
                &raw mut prompt.0,
                &raw mut details.0,
                &raw mut error.0,
            )
        };
        if is_done { Ok((prompt.into_string(), details.into_string())) } else { Err(error.into_string()) }
    }
}

impl Drop for NativeTemplate {
    fn drop(&mut self) {
        // SAFETY: made by the shim, and freed once.
        unsafe { hob_chat_template_free(self.0.as_ptr()) };
    }
}

/// The format of an answer, which its parsers share.
#[derive(Debug)]
pub(super) struct NativeFormat(NonNull<RawFormat>);

// SAFETY: a format is never changed after it was made.
unsafe impl Send for NativeFormat {}
// SAFETY: as above.
unsafe impl Sync for NativeFormat {}

impl NativeFormat {
    pub(super) fn new(details: &str) -> Result<Self, String> {
        let mut made = ptr::null_mut();
        let mut error = NativeText::none();
        // SAFETY: the text lives during the call, and the results are places to write to.
        let is_made = unsafe {
            hob_chat_format_new(details.as_ptr().cast(), details.len(), &raw mut made, &raw mut error.0)
        };
        NonNull::new(made).filter(|_| is_made).map(NativeFormat).ok_or_else(|| error.into_string())
    }

    /// A parser for one answer; `None` without memory.
    pub(super) fn parser(&self) -> Option<NativeParser> {
        // SAFETY: the format exists, and the parser holds what it needs of it.
        NonNull::new(unsafe { hob_chat_parser_new(self.0.as_ptr()) }).map(NativeParser)
    }
}

impl Drop for NativeFormat {
    fn drop(&mut self) {
        // SAFETY: made by the shim, and freed once.
        unsafe { hob_chat_format_free(self.0.as_ptr()) };
    }
}

/// The parser of one answer.
#[derive(Debug)]
pub(super) struct NativeParser(NonNull<RawParser>);

// SAFETY: a parser has no ties to the thread that made it. It is not `Sync`, so one thread uses it at a time.
unsafe impl Send for NativeParser {}

impl NativeParser {
    /// Adds text. Returns what is new, as JSON.
    pub(super) fn push(&mut self, text: &str, limits: CallLimits) -> Result<String, String> {
        let (mut deltas, mut error) = (NativeText::none(), NativeText::none());
        // SAFETY: the parser exists and is borrowed alone, the text lives during the call, the results are places to write to.
        let is_done = unsafe {
            hob_chat_parser_push(
                self.0.as_ptr(),
                text.as_ptr().cast(),
                text.len(),
                &raw const limits,
                &raw mut deltas.0,
                &raw mut error.0,
            )
        };
        if is_done { Ok(deltas.into_string()) } else { Err(error.into_string()) }
    }

    /// Adds text that is known to be reasoning, or else words.
    pub(super) fn add(&mut self, text: &str, is_reasoning: bool) -> bool {
        // SAFETY: the parser exists and is borrowed alone, and the text lives during the call.
        unsafe { hob_chat_parser_add(self.0.as_ptr(), text.as_ptr().cast(), text.len(), is_reasoning) }
    }

    /// Ends the text. Returns what is new, as JSON.
    pub(super) fn finish(&mut self, complete: bool, limits: CallLimits) -> Result<String, String> {
        let (mut deltas, mut error) = (NativeText::none(), NativeText::none());
        // SAFETY: as above.
        let is_done = unsafe {
            hob_chat_parser_finish(
                self.0.as_ptr(),
                complete,
                &raw const limits,
                &raw mut deltas.0,
                &raw mut error.0,
            )
        };
        if is_done { Ok(deltas.into_string()) } else { Err(error.into_string()) }
    }
}

impl Drop for NativeParser {
    fn drop(&mut self) {
        // SAFETY: made by the shim, and freed once.
        unsafe { hob_chat_parser_free(self.0.as_ptr()) };
    }
}

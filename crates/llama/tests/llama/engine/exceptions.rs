//! Exceptions of C++ in a step of the model, which Hob's build of llama.cpp turns into errors (native/patches.cmake).
#![expect(unsafe_code, reason = "no safe wrapper lets a step fail")]

use std::ffi::{CString, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicBool, Ordering};

use llama_cpp_sys_2 as llama;

use super::model_file;

/// What a step returns that an exception has ended.
const EXCEPTION: i32 = -100;

static THROWS: AtomicBool = AtomicBool::new(true);

type Throwing = unsafe extern "C-unwind" fn(*mut llama::ggml_tensor, bool, *mut c_void) -> bool;
type Callback = unsafe extern "C" fn(*mut llama::ggml_tensor, bool, *mut c_void) -> bool;

unsafe extern "C-unwind" {
    /// A function of the C++ library that throws.
    fn __cxa_throw_bad_array_new_length() -> !;
}

/// llama.cpp calls it in each step.
unsafe extern "C-unwind" fn on_operation(_: *mut llama::ggml_tensor, _: bool, _: *mut c_void) -> bool {
    if THROWS.load(Ordering::Relaxed) {
        // SAFETY: the exception only passes this function, which has nothing to drop.
        unsafe { __cxa_throw_bad_array_new_length() }
    }
    false
}

#[test]
fn an_exception_fails_its_step_and_the_next_one_succeeds() {
    let path = CString::new(model_file().as_os_str().as_encoded_bytes()).expect("a path");
    // SAFETY: the model and the context are valid, the tokens live during each step, and the callback is called by C++ only, which
    // does not know the two kinds of function pointers apart.
    unsafe {
        llama::llama_backend_init();
        let mut params = llama::llama_model_default_params();
        params.n_gpu_layers = 0;
        let model = llama::llama_model_load_from_file(path.as_ptr(), params);
        assert!(!model.is_null());
        let mut params = llama::llama_context_default_params();
        params.n_ctx = 256;
        params.n_threads = 1;
        params.n_threads_batch = 1;
        params.cb_eval = Some(transmute::<Throwing, Callback>(on_operation));
        let context = llama::llama_init_from_model(model, params);
        assert!(!context.is_null());
        let mut tokens = [1000, 1001, 1002];
        let mut step = || llama::llama_decode(context, llama::llama_batch_get_one(tokens.as_mut_ptr(), 3));
        assert_eq!([step(), step()], [EXCEPTION; 2]);
        THROWS.store(false, Ordering::Relaxed);
        llama::llama_memory_clear(llama::llama_get_memory(context), true);
        assert_eq!(step(), 0);
        llama::llama_free(context);
        llama::llama_model_free(model);
    }
}

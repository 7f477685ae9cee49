//! Sets the path of the libraries, in a build that has them outside the program.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let has_libraries = std::env::var_os("CARGO_FEATURE_DYNAMIC_BACKENDS").is_some();
    if has_libraries && std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // Beside the program, or where packages install them. Never the current directory.
        println!("cargo:rustc-link-arg-bins=-Wl,-rpath,$ORIGIN:$ORIGIN/../lib/hob");
    }
}

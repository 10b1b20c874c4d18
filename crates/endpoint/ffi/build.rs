//! The name under which programs look for the library: it changes when the interface does.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcutline.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}

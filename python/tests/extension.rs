//! The extension module as a library. That Python can use it is tested in Python (`make test-python-quick`).

use std::path::PathBuf;
use std::{env, fs};

/// The library that Cargo has built for this test: beside it, or one folder above.
fn library() -> PathBuf {
    let test = env::current_exe().expect("a test has a path");
    let folders = test.ancestors().skip(1).take(2);
    let newest = folders
        .map(|folder| folder.join("lib_native.so"))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .max();
    newest.expect("cargo builds the library before the tests").1
}

/// Each interpreter from 3.11 on finds the module's entry, and has libpython's functions itself: many are built without the library.
#[test]
fn it_has_the_entry_of_a_module_and_does_not_need_libpython() {
    let content = fs::read(library()).expect("the library can be read");
    let has = |name: &[u8]| content.windows(name.len()).any(|part| part == name);
    assert!(has(b"\0PyInit__native\0"), "the entry of the module");
    assert!(has(b"\0PyErr_SetObject\0") || has(b"\0PyErr_SetRaisedException\0"), "functions of Python");
    assert!(!has(b"libpython3"), "it needs libpython");
}

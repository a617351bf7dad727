//! Where the programs under test are.

use std::path::{Path, PathBuf};

/// The headless bridge.
///
/// # Panics
/// When it is not built.
pub fn bridge() -> PathBuf {
    built("neuron-connectd")
}

/// The upstream that behaves as told.
///
/// # Panics
/// When it is not built.
pub fn fake_upstream() -> PathBuf {
    built("fake-upstream")
}

/// The bridge as the tray app starts it, with a stand-in for the window.
///
/// # Panics
/// When it is not built.
pub fn beside_tray() -> PathBuf {
    built("beside-tray")
}

/// The authorization server that behaves as told.
///
/// # Panics
/// When it is not built.
pub fn fake_authority() -> PathBuf {
    built("fake-authority")
}

/// The workspace's root folder.
///
/// # Panics
/// Never in a checkout.
pub fn workspace() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the workspace holds this package").to_owned()
}

/// A program beside this one; `NEURON_TEST_PROGRAMS` names another folder, such as an unpacked package.
fn built(name: &str) -> PathBuf {
    let folder = match std::env::var_os("NEURON_TEST_PROGRAMS") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let this = std::env::current_exe().expect("a running program has a path");
            let folder = this.parent().expect("a program lies in a folder");
            match folder.file_name() {
                Some(name) if name == "deps" => folder.parent().expect("deps lies in a profile's folder").to_owned(),
                _ => folder.to_owned(),
            }
        }
    };
    let path = folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.is_file(),
        "{} is not built: run `cargo build --workspace` with the same profile first",
        path.display()
    );
    path
}

/// A system program by its name.
///
/// # Panics
/// When it is not installed; a test never passes for want of a program.
pub fn system(name: &str) -> PathBuf {
    any_system(&[name])
}

/// The first of these system programs that is installed.
///
/// # Panics
/// When none is.
pub fn any_system(names: &[&str]) -> PathBuf {
    let path = std::env::var_os("PATH").expect("PATH is set");
    let folders: Vec<_> = std::env::split_paths(&path).collect();
    let mut candidates = names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    candidates
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| panic!("`{}` is not on the PATH, and this test needs it", names.join("` or `")))
}

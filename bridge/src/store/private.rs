//! Files and folders that only this person can read.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

/// Makes the folder (0700), or tightens it.
pub(super) fn folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    restrict(path, 0o700)
}

/// Makes the file (0600) in a private folder, or tightens it. An existing file keeps its content.
pub(super) fn file(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        folder(parent)?;
    }
    let mut options = OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => restrict(path, 0o600),
        Err(err) => Err(err),
    }
}

/// Opens for reading, but no link: a name of ours stands for a file of ours.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
    options.open(path)
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let present = fs::metadata(path)?.permissions().mode() & 0o777;
    if present & !mode == 0 && present & 0o700 == mode & 0o700 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

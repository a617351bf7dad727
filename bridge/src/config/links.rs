//! Following the symlinks at the end of a path, one step at a time.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// As many as Linux follows.
const MAX_LINKS: usize = 40;

/// `path`, then what each symlink leads to; the last one is no symlink and need not exist.
///
/// # Errors
/// Too many symlinks (a circle), or a folder on the way that cannot be looked into.
pub(crate) fn chain(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut chain = vec![path.to_owned()];
    for _ in 0..MAX_LINKS {
        let last = &chain[chain.len() - 1];
        let target = match fs::read_link(last) {
            Ok(target) => target,
            // Not a symlink, or not there.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound) => {
                return Ok(chain);
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(chain),
            Err(error) => return Err(error),
        };
        let next = last
            .parent()
            .map_or_else(|| target.clone(), |folder| folder.join(&target));
        chain.push(next);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "its symlinks lead in a circle",
    ))
}

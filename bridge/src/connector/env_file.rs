//! Reading an `envFile`, which may be anything that a person's disk holds.

use std::{
    fs::OpenOptions,
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// Largest file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The whole file.
///
/// # Errors
/// The system's; also for what is no ordinary file, which might never end or never begin, and for more than 1 MiB.
pub async fn read(path: &Path) -> io::Result<Vec<u8>> {
    let path = PathBuf::from(path);
    let read = tokio::task::spawn_blocking(move || read_now(&path)).await;
    read.unwrap_or_else(|ended| Err(io::Error::other(ended)))
}

fn read_now(path: &Path) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn an_ordinary_file_is_read_also_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("x.env"), folder.path().join("link"));
        fs::write(&file, "A=1\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link).await.unwrap(), b"A=1\n");
    }

    #[tokio::test]
    async fn what_never_begins_or_never_ends_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        for path in [pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
            let error = read(path).await.unwrap_err();
            assert!(
                error.to_string().contains("no ordinary file"),
                "{}: {error}",
                path.display()
            );
        }
        let large = folder.path().join("large");
        fs::write(&large, vec![b'#'; 1024 * 1024 + 1]).unwrap();
        assert!(read(&large).await.unwrap_err().to_string().contains("1 MiB"));
    }
}

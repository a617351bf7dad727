//! A resource that is kept as a file: decoded piece by piece, whole or not there at all.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use tokio_util::sync::CancellationToken;

use super::{Entry, Form, ResultError, ResultId, ResultStore, Size, UNFINISHED, remove};

/// Always the same: what the upstream says of its type must not decide which program opens the file.
const EXTENSION: &str = "bin";
/// Characters that are decoded at once, a multiple of four: so much memory is needed besides the text itself.
const BATCH: usize = 64 * 1024;

/// What is to be kept.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    Text(&'a str),
    /// Standard or URL-safe, with or without padding and line ends.
    Base64(&'a str),
}

/// A kept file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// Absolute.
    pub path: PathBuf,
    /// Its size, decoded.
    pub bytes: u64,
}

impl ResultStore {
    /// Keeps `content` as a private file of a random name, which stays until somebody removes it. The oldest results make
    /// room. Looks at `given_up` between two pieces.
    ///
    /// # Errors
    /// [`ResultError::NotBase64`], [`ResultError::Full`], [`ResultError::Files`], [`ResultError::GivenUp`]; no file is
    /// left then.
    pub fn save(
        &self,
        id: &ResultId,
        caller: &str,
        content: Content<'_>,
        given_up: &CancellationToken,
    ) -> Result<Saved, ResultError> {
        let _room = self.reserve(most_bytes(content))?;
        let path = self.folder.join(&id.0).with_extension(EXTENSION);
        let path = std::path::absolute(path).map_err(|source| self.files(source))?;
        let bytes = self.write_content(&path, content, given_up)?;
        let entry = Entry {
            caller: caller.to_owned(),
            form: Form::Saved(path.clone()),
        };
        let mut inner = self.inner();
        inner.held.others = inner.held.others.and(Size::of_one(bytes));
        inner.readable.insert(id.clone(), entry);
        Ok(Saved { path, bytes })
    }

    fn reserve(&self, bytes: u64) -> Result<Room<'_>, ResultError> {
        let mut inner = self.inner();
        self.make_room(&mut inner, bytes)?;
        let size = Size::of_one(bytes);
        inner.reserved = inner.reserved.and(size);
        Ok(Room { store: self, size })
    }

    /// Written under another name first, which goes away by itself on any error.
    fn write_content(
        &self,
        path: &Path,
        content: Content<'_>,
        given_up: &CancellationToken,
    ) -> Result<u64, ResultError> {
        let files = |source| self.files(source);
        let mut file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.folder)
            .map_err(files)?;
        let mut bytes = 0;
        let mut write = |piece: &[u8]| {
            if given_up.is_cancelled() {
                return Err(ResultError::GivenUp);
            }
            bytes += piece.len() as u64;
            file.write_all(piece).map_err(files)
        };
        match content {
            Content::Text(text) => text.as_bytes().chunks(BATCH).try_for_each(&mut write)?,
            Content::Base64(text) => decode(text, &mut write)?,
        }
        file.as_file().sync_all().map_err(files)?;
        if given_up.is_cancelled() {
            return Err(ResultError::GivenUp);
        }
        file.persist_noclobber(path).map_err(|error| files(error.error))?;
        whole_or_gone(path, sync_folder(&self.folder)).map_err(files)?;
        Ok(bytes)
    }
}

/// Room in the folder for a file that is being written.
struct Room<'a> {
    store: &'a ResultStore,
    size: Size,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        let mut inner = self.store.inner();
        inner.reserved = inner.reserved.without(self.size);
    }
}

fn most_bytes(content: Content<'_>) -> u64 {
    match content {
        Content::Text(text) => text.len() as u64,
        // Four characters hold three bytes.
        Content::Base64(text) => text.len().div_ceil(4) as u64 * 3,
    }
}

fn decode(text: &str, write: &mut impl FnMut(&[u8]) -> Result<(), ResultError>) -> Result<(), ResultError> {
    let alphabet = match text.contains(['-', '_']) {
        true => &alphabet::URL_SAFE,
        false => &alphabet::STANDARD,
    };
    let engine = |padding| {
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(padding);
        GeneralPurpose::new(alphabet, config)
    };
    let (inside, at_the_end) = (
        engine(DecodePaddingMode::RequireNone),
        engine(DecodePaddingMode::Indifferent),
    );
    let mut clean = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).peekable();
    let (mut batch, mut decoded) = (Vec::with_capacity(BATCH), Vec::with_capacity(BATCH));
    while clean.peek().is_some() {
        batch.clear();
        batch.extend(clean.by_ref().take(BATCH));
        let engine = if clean.peek().is_some() { &inside } else { &at_the_end };
        decoded.clear();
        engine
            .decode_vec(&batch, &mut decoded)
            .map_err(|_where| ResultError::NotBase64)?;
        write(&decoded)?;
    }
    Ok(())
}

/// What fails after the file has its name must not leave it: its caller is told that there is none.
fn whole_or_gone(path: &Path, finished: io::Result<()>) -> io::Result<()> {
    finished.inspect_err(|_| remove(path))
}

/// So that a finished file is also found after a power cut.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{fs, time::SystemTime};

    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
    use tempfile::TempDir;

    use super::{super::Limits, *};

    fn id() -> ResultId {
        ResultId::draw().unwrap()
    }

    fn save(store: &ResultStore, content: Content<'_>) -> Result<Saved, ResultError> {
        store.save(&id(), "owner", content, &CancellationToken::new())
    }

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn every_byte_is_kept_whatever_the_length_and_the_dialect() {
        let folder = TempDir::new().unwrap();
        let store = ResultStore::open(folder.path()).unwrap();
        for length in [0, 1, 2, 3, 49_151, 49_152, 49_153, 200_000] {
            let bytes: Vec<u8> = (0..length).map(|n: u32| (n.wrapping_mul(167) >> 3) as u8).collect();
            let standard = BASE64_STANDARD.encode(&bytes);
            let lines: String = standard.as_bytes().chunks(76).fold(String::new(), |all, line| {
                all + std::str::from_utf8(line).unwrap() + "\r\n"
            });
            for text in [standard, lines, BASE64_URL_SAFE_NO_PAD.encode(&bytes)] {
                let saved = save(&store, Content::Base64(&text)).unwrap();
                assert_eq!(saved.bytes, u64::from(length));
                assert!(fs::read(&saved.path).unwrap() == bytes, "{length}");
            }
        }
        let text = "zwölf 🦀".repeat(20_000);
        let saved = save(&store, Content::Text(&text)).unwrap();
        assert_eq!(fs::read_to_string(saved.path).unwrap(), text);
    }

    #[test]
    fn what_is_no_base64_leaves_no_file() {
        let folder = TempDir::new().unwrap();
        let store = ResultStore::open(folder.path()).unwrap();
        let late = "A".repeat(BATCH * 2) + "!";
        let padded_inside = "A".repeat(BATCH - 2) + "==AAAA";
        for text in ["aGk", "a", "aGk=aGk=", "äöü", "a+b-", &late, &padded_inside] {
            let saved = save(&store, Content::Base64(text));
            match text {
                "aGk" => fs::remove_file(saved.unwrap().path).unwrap(),
                _ => assert!(matches!(saved, Err(ResultError::NotBase64)), "{text:.20}"),
            }
            assert_eq!(files(folder.path()), 0, "{text:.20}");
        }
    }

    #[test]
    fn saving_that_is_given_up_leaves_no_file() {
        let folder = TempDir::new().unwrap();
        let store = ResultStore::open(folder.path()).unwrap();
        let given_up = CancellationToken::new();
        given_up.cancel();
        for content in [Content::Base64("aGk="), Content::Text("x"), Content::Text("")] {
            let saved = store.save(&id(), "owner", content, &given_up);
            assert!(matches!(saved, Err(ResultError::GivenUp)));
            assert_eq!(files(folder.path()), 0);
        }
    }

    #[test]
    fn a_file_whose_folder_cannot_be_synced_is_gone() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.bin");
        fs::write(&path, "whole").unwrap();
        assert!(whole_or_gone(&path, Ok(())).is_ok() && path.exists());
        assert!(whole_or_gone(&path, Err(io::Error::other("disk"))).is_err() && !path.exists());
    }

    #[test]
    fn room_that_a_person_made_is_found_before_anything_is_refused() {
        let folder = TempDir::new().unwrap();
        let store = ResultStore::within(folder.path().to_owned(), Limits { bytes: 100, files: 9 }).unwrap();
        let first = save(&store, Content::Text(&"s".repeat(60))).unwrap();
        let second = || save(&store, Content::Text(&"s".repeat(60)));
        assert!(matches!(second(), Err(ResultError::Full { .. })));
        fs::remove_file(first.path).unwrap();
        second().unwrap();
    }

    #[test]
    fn a_saved_file_counts_and_is_neither_pruned_nor_sacrificed() {
        let folder = TempDir::new().unwrap();
        let store = ResultStore::within(folder.path().to_owned(), Limits { bytes: 100, files: 9 }).unwrap();
        let now = SystemTime::now();
        let kept = save(&store, Content::Text(&"s".repeat(60))).unwrap();
        let old = id();
        store.put(&old, "owner", &"x".repeat(40), now).unwrap();
        let second = save(&store, Content::Text(&"s".repeat(40))).unwrap();
        assert!(store.read(old.as_str(), "owner", 0, 1).is_err(), "a result made room");
        assert!(matches!(
            save(&store, Content::Text("one more")),
            Err(ResultError::Full { .. })
        ));
        store.prune(now + std::time::Duration::from_secs(30 * 24 * 60 * 60));
        assert!(kept.path.exists() && second.path.exists());
        assert_eq!(files(folder.path()), 2);
        assert_eq!(store.inner().reserved, Size::default());
    }

    #[cfg(unix)]
    #[test]
    fn a_saved_file_is_private_and_not_read_as_text() {
        use std::os::unix::fs::PermissionsExt;
        let folder = TempDir::new().unwrap();
        let store = ResultStore::open(folder.path()).unwrap();
        let id = id();
        let saved = store
            .save(&id, "owner", Content::Base64("//79"), &CancellationToken::new())
            .unwrap();
        assert_eq!(fs::metadata(&saved.path).unwrap().permissions().mode() & 0o7777, 0o600);
        let path = saved.path.display().to_string();
        assert!(matches!(store.read(id.as_str(), "owner", 0, 1), Err(ResultError::IsAFile { path: p }) if p == path));
        assert!(matches!(
            store.read(id.as_str(), "walk-in", 0, 1),
            Err(ResultError::NotFound)
        ));
        let again = store.save(&id, "owner", Content::Text("other"), &CancellationToken::new());
        assert!(again.is_err(), "an existing file is never overwritten");
        assert_eq!(fs::read(&saved.path).unwrap(), [0xff, 0xfe, 0xfd]);
    }
}

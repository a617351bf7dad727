//! Results too large to return inline: one private file each, readable piece by piece by the caller that made it. And
//! resources that a caller saved (`saved`): files to open, never read in pieces, never removed to make room.

mod saved;

use std::{
    collections::{BTreeMap, HashMap},
    fmt, fs,
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use super::private;
pub use saved::{Content, Saved};

/// All files of the folder together, in bytes.
const QUOTA: u64 = 1024 * 1024 * 1024;
/// Most files of the folder. A thousand a day for the seven days they are kept is much; what lists a folder should not be
/// slowed by ours.
const MAX_FILES: usize = 10_000;
/// How long a result can be read.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Most that one read returns, in characters.
pub const MAX_PIECE_CHARS: u64 = 200_000;
/// Every so many characters the place in the file is remembered, so that a late piece is found without reading all.
const MARK_CHARS: u64 = 64 * 1024;
const EXTENSION: &str = "txt";
/// Begins the names of files that are still being written.
const UNFINISHED: &str = ".unfinished-";

/// 128 random bits in hexadecimal. Nobody finds a result by guessing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResultId(String);

/// A part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    /// Characters before `text`.
    pub offset: u64,
    /// Characters of the whole.
    pub total: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// Never there, another caller's, from an earlier run, or too old.
    #[error(
        "There is no such result for this caller. Results can be read for seven days, until Neuron Connect is restarted, by the caller whose call made them."
    )]
    NotFound,
    #[error("The result is too large to be kept, or the folder {folder} is full.")]
    Full { folder: String },
    #[error("The result could not be kept or read in {folder}: {source}")]
    Files { folder: String, source: io::Error },
    /// Bytes would be garbled by reading them as characters.
    #[error("This result is a saved file and is not read in pieces: open {path}.")]
    IsAFile { path: String },
    #[error("It is no valid base64")]
    NotBase64,
    #[error("Saving it was given up.")]
    GivenUp,
    #[error("The system gave no random number for the result's name: {0}")]
    Random(getrandom::Error),
}

/// `connect/results/`. Blocks on the disk.
pub struct ResultStore {
    folder: PathBuf,
    limits: Limits,
    inner: Mutex<Inner>,
}

/// Of all files of the folder together.
#[derive(Debug, Clone, Copy)]
struct Limits {
    bytes: u64,
    files: usize,
}

#[derive(Default)]
struct Inner {
    /// Results of this run.
    readable: HashMap<ResultId, Entry>,
    /// The files that are being written.
    reserved: Size,
    held: Held,
}

/// What the folder held when it was last looked through, and what was kept and removed since. Files that a person puts or
/// removes there are noticed at the next look: at start, and before anything is refused for want of room.
#[derive(Default)]
struct Held {
    /// Results, oldest first, with their bytes: they make room.
    results: BTreeMap<(SystemTime, ResultId), u64>,
    /// Bytes of all of `results`.
    bytes: u64,
    /// Saved files and what is not of ours: they count, but are not removed.
    others: Size,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Size {
    files: usize,
    bytes: u64,
}

impl Size {
    fn of_one(bytes: u64) -> Self {
        Self { files: 1, bytes }
    }

    fn and(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    fn without(self, other: Self) -> Self {
        Self {
            files: self.files.saturating_sub(other.files),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }

    fn fits(self, limits: Limits) -> bool {
        self.files <= limits.files && self.bytes <= limits.bytes
    }
}

impl Held {
    fn all(&self) -> Size {
        let results = Size {
            files: self.results.len(),
            bytes: self.bytes,
        };
        results.and(self.others)
    }

    fn add_result(&mut self, made: SystemTime, id: ResultId, bytes: u64) {
        self.bytes += bytes;
        self.results.insert((made, id), bytes);
    }

    /// The oldest result, which does not count from now on.
    fn take_oldest(&mut self) -> Option<(SystemTime, ResultId)> {
        let (key, bytes) = self.results.pop_first()?;
        self.bytes -= bytes;
        Some(key)
    }
}

struct Entry {
    caller: String,
    form: Form,
}

enum Form {
    /// Text to be read in pieces.
    Text {
        total_chars: u64,
        /// Byte places of the characters 0, [`MARK_CHARS`], 2 × [`MARK_CHARS`], …
        marks: Vec<u64>,
    },
    /// A file to be opened.
    Saved(PathBuf),
}

impl ResultId {
    /// A new one, drawn before the result is shaped so that its note can name it.
    ///
    /// # Errors
    /// [`ResultError::Random`].
    pub fn draw() -> Result<Self, ResultError> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(ResultError::Random)?;
        Ok(Self(format!("{:032x}", u128::from_be_bytes(bits))))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn parse(text: &str) -> Option<Self> {
        let legal = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        legal.then(|| Self(text.to_owned()))
    }
}

impl fmt::Debug for ResultId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ResultStore {
    /// Opens or makes the folder. What a killed process left unfinished is removed.
    ///
    /// # Errors
    /// [`ResultError::Files`].
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, ResultError> {
        let limits = Limits {
            bytes: QUOTA,
            files: MAX_FILES,
        };
        Self::within(folder.into(), limits)
    }

    fn within(folder: PathBuf, limits: Limits) -> Result<Self, ResultError> {
        let store = Self {
            folder,
            limits,
            inner: Mutex::default(),
        };
        private::folder(&store.folder).map_err(|source| store.files(source))?;
        for entry in fs::read_dir(&store.folder)
            .map_err(|source| store.files(source))?
            .flatten()
        {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                remove(&entry.path());
            }
        }
        let held = store.look().map_err(|source| store.files(source))?;
        store.inner().held = held;
        Ok(store)
    }

    /// Keeps `text` for later reading by `caller`. The oldest results make room.
    ///
    /// # Errors
    /// [`ResultError::Full`], [`ResultError::Files`]; no file is left then.
    pub fn put(&self, id: &ResultId, caller: &str, text: &str, now: SystemTime) -> Result<(), ResultError> {
        let bytes = text.len() as u64;
        let mut inner = self.inner();
        self.make_room(&mut inner, bytes)?;
        self.write(id, text, now).map_err(|source| self.files(source))?;
        inner.held.add_result(now, id.clone(), bytes);
        let (total_chars, marks) = marks(text);
        let entry = Entry {
            caller: caller.to_owned(),
            form: Form::Text { total_chars, marks },
        };
        inner.readable.insert(id.clone(), entry);
        Ok(())
    }

    /// Characters `offset..offset + limit`, at most [`MAX_PIECE_CHARS`] of them; an empty piece beyond the end.
    ///
    /// # Errors
    /// [`ResultError::NotFound`], [`ResultError::IsAFile`], [`ResultError::Files`].
    pub fn read(&self, id: &str, caller: &str, offset: u64, limit: u64) -> Result<Piece, ResultError> {
        let id = ResultId::parse(id).ok_or(ResultError::NotFound)?;
        let (mark, total) = {
            let inner = self.inner();
            let entry = inner.readable.get(&id).filter(|entry| entry.caller == caller);
            let entry = entry.ok_or(ResultError::NotFound)?;
            match &entry.form {
                Form::Text { total_chars, marks } => {
                    let nearest = usize::try_from(offset / MARK_CHARS).unwrap_or(usize::MAX);
                    (marks.get(nearest).copied(), *total_chars)
                }
                Form::Saved(path) => {
                    let path = path.display().to_string();
                    return Err(ResultError::IsAFile { path });
                }
            }
        };
        let wanted = limit.min(MAX_PIECE_CHARS).min(total.saturating_sub(offset));
        let text = match mark {
            Some(mark) if wanted > 0 => self.read_chars(&id, mark, offset % MARK_CHARS, wanted)?,
            Some(_) | None => String::new(),
        };
        Ok(Piece { text, offset, total })
    }

    /// Removes results older than seven days. Those of a clock that was ahead stay until then.
    pub fn prune(&self, now: SystemTime) {
        let mut inner = self.inner();
        let too_old = |made: &SystemTime| now.duration_since(*made).is_ok_and(|age| age > KEPT_FOR);
        while inner
            .held
            .results
            .first_key_value()
            .is_some_and(|((made, _), _)| too_old(made))
        {
            self.remove_oldest(&mut inner);
        }
    }

    /// The oldest results go as far as needed, none of them for something that would not fit anyway.
    fn make_room(&self, inner: &mut Inner, bytes: u64) -> Result<(), ResultError> {
        let new = inner.reserved.and(Size::of_one(bytes));
        if !inner.held.others.and(new).fits(self.limits) {
            // Perhaps somebody cleared the folder.
            inner.held = self.look().map_err(|source| self.files(source))?;
        }
        if !inner.held.others.and(new).fits(self.limits) {
            return Err(ResultError::Full {
                folder: self.folder.display().to_string(),
            });
        }
        while !inner.held.all().and(new).fits(self.limits) && self.remove_oldest(inner) {}
        Ok(())
    }

    /// Whether there was one.
    fn remove_oldest(&self, inner: &mut Inner) -> bool {
        let Some((_, id)) = inner.held.take_oldest() else {
            return false;
        };
        inner.readable.remove(&id);
        remove(&self.path(&id));
        true
    }

    /// Looks through the whole folder.
    fn look(&self) -> io::Result<Held> {
        let mut held = Held::default();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let Ok(meta) = entry.metadata() else {
                continue;
            };
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                // Its room is reserved.
                continue;
            }
            let id = match (path.file_stem().and_then(|stem| stem.to_str()), path.extension()) {
                (Some(stem), Some(extension)) if extension == EXTENSION && meta.is_file() => ResultId::parse(stem),
                (Some(_) | None, Some(_) | None) => None,
            };
            match id {
                Some(id) => held.add_result(meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), id, meta.len()),
                None => held.others = held.others.and(Size::of_one(meta.len())),
            }
        }
        Ok(held)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Written under another name first, which goes away by itself on any error.
    fn write(&self, id: &ResultId, text: &str, now: SystemTime) -> io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(&self.folder)?;
        file.write_all(text.as_bytes())?;
        file.as_file().set_modified(now)?;
        file.persist_noclobber(self.path(id)).map_err(|err| err.error)?;
        Ok(())
    }

    fn read_chars(&self, id: &ResultId, mark: u64, skipped: u64, wanted: u64) -> Result<String, ResultError> {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = private::open(&self.path(id))?;
            file.seek(SeekFrom::Start(mark))?;
            let mut bytes = Vec::new();
            // A character has at most four bytes.
            file.take((skipped + wanted) * 4).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ResultError::NotFound,
            _ => self.files(source),
        })?;
        let (skipped, wanted) = (as_usize(skipped), as_usize(wanted));
        Ok(String::from_utf8_lossy(&bytes)
            .chars()
            .skip(skipped)
            .take(wanted)
            .collect())
    }

    fn path(&self, id: &ResultId) -> PathBuf {
        self.folder.join(&id.0).with_extension(EXTENSION)
    }

    fn files(&self, source: io::Error) -> ResultError {
        ResultError::Files {
            folder: self.folder.display().to_string(),
            source,
        }
    }
}

fn marks(text: &str) -> (u64, Vec<u64>) {
    let mut marks = Vec::new();
    let mut total = 0;
    for (at, _) in text.char_indices() {
        if total % MARK_CHARS == 0 {
            marks.push(at as u64);
        }
        total += 1;
    }
    (total, marks)
}

fn as_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A file that cannot be removed now is met again at the next look through the folder.
fn remove(path: &Path) {
    if let Err(err) = fs::remove_file(path)
        && err.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!("an old result could not be removed: {}: {err}", path.display());
    }
}

#[cfg(test)]
mod tests;

//! The key of the trust rows with the generation that was counted, as they lie in the keychain or in `trust.key`; and
//! which of the two counts for a bridge (pure).

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};

use super::Host;
use crate::{
    config::atomic::{RealDisk, replace_file},
    secrets::KeychainFault,
    snapshot::KeptIn,
    trust::rows::TrustKey,
};

/// A key file is no larger.
const LONGEST_FILE: u64 = 4096;

/// The key and what is known beside it.
#[derive(Debug, Clone)]
pub(super) struct KeyRecord {
    pub key: Arc<TrustKey>,
    /// Of the last set that is known to be stored; 0 = none was stored yet.
    pub generation: u64,
    /// A tray app used this home.
    pub tray: bool,
}

#[derive(Serialize, Deserialize)]
struct Value {
    key: String,
    generation: u64,
    /// Where it is not said, it may have.
    #[serde(default = "yes")]
    tray: bool,
}

fn yes() -> bool {
    true
}

impl KeyRecord {
    pub(super) fn to_secret(&self) -> SecretString {
        let value = Value {
            key: self.key.to_base64(),
            generation: self.generation,
            tray: self.tray,
        };
        // Two numbers and a text are always JSON.
        serde_json::to_string(&value).unwrap_or_default().into()
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        Some(Self {
            key: Arc::new(TrustKey::parse(&value.key)?),
            generation: value.generation,
            tray: value.tray,
        })
    }
}

/// What lies where a key may lie.
#[derive(Debug, Clone)]
pub(super) enum Found {
    Nothing,
    Record(KeyRecord),
    /// Something that is no key, or cannot be read.
    Garbled,
}

impl Found {
    pub(super) fn in_keychain(value: Option<&SecretString>) -> Self {
        match value.map(|value| KeyRecord::parse(value.expose_secret())) {
            None => Self::Nothing,
            Some(Some(record)) => Self::Record(record),
            Some(None) => Self::Garbled,
        }
    }

    /// Blocks on the disk.
    pub(super) fn in_file(path: &Path) -> Self {
        match read(path) {
            Ok(text) => Self::in_keychain(Some(&text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::Nothing,
            Err(error) => {
                tracing::error!(%error, path = %path.display(), "the key of the trust rows cannot be read");
                Self::Garbled
            }
        }
    }
}

fn read(path: &Path) -> io::Result<SecretString> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST_FILE).read_to_string(&mut text)?;
    Ok(text.into())
}

/// Keeps the record in the file, for this person only; old or new content whenever it fails. Blocks on the disk.
pub(super) fn write_file(path: &Path, record: &KeyRecord) -> io::Result<()> {
    replace_file(&mut RealDisk, path, record.to_secret().expose_secret().as_bytes())
}

/// Where the key lies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Place {
    #[default]
    Keychain,
    File,
}

/// Everything that decides where the key lies.
pub(super) struct Circumstances {
    pub host: Host,
    /// Where secrets are kept.
    pub kept_in: KeptIn,
    pub keychain: Result<Found, KeychainFault>,
    pub file: Found,
    /// Something says that a tray app used this home.
    pub tray: bool,
    /// Rows are stored, under some key; told only where the keychain is missing.
    pub rows: bool,
}

/// Which key counts.
#[derive(Debug)]
pub(super) enum Choice {
    At(Place, Found),
    /// That is known once the keychain can be had.
    Wait(KeychainFault),
}

/// A tray app believes its keychain alone: the file can be read by every program. Without a window the file serves
/// wherever a keychain does not, but for a home that belongs to a tray app.
pub(super) fn choose(now: Circumstances) -> Choice {
    let in_file = !matches!(now.file, Found::Nothing);
    match (now.host, now.keychain) {
        (Host::Tray, Ok(found)) => Choice::At(Place::Keychain, found),
        (Host::Tray, Err(fault)) => Choice::Wait(fault),
        (Host::Headless, Ok(Found::Nothing)) => match (in_file, now.kept_in) {
            (false, KeptIn::Keychain) => Choice::At(Place::Keychain, Found::Nothing),
            (true, _) | (false, KeptIn::File | KeptIn::Memory) => Choice::At(Place::File, now.file),
        },
        (Host::Headless, Ok(found)) => {
            if in_file && !now.tray {
                Choice::At(Place::File, now.file)
            } else {
                Choice::At(Place::Keychain, found)
            }
        }
        (Host::Headless, Err(fault)) if now.tray => Choice::Wait(fault),
        // Rows without a file have their key in the keychain that is missing.
        (Host::Headless, Err(fault @ KeychainFault::Absent)) => match (in_file, now.kept_in, now.rows) {
            (false, KeptIn::Keychain, true) => Choice::Wait(fault),
            (true, _, _) | (false, KeptIn::File | KeptIn::Memory, _) | (false, KeptIn::Keychain, false) => {
                Choice::At(Place::File, now.file)
            }
        },
        (Host::Headless, Err(fault @ (KeychainFault::Locked | KeychainFault::Slow | KeychainFault::Refused(_)))) => {
            match (in_file, now.kept_in) {
                (false, KeptIn::Keychain) => Choice::Wait(fault),
                (true, _) | (false, KeptIn::File | KeptIn::Memory) => Choice::At(Place::File, now.file),
            }
        }
    }
}

//! An encrypted file as a vault, for computers without a keychain, by explicit choice.
//!
//! The file is one record: [`MAGIC`], a nonce, and a JSON object of accounts and values under XChaCha20-Poly1305. Its key
//! comes from elsewhere ([`FileKey`]) and is never written. Each change writes the file whole, under a new nonce. A file
//! that does not open is left as it is.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use secrecy::{ExposeSecret as _, SecretBox, SecretString};
use sha2::{Digest as _, Sha256};

use super::{KeychainFault, vault::Vault};
use crate::config::atomic::{RealDisk, replace_file};

/// Begins the file and is authenticated with it.
const MAGIC: &[u8] = b"neuron-secrets-1\n";
const NONCE: usize = 24;
/// A key file with fewer bytes is no key but a password.
const SHORTEST_KEY: usize = 32;
/// A key file is no larger.
const LONGEST_KEY: u64 = 64 * 1024;
/// The name under which systemd hands the key over (`LoadCredential=`, `LoadCredentialEncrypted=`).
const CREDENTIAL: &str = "neuron-secrets-key";
/// Names the file that holds the key, where systemd does not.
const KEY_VARIABLE: &str = "NEURON_SECRETS_KEY_FILE";

/// The key of the file.
#[derive(Clone)]
pub struct FileKey {
    bytes: Arc<SecretBox<[u8; 32]>>,
    from: PathBuf,
}

impl fmt::Debug for FileKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileKey from {}", self.from.display())
    }
}

/// Why secrets cannot be kept in a file. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum FileVaultError {
    #[error(
        "Secrets are to be kept in a file, but there is no key for it. Set {KEY_VARIABLE} to a file with at least 32 random bytes (`openssl rand -hex 32`), or hand it over as the systemd credential {CREDENTIAL}."
    )]
    NoKey,
    #[error("The key file {path} cannot be read: {source}.")]
    KeyUnreadable { path: String, source: io::Error },
    #[error(
        "The key file {path} is too short: it needs at least 32 random bytes, such as `openssl rand -hex 32` gives."
    )]
    KeyTooShort { path: String },
    #[error("The key file {path} can be read by others; run `chmod 600` on it.")]
    KeyShared { path: String },
    #[error(
        "The key file {path} lies in {home}, beside what it opens: whoever copies the one has the other. Move it out of there and name its new place in {KEY_VARIABLE}."
    )]
    KeyAtHome { path: String, home: String },
    #[error("{path} cannot be used: {source}.")]
    Unusable { path: String, source: io::Error },
    #[error(
        "{path} cannot be opened with the key from {key}: it was written with another one, or is damaged. Give the key that it was written with; or move the file away to begin without secrets. It was left as it is."
    )]
    WrongKey { path: String, key: String },
}

impl FileKey {
    /// From the systemd credential, else from the file that `NEURON_SECRETS_KEY_FILE` names.
    ///
    /// # Errors
    /// [`FileVaultError`]
    pub fn from_environment() -> Result<Self, FileVaultError> {
        let credential = std::env::var_os("CREDENTIALS_DIRECTORY")
            .map(|folder| Path::new(&folder).join(CREDENTIAL))
            .filter(|path| path.exists());
        if let Some(path) = credential {
            return Self::read(&path, Readers::AsGiven);
        }
        let named = std::env::var_os(KEY_VARIABLE).filter(|path| !path.is_empty());
        Self::read(Path::new(&named.ok_or(FileVaultError::NoKey)?), Readers::OnlyMe)
    }

    fn read(path: &Path, readers: Readers) -> Result<Self, FileVaultError> {
        let shown = || path.display().to_string();
        let unreadable = |source| FileVaultError::KeyUnreadable { path: shown(), source };
        let about = fs::metadata(path).map_err(unreadable)?;
        if about.len() > LONGEST_KEY {
            return Err(unreadable(io::ErrorKind::FileTooLarge.into()));
        }
        if readers == Readers::OnlyMe && is_shared(&about) {
            return Err(FileVaultError::KeyShared { path: shown() });
        }
        let content = SecretBox::new(Box::new(fs::read(path).map_err(unreadable)?));
        let key = content.expose_secret().trim_ascii_end();
        if key.len() < SHORTEST_KEY {
            return Err(FileVaultError::KeyTooShort { path: shown() });
        }
        let digest = Sha256::new_with_prefix(b"neuron-connect secrets key\0").chain_update(key);
        Ok(Self {
            bytes: Arc::new(SecretBox::new(Box::new(digest.finalize().into()))),
            from: path.to_owned(),
        })
    }

    /// Whether the key itself, past all links, lies in this folder.
    fn lies_in(&self, folder: &Path) -> io::Result<bool> {
        Ok(fs::canonicalize(&self.from)?.starts_with(fs::canonicalize(folder)?))
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(self.bytes.expose_secret().into())
    }
}

/// Who may read a key file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Readers {
    OnlyMe,
    /// Whoever the service's manager lets.
    AsGiven,
}

#[cfg(unix)]
fn is_shared(about: &fs::Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o077 != 0
}

#[cfg(not(unix))]
fn is_shared(_about: &fs::Metadata) -> bool {
    false
}

/// The file with what it holds.
#[derive(Clone)]
pub(super) struct FileVault(Arc<Mutex<Open>>);

struct Open {
    path: PathBuf,
    key: FileKey,
    values: BTreeMap<String, SecretString>,
}

impl FileVault {
    /// Opens the file of this home; one that is missing holds nothing.
    ///
    /// # Errors
    /// [`FileVaultError`]
    pub(super) fn open(path: PathBuf, key: FileKey, home: &Path) -> Result<Self, FileVaultError> {
        let shown = || path.display().to_string();
        let from = || key.from.display().to_string();
        let unreadable = |source| FileVaultError::KeyUnreadable { path: from(), source };
        if key.lies_in(home).map_err(unreadable)? {
            return Err(FileVaultError::KeyAtHome {
                path: from(),
                home: home.display().to_string(),
            });
        }
        let values = match fs::read(&path) {
            Ok(bytes) => unseal(&bytes, &key).ok_or_else(|| FileVaultError::WrongKey {
                path: shown(),
                key: from(),
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(source) => return Err(FileVaultError::Unusable { path: shown(), source }),
        };
        Ok(Self(Arc::new(Mutex::new(Open { path, key, values }))))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Saves what `change` makes of the values; where that fails they stay as they were.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, SecretString>)) -> Result<(), KeychainFault> {
        let mut open = self.lock();
        let mut values = open.values.clone();
        change(&mut values);
        let path = open.path.display();
        let bytes = seal(&values, &open.key)
            .ok_or_else(|| KeychainFault::Refused(format!("what {path} is to hold could not be encrypted")))?;
        replace_file(&mut RealDisk, &open.path, &bytes)
            .map_err(|error| KeychainFault::Refused(format!("{path} could not be written ({error})")))?;
        open.values = values;
        Ok(())
    }
}

impl Vault for FileVault {
    fn get(&mut self, account: &str) -> Result<Option<SecretString>, KeychainFault> {
        Ok(self.lock().values.get(account).cloned())
    }

    fn set(&mut self, account: &str, value: &SecretString) -> Result<(), KeychainFault> {
        self.change(|values| {
            values.insert(account.to_owned(), value.clone());
        })
    }

    fn delete(&mut self, account: &str) -> Result<(), KeychainFault> {
        if !self.lock().values.contains_key(account) {
            return Ok(());
        }
        self.change(|values| {
            values.remove(account);
        })
    }

    fn check(&mut self) -> Result<(), KeychainFault> {
        Ok(())
    }
}

fn seal(values: &BTreeMap<String, SecretString>, key: &FileKey) -> Option<Vec<u8>> {
    let plain: BTreeMap<&str, &str> = values
        .iter()
        .map(|(account, value)| (account.as_str(), value.expose_secret()))
        .collect();
    let plain = SecretBox::new(Box::new(serde_json::to_vec(&plain).ok()?));
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).ok()?;
    let payload = Payload {
        msg: plain.expose_secret(),
        aad: MAGIC,
    };
    let sealed = key.cipher().encrypt(&XNonce::from(nonce), payload).ok()?;
    Some([MAGIC, &nonce, &sealed].concat())
}

fn unseal(bytes: &[u8], key: &FileKey) -> Option<BTreeMap<String, SecretString>> {
    let (nonce, sealed) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<NONCE>()?;
    let payload = Payload {
        msg: sealed,
        aad: MAGIC,
    };
    let plain = key.cipher().decrypt(&XNonce::from(*nonce), payload).ok()?;
    let plain = SecretBox::new(Box::new(plain));
    let values: BTreeMap<String, String> = serde_json::from_slice(plain.expose_secret()).ok()?;
    Some(
        values
            .into_iter()
            .map(|(account, value)| (account, value.into()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(folder: &Path, name: &str, text: &str) -> Result<FileKey, FileVaultError> {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        FileKey::read(&path, Readers::OnlyMe)
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_and_readable_nowhere_else() {
        let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = home.path().join("secrets.bin");
        let key = key(folder.path(), "key", &"k".repeat(32)).unwrap();
        let mut vault = FileVault::open(path.clone(), key.clone(), home.path()).unwrap();
        vault.set("a", &"SENTINEL-1".to_owned().into()).unwrap();
        vault.set("a", &"SENTINEL-2".to_owned().into()).unwrap();
        vault.set("b:oauth", &"SENTINEL-3".to_owned().into()).unwrap();
        vault.delete("b:oauth").unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("SENTINEL"));
        let mut again = FileVault::open(path, key, home.path()).unwrap();
        assert_eq!(again.get("a").unwrap().unwrap().expose_secret(), "SENTINEL-2");
        assert!(again.get("b:oauth").unwrap().is_none());
    }

    #[test]
    fn a_wrong_key_names_the_file_and_leaves_it_as_it_is() {
        let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = home.path().join("secrets.bin");
        let right = key(folder.path(), "right", &"r".repeat(64)).unwrap();
        let wrong = key(folder.path(), "wrong", &"w".repeat(64)).unwrap();
        let mut vault = FileVault::open(path.clone(), right, home.path()).unwrap();
        vault.set("a", &"x".to_owned().into()).unwrap();
        let before = fs::read(&path).unwrap();
        let Err(refused) = FileVault::open(path.clone(), wrong, home.path()) else {
            panic!("it opened")
        };
        let told = refused.to_string();
        assert!(told.contains("secrets.bin") && told.contains("wrong") && told.contains("move the file away"));
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[cfg(unix)]
    #[test]
    fn a_key_in_the_home_is_refused_wherever_its_path_seems_to_lead() {
        let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let inside = key(home.path(), "key", &"k".repeat(64)).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&inside.from, &link).unwrap();
        let linked = FileKey::read(&link, Readers::OnlyMe).unwrap();
        for key in [inside, linked] {
            let opened = FileVault::open(home.path().join("secrets.bin"), key, home.path());
            let told = opened.err().map(|refused| refused.to_string()).unwrap_or_default();
            assert!(told.contains("Move it out of there"), "{told}");
        }
    }

    #[test]
    fn a_key_that_is_short_or_open_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let short = key(folder.path(), "short", "password\n");
        assert!(matches!(short, Err(FileVaultError::KeyTooShort { .. })));
        #[cfg(unix)]
        {
            let path = folder.path().join("open");
            fs::write(&path, "k".repeat(64)).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
            let open = FileKey::read(&path, Readers::OnlyMe);
            assert!(matches!(open, Err(FileVaultError::KeyShared { .. })));
        }
    }
}

//! Arguments that hand over a whole disk, the person's home or this app's own folder. Pure.

use std::path::{Component, Path, PathBuf};

/// Whether an argument is such a folder, or an option with one: `/`, `--root=/home`, `file:///`.
pub(super) fn is_wide(argument: &str, home: &Path, own: &Path) -> bool {
    let value = match argument.split_once('=') {
        Some((name, value)) if name.starts_with('-') => value,
        Some(_) | None => argument,
    };
    let path = value.strip_prefix("file://").unwrap_or(value);
    is_wide_path(path, home, own)
}

/// The folders of this computer that a container is given, as `-v FOLDER:…` and `--mount …source=FOLDER…` spell it.
pub(super) fn mounted(args: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for (index, arg) in args.iter().enumerate() {
        let value = |names: &[&str]| -> Option<&str> {
            if names.contains(&arg.as_str()) {
                return args.get(index + 1).map(String::as_str);
            }
            names.iter().find_map(|name| {
                let rest = arg.strip_prefix(name)?;
                match name.starts_with("--") {
                    true => rest.strip_prefix('='),
                    false => Some(rest),
                }
            })
        };
        if let Some(volume) = value(&["-v", "--volume"]) {
            // `C:\x:/y`: the first colon belongs to a drive.
            let is_drive = volume.get(1..3).is_some_and(|two| two == ":\\" || two == ":/");
            let from = if is_drive && !volume.starts_with('/') { 2 } else { 0 };
            if let Some(colon) = volume[from..].find(':') {
                found.push(volume[..from + colon].to_owned());
            }
        }
        if let Some(mount) = value(&["--mount"]) {
            let mut parts = mount.split(',');
            let source = parts.find_map(|part| part.strip_prefix("source=").or_else(|| part.strip_prefix("src=")));
            found.extend(source.map(str::to_owned));
        }
    }
    found
}

pub(super) fn is_wide_path(text: &str, home: &Path, own: &Path) -> bool {
    if is_drive(text) {
        return true;
    }
    let Some(path) = tidy(text) else { return false };
    let others = [
        "/Users", "/root", "/etc", "/mnt", "/media", "/Volumes", "/var", "/usr", "/System",
    ];
    others.iter().any(|root| path == Path::new(root))
        || path.starts_with(own)
        || home.starts_with(&path)
        || own.starts_with(&path)
}

/// `C:`, `C:\`, `C:/`
fn is_drive(text: &str) -> bool {
    let bytes = text.as_bytes();
    matches!(bytes, [letter, b':'] | [letter, b':', b'\\' | b'/'] if letter.is_ascii_alphabetic())
}

/// An absolute path without what leads nowhere.
fn tidy(text: &str) -> Option<PathBuf> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return None;
    }
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                tidy.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => tidy.push(part),
        }
    }
    Some(tidy)
}

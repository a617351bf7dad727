//! Where a path leads: the one look at the disk that a condition on folders needs, and the comparison (pure).

use std::path::{Component, Path, PathBuf};

/// Whether `place` is `folder` or in it. Both resolved.
pub(super) fn is_inside(place: &Path, folder: &Path) -> bool {
    folder.is_absolute() && place.is_absolute() && place.starts_with(folder)
}

/// Where `text` leads for a program that runs in `folder`, links followed, `~` being `home`; the last parts need not be
/// there.
///
/// `None` where programs would read it differently, such as `..` behind a link, `~somebody` or an address, and where it
/// cannot be looked at. Reads the disk.
pub fn real_place(text: &str, folder: &Path, home: &Path) -> Option<PathBuf> {
    if text.is_empty() || text.contains('\0') || text.contains("://") || text.starts_with("file:") {
        return None;
    }
    let written = match text.strip_prefix('~') {
        None => folder.join(text),
        Some("") => home.to_owned(),
        Some(rest) => home.join(rest.strip_prefix('/')?.trim_start_matches('/')),
    };
    let followed = follow(&written)?;
    let climbs = written.components().any(|part| part == Component::ParentDir);
    // Some programs strike `..` out before they look, some follow links first.
    if climbs && follow(&without_parents(&written)?)? != followed {
        return None;
    }
    Some(followed)
}

/// All links of what is there followed, with what is not there appended.
fn follow(path: &Path) -> Option<PathBuf> {
    let mut missing = Vec::new();
    for there in path.ancestors() {
        match there.canonicalize() {
            Ok(mut real) => {
                real.extend(missing.iter().rev());
                return Some(real);
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                // A link that leads nowhere is there: writing through it makes its target.
                if there.symlink_metadata().is_ok() {
                    return None;
                }
                // `..` of what is not there has no name, and nobody can say where it leads.
                missing.push(there.file_name()?);
            }
            Err(_) => return None,
        }
    }
    None
}

fn without_parents(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(part),
        }
    }
    Some(out)
}

#[cfg(test)]
#[cfg(unix)]
mod tests;

//! Where a path leads: the one look at the disk that a condition on folders needs, and the comparison (pure).

use std::path::{Component, Path, PathBuf};

use super::ground::{Ground, Tilde};
use crate::trust::scan::is_hidden;

/// Whether `place` is `folder` or in it. Both resolved.
pub(super) fn is_inside(place: &Path, folder: &Path) -> bool {
    folder.is_absolute() && place.is_absolute() && place.starts_with(folder)
}

/// Where a folder is that a person names, links followed: relative to `home`. `None` where it cannot be looked at, or
/// another program would find another one by the same path. Reads the disk.
pub fn real_folder(text: &str, home: &Path) -> Option<PathBuf> {
    if text.is_empty() || text.contains('\0') {
        return None;
    }
    real(&home.join(text))
}

/// Every place where `text` may lead for a program, links followed; the last parts need not be there.
///
/// `None` where programs would read it differently, such as `..` behind a link, `~somebody`, an address, or what each
/// process finds something else at, and where it cannot be looked at. Reads the disk.
pub fn real_places(text: &str, ground: &Ground) -> Option<Vec<PathBuf>> {
    if !is_plain(text) {
        return None;
    }
    let mut written = Vec::new();
    let is_name = match (text.strip_prefix('~'), &ground.tilde) {
        (None, _) => true,
        (Some(_), Tilde::Unknown) => return None,
        (Some(rest), Tilde::Home(home) | Tilde::Perhaps(home)) => {
            let rest = match rest {
                "" => "",
                rest => rest.strip_prefix('/')?.trim_start_matches('/'),
            };
            written.push(home.join(rest));
            matches!(ground.tilde, Tilde::Perhaps(_))
        }
    };
    if is_name && Path::new(text).is_absolute() {
        written.push(PathBuf::from(text));
    } else if is_name {
        written.push(ground.folder.as_ref()?.join(text));
        let named = ground.named.iter().filter(|named| named.is_dir());
        written.extend(named.map(|named| named.join(text)));
    }
    // These signs stand for other names to many programs.
    let stands_for_others = text.contains(['*', '?', '[', ']', '{', '}']);
    written
        .iter()
        .map(|path| match stands_for_others && path.symlink_metadata().is_err() {
            true => None,
            false => real(path),
        })
        .collect()
}

/// Whether every program would take it for the same path, and for one.
fn is_plain(text: &str) -> bool {
    let is_edge = |c: char| c.is_whitespace() || is_hidden(c) || matches!(c, '"' | '\'' | '`');
    let begins_oddly = |c: char| is_edge(c) || matches!(c, '-' | '@' | '<' | '>' | '|' | '&' | '=' | '!' | ':');
    !text.is_empty()
        && !text.starts_with(begins_oddly)
        && !text.ends_with(is_edge)
        && !text.contains(|c: char| c.is_control() || c == '`')
        && (cfg!(windows) || !text.contains('\\'))
        && !begins_with_scheme(text)
        && !names_variable(text)
        && !names_more(text)
}

/// `file:/x`, `FILE:x`: what is behind may be the path, or all of it.
fn begins_with_scheme(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let is_drive = cfg!(windows) && scheme.len() == 1 && rest.starts_with(['/', '\\']);
    !is_drive
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// `$HOME/x`, `${HOME}`, `%USERPROFILE%`.
fn names_variable(text: &str) -> bool {
    let dollar = text.split('$').skip(1);
    let mut behind = dollar.map(|rest| rest.chars().next());
    behind.any(|next| next.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '{' | '(')))
        || text.matches('%').count() > 1
}

/// Whether another path may begin within it, such as behind a comma.
fn names_more(text: &str) -> bool {
    let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '|');
    let mut parts = text.split(is_between);
    // The first one is where the text begins.
    parts.next();
    parts.any(|part| part.starts_with(['/', '\\', '~']) || part.starts_with(".."))
}

fn real(written: &Path) -> Option<PathBuf> {
    if leads_to_process(written) {
        return None;
    }
    let followed = follow(written)?;
    let climbs = written.components().any(|part| part == Component::ParentDir);
    // Some programs strike `..` out before they look, some follow links first.
    if climbs {
        let struck = without_parents(written)?;
        if leads_to_process(&struck) || follow(&struck)? != followed {
            return None;
        }
    }
    Some(followed)
}

/// Most links on the way (Linux `MAXSYMLINKS`).
const MOST_LINKS: usize = 40;

/// Whether the way leads by something that each process finds something else at, such as `/proc/self` and `/dev/fd`.
fn leads_to_process(path: &Path) -> bool {
    let mut ahead: Vec<PathBuf> = vec![path.to_owned()];
    let mut here = PathBuf::new();
    let mut links = 0;
    while let Some(next) = ahead.pop() {
        let mut parts = next.components();
        let Some(part) = parts.next() else {
            continue;
        };
        ahead.push(parts.as_path().to_owned());
        match part {
            Component::Prefix(_) | Component::RootDir => here = PathBuf::from(part.as_os_str()),
            Component::CurDir => {}
            Component::ParentDir => {
                here.pop();
            }
            Component::Normal(name) => here.push(name),
        }
        if is_of_process(&here) {
            return true;
        }
        if let (Component::Normal(_), Ok(target)) = (part, here.read_link()) {
            links += 1;
            if links > MOST_LINKS {
                return true;
            }
            here.pop();
            ahead.push(target);
        }
    }
    false
}

fn is_of_process(path: &Path) -> bool {
    [
        "/proc",
        "/dev/fd",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/tty",
    ]
    .iter()
    .any(|place| path.starts_with(place))
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

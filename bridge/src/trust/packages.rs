//! Which packages a command line has a runner fetch, and whether their versions are fixed. Pure.
//!
//! Knows how npx and its kin, uvx and its kin, containers, Deno and Go spell it. Never looks anything up.

use std::ops::Range;

/// Who fetches a package and runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registry {
    /// `npx`, `bunx`, `pnpm dlx`, `yarn dlx`, `npm exec`.
    Npm,
    /// `uvx`, `uv tool run`, `pipx run`.
    Python,
    /// An image that `docker run` and its kin fetch.
    Image,
    /// Whatever else is fetched from an address or by a path.
    Other,
}

/// One package in a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    pub registry: Registry,
    /// Its name as its registry knows it, without a version.
    pub name: String,
    /// As it is written, with its version where it has one.
    pub spec: String,
    /// Whether exactly one version can be meant.
    pub pinned: bool,
    /// The argument in which it is written, and the bytes of it there.
    pub arg: usize,
    pub bytes: Range<usize>,
}

/// The runner's name without folder and ending, in lower case.
pub(super) fn base_name(command: &str) -> String {
    let name = command
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or(command)
        .to_ascii_lowercase();
    let bare = [".exe", ".cmd", ".bat", ".ps1"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending));
    bare.unwrap_or(&name).to_owned()
}

/// The packages that `command` with `args` has fetched. `arg` of each counts from the first of `args`.
pub fn packages(command: &str, args: &[String]) -> Vec<Package> {
    let word = |index: usize| args.get(index).map(String::as_str);
    match (base_name(command).as_str(), word(0), word(1)) {
        ("npx" | "bunx" | "pnpx", ..) => npm(args, 0),
        ("npm", Some("exec" | "x"), _) | ("pnpm" | "yarn", Some("dlx"), _) | ("bun", Some("x"), _) => npm(args, 1),
        ("uvx", ..) => python(args, 0),
        ("uv", Some("tool"), Some("run")) => python(args, 2),
        ("uv", Some("run"), _) => uv_run(args),
        ("pipx", Some("run"), _) => python(args, 1),
        ("docker" | "podman" | "nerdctl", Some("run"), _) => image(args, 1),
        ("docker" | "podman", Some("container"), Some("run")) => image(args, 2),
        ("deno", Some("run"), _) => deno(args, 1),
        ("go", Some("run"), _) => go(args, 1),
        _ => Vec::new(),
    }
}

/// A package that one of the runner's own options names.
struct Named {
    option: &'static str,
    arg: usize,
    /// Bytes of the argument before it.
    start: usize,
}

/// Walks a runner's own options, of which those in `valued` take a word of no interest here. With the index of the first word
/// behind them.
fn options(args: &[String], from: usize, naming: &[&'static str], valued: &[&str]) -> (Vec<Named>, usize) {
    let mut named = Vec::new();
    let mut index = from;
    while let Some(arg) = args.get(index) {
        let value = naming
            .iter()
            .find_map(|option| Some((*option, value_of(args, index, option)?)));
        if let Some((option, (arg, start))) = value {
            named.push(Named { option, arg, start });
            index = arg + 1;
        } else if valued.contains(&arg.as_str()) {
            index += 2;
        } else if arg == "--" {
            return (named, index + 1);
        } else if arg.starts_with('-') {
            index += 1;
        } else {
            break;
        }
    }
    (named, index)
}

/// An option's value: in the same argument after `=`, or the next argument.
fn value_of(args: &[String], index: usize, option: &str) -> Option<(usize, usize)> {
    let arg = &args[index];
    if arg == option {
        return args.get(index + 1).map(|_| (index + 1, 0));
    }
    let (name, _) = arg.split_once('=')?;
    (name == option).then_some((index, name.len() + 1))
}

fn npm(args: &[String], from: usize) -> Vec<Package> {
    const VALUED: &[&str] = &[
        "--registry",
        "--cache",
        "--userconfig",
        "--prefix",
        "-w",
        "--workspace",
        "-c",
        "--call",
    ];
    let (named, index) = options(args, from, &["-p", "--package"], VALUED);
    let mut found: Vec<_> = named
        .iter()
        .filter_map(|named| npm_package(args, named.arg, named.start))
        .collect();
    // With packages named apart, the first word is a command that one of them brings.
    if found.is_empty() && index < args.len() {
        found.extend(npm_package(args, index, 0));
    }
    found
}

fn npm_package(args: &[String], arg: usize, start: usize) -> Option<Package> {
    let spec = args[arg][start..].to_owned();
    if spec.is_empty() || is_local(&spec) {
        return None;
    }
    let bytes = start..args[arg].len();
    let package = |registry, name: &str, pinned| Package {
        registry,
        name: name.to_owned(),
        spec: spec.clone(),
        pinned,
        arg,
        bytes: bytes.clone(),
    };
    let is_scoped = spec.starts_with('@');
    // An address, or `owner/repository`.
    if spec.contains(':') && !spec[1..].contains('@') || (!is_scoped && spec.contains('/')) || spec.contains("://") {
        return Some(package(Registry::Other, &spec, is_commit(&spec, '#')));
    }
    let (name, version) = match spec[1..].rfind('@') {
        Some(at) => (&spec[..=at], Some(&spec[at + 2..])),
        None => (spec.as_str(), None),
    };
    Some(package(Registry::Npm, name, version.is_some_and(is_exact_semver)))
}

fn python(args: &[String], from: usize) -> Vec<Package> {
    const VALUED: &[&str] = &[
        "-p",
        "--python",
        "--index-url",
        "--index",
        "--default-index",
        "--extra-index-url",
        "-i",
        "--find-links",
        "-f",
        "--with-requirements",
        "--constraints",
        "-c",
        "--overrides",
        "--env-file",
        "--directory",
        "--project",
        "--cache-dir",
        "--config-file",
        "--refresh-package",
        "--upgrade-package",
        "-P",
        "--resolution",
        "--prerelease",
        "--exclude-newer",
        "--pip-args",
        "--color",
        "--link-mode",
        "--keyring-provider",
        "--index-strategy",
    ];
    let (named, index) = options(args, from, &["--from", "--spec", "--with", "--with-editable"], VALUED);
    let is_named = named.iter().any(|named| ["--from", "--spec"].contains(&named.option));
    let mut found: Vec<_> = named
        .iter()
        .filter_map(|named| python_package(args, named.arg, named.start))
        .collect();
    if !is_named && index < args.len() {
        // The tool itself is the first to be told of.
        let tool = python_package(args, index, 0);
        found.splice(0..0, tool);
    }
    found
}

/// Runs what is here, with packages beside it.
fn uv_run(args: &[String]) -> Vec<Package> {
    let mut found = Vec::new();
    for index in 1..args.len() {
        if let Some((at, start)) = value_of(args, index, "--with") {
            found.extend(python_package(args, at, start));
        }
        if !args[index].starts_with('-') && !args[index - 1].starts_with('-') {
            break;
        }
    }
    found
}

fn python_package(args: &[String], arg: usize, start: usize) -> Option<Package> {
    let spec = args[arg][start..].to_owned();
    if spec.is_empty() || is_local(&spec) {
        return None;
    }
    let bytes = start..args[arg].len();
    if spec.contains("://") || spec.contains('/') {
        let pinned = is_commit(&spec, '@');
        return Some(Package {
            registry: Registry::Other,
            name: spec.clone(),
            spec,
            pinned,
            arg,
            bytes,
        });
    }
    let end = spec
        .find(['=', '<', '>', '!', '~', '@', ';', ' '])
        .unwrap_or(spec.len());
    let (name, version) = spec.split_at(end);
    let exact = version
        .trim()
        .strip_prefix("===")
        .or_else(|| version.trim().strip_prefix("=="))
        .or_else(|| version.trim().strip_prefix('@'));
    let pinned = exact.is_some_and(|version| is_exact_python(version.trim()));
    let name = name.split('[').next().unwrap_or(name).to_owned();
    Some(Package {
        registry: Registry::Python,
        name,
        pinned,
        spec,
        arg,
        bytes,
    })
}

fn image(args: &[String], from: usize) -> Vec<Package> {
    const PLAIN: &[&str] = &[
        "--rm",
        "--init",
        "--privileged",
        "--read-only",
        "--interactive",
        "--tty",
        "--detach",
        "--publish-all",
        "--quiet",
        "--no-healthcheck",
        "--oom-kill-disable",
        "--sig-proxy",
        "--disable-content-trust",
        "--replace",
        "--tls-verify",
    ];
    let mut index = from;
    while let Some(arg) = args.get(index) {
        index += match arg.as_str() {
            "--" => {
                index += 1;
                break;
            }
            long if long.starts_with("--") => {
                if long.contains('=') || PLAIN.contains(&long) {
                    1
                } else {
                    2
                }
            }
            short if short.starts_with('-') && short.len() > 1 => {
                let letters = &short[1..];
                let last = letters.chars().next_back().unwrap_or('i');
                let all_plain = letters.chars().all(|letter| "itdPq".contains(letter));
                // `-e NAME` takes the next one, `-eNAME` does not; `-ite` ends with one that does.
                let takes_next = !all_plain
                    && (letters.len() == 1
                        || letters[..letters.len() - last.len_utf8()]
                            .chars()
                            .all(|letter| "itdPq".contains(letter)));
                if takes_next { 2 } else { 1 }
            }
            _ => break,
        };
    }
    let Some(spec) = args.get(index) else { return Vec::new() };
    let (name, digest) = match spec.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (spec.as_str(), None),
    };
    // A colon before the last slash is a port.
    let file = name.rfind('/').map_or(0, |slash| slash + 1);
    let (bare, tag) = match name[file..].rfind(':') {
        Some(colon) => (&name[..file + colon], Some(&name[file + colon + 1..])),
        None => (name, None),
    };
    let pinned = digest.is_some_and(|digest| digest.starts_with("sha256:"))
        || tag.is_some_and(|tag| !tag.is_empty() && tag != "latest");
    vec![Package {
        registry: Registry::Image,
        name: bare.to_owned(),
        spec: spec.clone(),
        pinned,
        arg: index,
        bytes: 0..spec.len(),
    }]
}

fn deno(args: &[String], from: usize) -> Vec<Package> {
    let script = args
        .iter()
        .enumerate()
        .skip(from)
        .find(|(_, arg)| !arg.starts_with('-'));
    let Some((arg, spec)) = script else { return Vec::new() };
    let registry = ["npm:", "jsr:"].iter().find_map(|prefix| spec.strip_prefix(prefix));
    let pinned = match registry {
        Some(rest) => rest
            .get(1..)
            .and_then(|rest| rest.rsplit_once('@'))
            .is_some_and(|(_, version)| is_exact_semver(version.split('/').next().unwrap_or(version))),
        None if spec.contains("://") => false,
        None => return Vec::new(),
    };
    vec![Package {
        registry: Registry::Other,
        name: spec.clone(),
        spec: spec.clone(),
        pinned,
        arg,
        bytes: 0..spec.len(),
    }]
}

fn go(args: &[String], from: usize) -> Vec<Package> {
    let module = args
        .iter()
        .enumerate()
        .skip(from)
        .find(|(_, arg)| !arg.starts_with('-'));
    let Some((arg, spec)) = module.filter(|(_, spec)| spec.contains('@')) else {
        return Vec::new();
    };
    let version = spec.rsplit_once('@').map_or("", |(_, version)| version);
    vec![Package {
        registry: Registry::Other,
        name: spec.clone(),
        spec: spec.clone(),
        pinned: version.strip_prefix('v').is_some_and(is_exact_semver),
        arg,
        bytes: 0..spec.len(),
    }]
}

fn is_local(spec: &str) -> bool {
    spec.starts_with(['.', '/', '~']) || spec.starts_with("file:")
}

fn is_exact_semver(version: &str) -> bool {
    let version = version.strip_prefix('=').unwrap_or(version);
    let core = version.split(['-', '+']).next().unwrap_or(version);
    let numbers: Vec<&str> = core.split('.').collect();
    numbers.len() == 3
        && numbers
            .iter()
            .all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

fn is_exact_python(version: &str) -> bool {
    !version.is_empty()
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'+' | b'!' | b'-' | b'_'))
}

/// Whether an address ends in a whole commit.
fn is_commit(spec: &str, mark: char) -> bool {
    let end = spec.rsplit(mark).next().unwrap_or_default();
    end.len() == 40 && spec.len() > 40 && end.bytes().all(|b| b.is_ascii_hexdigit())
}

/// A package's name that is safe to give to a package manager as an argument.
pub fn is_plain_name(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '@' | '/' | '.' | '_' | '-');
    !name.is_empty() && name.len() <= 214 && !name.starts_with('-') && name.chars().all(legal)
}

/// A version that pins, safe to write behind a name.
pub fn is_plain_version(version: &str) -> bool {
    version.len() <= 64 && is_exact_python(version)
}

/// How a package is written with this version; `None` where its registry knows none.
pub fn pinned_spec(package: &Package, version: &str) -> Option<String> {
    match package.registry {
        Registry::Npm => Some(format!("{}@{version}", package.name)),
        Registry::Python => {
            let extras = package.spec.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
            let extras = extras.map(|(extras, _)| format!("[{extras}]")).unwrap_or_default();
            Some(format!("{}{extras}=={version}", package.name))
        }
        Registry::Image | Registry::Other => None,
    }
}

#[cfg(test)]
mod tests;

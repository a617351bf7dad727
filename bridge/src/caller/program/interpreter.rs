//! What an interpreter was told to run, read from its arguments as it reads them itself.
//!
//! A wrong guess would put one program's name on another, so whatever is not surely understood is [`Told::Unclear`]:
//! also options that load further code before the script.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// What an interpreter's arguments name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// As written, perhaps relative.
    File(PathBuf),
    Module(String),
    Inline,
    Unclear,
}

/// What the program of this name runs; `None` = it is no interpreter. `args` begin with the program's own name.
pub(super) fn script(name: &str, args: &[OsString]) -> Option<Told> {
    let kind = Kind::of(name, args.first().map(OsString::as_os_str))?;
    let rest: Option<Vec<&str>> = args.iter().skip(1).map(|arg| arg.to_str()).collect();
    // Only the unsure case is lost with names that are not UTF-8.
    let Some(rest) = rest else { return Some(Told::Unclear) };
    Some(kind.told(&rest))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Python,
    Node,
    Deno,
    Bun,
    Ruby,
    Perl,
    Php,
    Shell,
    Java,
    /// Runs its first argument; nothing is known of its options.
    Plain,
    /// Says nothing of what runs.
    Opaque,
}

impl Kind {
    fn of(name: &str, own: Option<&OsStr>) -> Option<Self> {
        let lower = name.to_ascii_lowercase();
        let versionless = lower.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
        Some(match versionless {
            _ if ["python", "pypy"].iter().any(|name| lower.starts_with(name)) => Self::Python,
            "node" | "nodejs" => Self::Node,
            "deno" => Self::Deno,
            "bun" => Self::Bun,
            "ruby" => Self::Ruby,
            "perl" => Self::Perl,
            "php" | "php-cli" => Self::Php,
            "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ash" | "fish" => Self::Shell,
            "java" | "javaw" => Self::Java,
            "lua" | "luajit" | "tclsh" | "gjs" | "qjs" | "rscript" | "julia" | "dotnet" | "cscript" | "wscript" => {
                Self::Plain
            }
            "busybox" | "toybox" => match own.map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str) {
                Some("sh" | "ash" | "hush") => Self::Shell,
                _ => Self::Opaque,
            },
            "cmd" | "powershell" | "pwsh" | "osascript" | "uv" | "uvx" | "npx" | "npm" | "pnpm" | "yarn" | "env"
            | "electron" | "mono" | "wine" | "racket" | "guile" | "beam.smp" | "erl" | "elixir" | "r" | "scheme"
            | "sbcl" => Self::Opaque,
            _ if lower.starts_with("ld-") || lower.starts_with("wine") => Self::Opaque,
            _ => return None,
        })
    }

    fn told(self, args: &[&str]) -> Told {
        match self {
            Self::Python => python(args),
            Self::Node => node(args),
            Self::Deno => deno(args),
            Self::Bun => bun(args),
            Self::Ruby => clustered(args, "e", "wWUavlns", &["--disable-gems", "--yjit"]),
            Self::Perl => clustered(args, "eE", "wWTtuUXnalps", &[]),
            Self::Php => php(args),
            Self::Shell => shell(args),
            Self::Java => java(args),
            Self::Plain => match args.first() {
                // Two strokes begin an option of Windows' script hosts.
                Some(first) if !first.starts_with('-') && !first.starts_with("//") => file(first),
                Some(_) => Told::Unclear,
                None => Told::Inline,
            },
            Self::Opaque => Told::Unclear,
        }
    }
}

/// A script's name; `-` is the input, an address is fetched.
fn file(name: &str) -> Told {
    match name {
        "" => Told::Unclear,
        "-" => Told::Inline,
        _ => Told::File(PathBuf::from(name)),
    }
}

/// <https://docs.python.org/3/using/cmdline.html>: one-letter options may stand together, `c`, `m`, `W` and `X` take what follows.
fn python(args: &[&str]) -> Told {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return file(arg);
        };
        if let Some(long) = letters.strip_prefix('-') {
            match long {
                "check-hash-based-pycs" => _ = args.next(),
                _ => return Told::Unclear,
            }
            continue;
        }
        for (at, letter) in letters.char_indices() {
            let rest = letters.get(at + 1..).unwrap_or_default();
            match letter {
                'c' => return Told::Inline,
                'm' => {
                    let module = if rest.is_empty() {
                        args.next().copied().unwrap_or_default()
                    } else {
                        rest
                    };
                    return if module.is_empty() {
                        Told::Unclear
                    } else {
                        Told::Module(module.to_owned())
                    };
                }
                'W' | 'X' => {
                    if rest.is_empty() {
                        args.next();
                    }
                    break;
                }
                'b' | 'B' | 'd' | 'E' | 'I' | 'O' | 'P' | 'q' | 'R' | 's' | 'S' | 'u' | 'v' | 'x' => {}
                _ => return Told::Unclear,
            }
        }
    }
    Told::Inline
}

/// <https://nodejs.org/api/cli.html>. Long options take their value after `=` or as the next argument, so only those are
/// passed over that take none or show theirs.
fn node(args: &[&str]) -> Told {
    for arg in args {
        match *arg {
            "-e" | "--eval" | "-p" | "--print" | "-pe" | "-" => return Told::Inline,
            "--no-warnings"
            | "--no-deprecation"
            | "--enable-source-maps"
            | "--trace-warnings"
            | "--trace-uncaught"
            | "--trace-deprecation"
            | "--expose-gc"
            | "--preserve-symlinks"
            | "--preserve-symlinks-main"
            | "--use-system-ca"
            | "--use-openssl-ca"
            | "--inspect"
            | "--inspect-brk"
            | "--pending-deprecation"
            | "--throw-deprecation"
            | "--experimental-strip-types"
            | "--experimental-vm-modules"
            | "--experimental-sqlite"
            | "--experimental-websocket"
            | "--experimental-transform-types" => {}
            "--" => {}
            _ if [
                "--max-old-space-size=",
                "--max-http-header-size=",
                "--stack-size=",
                "--inspect=",
                "--inspect-brk=",
                "--disable-warning=",
                "--dns-result-order=",
                "--unhandled-rejections=",
                "--title=",
            ]
            .iter()
            .any(|known| arg.starts_with(known)) => {}
            _ if arg.starts_with("--eval=") || arg.starts_with("--print=") => return Told::Inline,
            _ if arg.starts_with('-') => return Told::Unclear,
            _ => return file(arg),
        }
    }
    Told::Inline
}

/// `deno [run] [--flag[=value]…] script`.
fn deno(args: &[&str]) -> Told {
    let rest = match args {
        ["run" | "serve", rest @ ..] => rest,
        ["eval" | "repl", ..] | [] => return Told::Inline,
        [first, ..] if looks_like_script(first) => args,
        _ => return Told::Unclear,
    };
    script_after_plain_flags(
        rest,
        &[
            "-A",
            "--allow-all",
            "-q",
            "--quiet",
            "--no-check",
            "--no-lock",
            "--unstable",
        ],
        "--allow-",
    )
}

/// `bun [run] [--flag] script`.
fn bun(args: &[&str]) -> Told {
    match args {
        ["-e" | "--eval" | "-p" | "--print" | "repl", ..] | [] => Told::Inline,
        // Without an ending it may be a script of package.json or a command.
        ["run", rest @ ..] if rest.iter().any(|arg| looks_like_script(arg)) => {
            script_after_plain_flags(rest, &["--bun", "--hot", "--watch", "--silent", "--smol"], "--smol=")
        }
        [first, ..] if looks_like_script(first) => file(first),
        _ => Told::Unclear,
    }
}

fn looks_like_script(arg: &str) -> bool {
    !arg.starts_with('-')
        && Path::new(arg).extension().is_some_and(|end| {
            ["js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx"]
                .iter()
                .any(|known| end == *known)
        })
}

fn script_after_plain_flags(args: &[&str], flags: &[&str], prefix: &str) -> Told {
    let passed = |arg: &&&str| flags.contains(*arg) || arg.starts_with(prefix);
    match args.iter().find(|arg| !passed(arg)) {
        Some(arg) if arg.starts_with('-') && *arg != "-" => Told::Unclear,
        Some(arg) if arg.contains("://") || arg.starts_with("npm:") || arg.starts_with("jsr:") => {
            Told::Module((*arg).to_owned())
        }
        Some(arg) => file(arg),
        None => Told::Inline,
    }
}

/// ruby(1), perl(1): letters may stand together; those in `inline` are followed by code, those in `plain` by nothing.
fn clustered(args: &[&str], inline: &str, plain: &str, long: &[&str]) -> Told {
    for arg in args {
        let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return file(arg);
        };
        if long.contains(arg) {
            continue;
        }
        for letter in letters.chars() {
            match letter {
                _ if inline.contains(letter) => return Told::Inline,
                _ if plain.contains(letter) => {}
                _ => return Told::Unclear,
            }
        }
    }
    Told::Inline
}

fn php(args: &[&str]) -> Told {
    match args {
        [] | ["-r" | "-a" | "-R" | "-B" | "-S", ..] => Told::Inline,
        ["-f", name, ..] => file(name),
        [first, ..] if first.starts_with('-') && *first != "-" => Told::Unclear,
        [first, ..] => file(first),
    }
}

/// bash(1), dash(1), zsh(1).
fn shell(args: &[&str]) -> Told {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--norc" | "--noprofile" | "--posix" | "--login" | "--restricted" => continue,
            "--" => return args.next().map_or(Told::Inline, |name| file(name)),
            _ if arg.starts_with("--") => return Told::Unclear,
            _ => {}
        }
        let Some(letters) = arg.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty()) else {
            return file(arg);
        };
        if letters.contains(['c', 's']) {
            return Told::Inline;
        }
        if letters
            .chars()
            .any(|letter| !"abefhklmnoprtuvxBCEHPTil".contains(letter))
        {
            return Told::Unclear;
        }
        if letters.ends_with('o') {
            args.next();
        }
    }
    Told::Inline
}

/// A class is looked for where the class path says, so only an archive is a file of its own.
fn java(args: &[&str]) -> Told {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "-jar" => return args.next().map_or(Told::Unclear, |name| file(name)),
            _ if arg.starts_with("-X") && !arg.starts_with("-Xbootclasspath") => {}
            _ if arg.starts_with("-D") && !arg.starts_with("-Djava.") && !arg.starts_with("-Djdk.") => {}
            "-server" | "-client" | "-ea" | "-enableassertions" => {}
            _ if Path::new(arg).extension().is_some_and(|end| end == "java") && !arg.starts_with('-') => {
                return file(arg);
            }
            _ => return Told::Unclear,
        }
    }
    Told::Unclear
}

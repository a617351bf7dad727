//! Shells and interpreters that are given their program as text. Pure.

/// Whether `program` (its bare name) with these arguments runs code that stands in them.
pub(super) fn is_inline(program: &str, args: &[String]) -> bool {
    let has = |names: &[&str]| args.iter().any(|arg| is_option(arg, names));
    let versionless = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match versionless {
        "sh" | "bash" | "dash" | "zsh" | "ksh" | "mksh" | "ash" | "fish" | "csh" | "tcsh" | "rbash" | "xonsh"
        | "nu" | "elvish" => letters(args, "c", "oO") || has(&["--command", "--commands", "--init-file", "--rcfile"]),
        "python" | "pythonw" | "pypy" | "ipython" | "py" => {
            // What follows a module's name is the module's own.
            let end = args.iter().position(|arg| arg.starts_with("-m")).unwrap_or(args.len());
            letters(&args[..end], "c", "WX")
        }
        "node" | "nodejs" | "bun" | "tsx" | "ts-node" => {
            has(&[
                "-e",
                "--eval",
                "-p",
                "--print",
                "-pe",
                "--import",
                "--loader",
                "--experimental-loader",
            ]) || has(&["-r", "--require", "--preload"])
        }
        "deno" => args.iter().any(|arg| arg == "eval"),
        "perl" => letters(args, "eE", "IMm"),
        "ruby" | "jruby" => letters(args, "e", "IrC"),
        "php" => has(&["-r", "--run", "-B", "-R", "-E", "-d"]),
        "lua" | "luajit" | "julia" | "elixir" | "osascript" | "groovy" | "scala" | "raku" | "guile" | "racket"
        | "erl" | "tclsh" | "expect" | "swipl" | "clojure" | "bb" => {
            has(&["-e", "-E", "--eval", "-c", "--print", "-p", "-eval"])
        }
        "r" | "rscript" => has(&["-e"]),
        "awk" | "gawk" | "mawk" | "nawk" => !letters(args, "f", "Fv"),
        "powershell" | "pwsh" => args.iter().any(|arg| is_powershell_code(arg)),
        "cmd" => args.iter().any(|arg| {
            let arg = arg.to_ascii_lowercase();
            ["/c", "/k", "/r"].iter().any(|switch| arg.starts_with(switch))
        }),
        "env" => {
            let mut own = args.iter().take_while(|arg| arg.starts_with('-') || arg.contains('='));
            own.any(|arg| {
                let is_short = arg.starts_with('-') && !arg.starts_with("--");
                arg.starts_with("--split-string") || (is_short && arg.contains('S'))
            })
        }
        "su" | "runuser" | "script" | "flock" | "npx" | "npm" | "xterm" => has(&["-c", "--command", "--call"]),
        _ => false,
    }
}

/// `--eval`, `--eval=code`, and for one letter also `-ecode`.
fn is_option(arg: &str, names: &[&str]) -> bool {
    names.iter().any(|name| match arg.strip_prefix(name) {
        None => false,
        Some("") => true,
        Some(rest) => rest.starts_with('=') || (name.len() == 2 && rest.len() > 1),
    })
}

/// Whether one of these letters stands among the short options in front of the program: `-c`, `-lc`, `-Ic`. A letter of
/// `valued` takes what follows it.
fn letters(args: &[String], wanted: &str, valued: &str) -> bool {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(cluster) = arg.strip_prefix(['-', '+']).filter(|cluster| !cluster.is_empty()) else {
            return false;
        };
        if arg == "--" {
            return false;
        }
        if cluster.starts_with('-') {
            continue;
        }
        for (index, letter) in cluster.char_indices() {
            if wanted.contains(letter) {
                return true;
            }
            if valued.contains(letter) {
                if index + letter.len_utf8() == cluster.len() {
                    args.next();
                }
                break;
            }
        }
    }
    false
}

/// `-Command`, `-EncodedCommand` and every way in which they may be cut short.
fn is_powershell_code(arg: &str) -> bool {
    let Some(name) = arg.strip_prefix(['-', '/', '–']).map(str::to_ascii_lowercase) else {
        return false;
    };
    let name = name.split(':').next().unwrap_or_default();
    !name.is_empty()
        && ("command".starts_with(name)
            || "encodedcommand".starts_with(name)
            || name == "ec"
            || "commandwithargs".starts_with(name)
            || name == "cwa")
}

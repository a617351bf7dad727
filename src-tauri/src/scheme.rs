//! Makes links of our scheme reach this program on desktops where no installation did it. Only what is not ours already is
//! changed, and only where the person's own home is used: a link names no home.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::process::Command;

/// As in `neuron-connect.desktop`, from which installed desktop entries are made.
const KIND: &str = "x-scheme-handler/neuron-connect";
/// Our own entry, where there is no installed one.
const ENTRY: &str = "neuron-connect-links.desktop";
/// `xdg-mime` and `update-desktop-database` are done within a second.
const TOOL_DEADLINE: Duration = Duration::from_secs(5);

/// Whether links reach this program, after doing what is missing for that.
pub(crate) async fn reaches_us() -> bool {
    match register().await {
        Ok(()) => true,
        Err(why) => {
            tracing::info!("Links do not reach this program: {why}. Sign-ins come back over the port instead.");
            false
        }
    }
}

async fn register() -> Result<(), String> {
    if std::env::var_os("NEURON_HOME").is_some_and(|home| !home.is_empty()) {
        return Err("it runs in a home of its own".to_owned());
    }
    let own = std::env::current_exe().map_err(|e| format!("its own place is unknown ({e})"))?;
    if is_ours(&handler().await?, &own) {
        return Ok(());
    }
    let folder = data_home().ok_or("there is no home folder")?.join("applications");
    let entry = entry(&own).ok_or("its path cannot be written into a desktop entry")?;
    std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(folder.join(ENTRY), entry))
        .map_err(|e| format!("{} could not be written ({e})", folder.join(ENTRY).display()))?;
    // Not every desktop has it, or needs it.
    let _ = run("update-desktop-database", &[folder.as_os_str()]).await;
    run("xdg-mime", &["default".as_ref(), ENTRY.as_ref(), KIND.as_ref()]).await?;
    if is_ours(&handler().await?, &own) {
        Ok(())
    } else {
        Err("this desktop gives them to another program".to_owned())
    }
}

/// The desktop entry that gets our links; empty where there is none.
async fn handler() -> Result<String, String> {
    let said = run("xdg-mime", &["query".as_ref(), "default".as_ref(), KIND.as_ref()]).await?;
    Ok(said.trim().to_owned())
}

/// Whether the entry of this name runs exactly this program.
fn is_ours(name: &str, own: &Path) -> bool {
    if name.is_empty() || name.contains('/') {
        return false;
    }
    let found = data_folders().find_map(|folder| std::fs::read_to_string(folder.join("applications").join(name)).ok());
    let Some(text) = found else { return false };
    if name == ENTRY {
        return entry(own).is_some_and(|entry| entry == text);
    }
    let real = program(&text).and_then(find).and_then(|file| file.canonicalize().ok());
    real.is_some() && real == own.canonicalize().ok()
}

/// The program that an installed entry runs, as written; they are written without quotes.
fn program(entry: &str) -> Option<&Path> {
    let line = entry
        .lines()
        .take_while(|line| !line.starts_with("[Desktop Action"))
        .find_map(|line| line.strip_prefix("Exec="))?;
    line.split(' ').next().filter(|word| !word.is_empty()).map(Path::new)
}

/// Our entry; `None` for a path that it cannot name.
fn entry(own: &Path) -> Option<String> {
    let path = own.to_str()?;
    if path.chars().any(char::is_control) {
        return None;
    }
    let mut quoted = String::new();
    for c in path.chars() {
        match c {
            // Once for the quotes, and once more because a string's backslash is itself escaped.
            '"' | '`' | '$' | '\\' => quoted.push_str("\\\\"),
            _ => {}
        }
        match c {
            '\\' => quoted.push_str("\\\\"),
            '%' => quoted.push_str("%%"),
            _ => quoted.push(c),
        }
    }
    Some(format!(
        "[Desktop Entry]\nType=Application\nName=Neuron Connect\nExec=\"{quoted}\" %u\nTerminal=false\nNoDisplay=true\n\
         MimeType={KIND};\n"
    ))
}

fn find(named: &Path) -> Option<PathBuf> {
    if named.is_absolute() {
        return Some(named.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(named))
        .find(|file| file.is_file())
}

/// XDG Base Directory Specification.
fn data_folders() -> impl Iterator<Item = PathBuf> {
    let system = std::env::var("XDG_DATA_DIRS").unwrap_or_default();
    let system = if system.is_empty() {
        "/usr/local/share/:/usr/share/".to_owned()
    } else {
        system
    };
    let system: Vec<_> = system.split(':').map(PathBuf::from).collect();
    data_home().into_iter().chain(system)
}

fn data_home() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set("XDG_DATA_HOME")
        .filter(|folder| folder.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".local/share")))
}

async fn run(tool: &str, arguments: &[&OsStr]) -> Result<String, String> {
    let output = Command::new(tool)
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(TOOL_DEADLINE, output).await {
        Err(_elapsed) => Err(format!("{tool} does not end")),
        Ok(Err(e)) => Err(format!("{tool} could not be run ({e})")),
        Ok(Ok(output)) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(Ok(output)) => Err(format!("{tool} failed ({})", output.status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_a_path_so_that_no_part_of_it_is_read_as_something_else() {
        let written = entry(Path::new("/opt/a b/$x`\"%f\\n")).unwrap();
        let line = written.lines().find(|line| line.starts_with("Exec=")).unwrap();
        assert_eq!(line, r#"Exec="/opt/a b/\\$x\\`\\"%%f\\\\n" %u"#);
        assert!(written.contains("MimeType=x-scheme-handler/neuron-connect;\n"));
        assert_eq!(entry(Path::new("/opt/a\nExec=evil")), None);
    }

    #[test]
    fn the_program_of_an_installed_entry_is_its_first_word() {
        let named = |text| program(text).map(Path::to_owned);
        assert_eq!(
            named("[Desktop Entry]\nName=x\nExec=neuron-connect %u\n"),
            Some(PathBuf::from("neuron-connect"))
        );
        assert_eq!(named("[Desktop Entry]\nName=x\n[Desktop Action y]\nExec=other\n"), None);
        assert_eq!(named(""), None);
    }

    #[test]
    fn an_entry_elsewhere_or_without_a_name_is_not_ours() {
        let own = std::env::current_exe().unwrap();
        for name in ["", "../../etc/passwd", "/etc/passwd", "no-such-entry-anywhere.desktop"] {
            assert!(!is_ours(name, &own), "{name}");
        }
    }
}

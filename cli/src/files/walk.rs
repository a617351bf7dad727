//! Looking through folders: the tree and the search. Links are shown, never walked through.

use std::io;

use cap_std::fs::{Dir, DirEntry};
use globset::{GlobBuilder, GlobMatcher};
use neuron_bridge::trust::scan::one_line;
use serde::Serialize;

use super::{
    look::{Kind, Listing, MAX_ENTRIES, kind_of, lossy, push_line},
    root::{Refusal, Root, quoted},
};

/// Most entries that one search or tree looks at.
const MAX_VISITED: usize = 1_000_000;

/// Deepest folder below the one asked for.
const MAX_DEPTH: usize = 64;

/// What a call is told that nobody waits for.
pub(crate) const NOBODY_WAITS: &str = "This was called off: call again to have it done.";

/// Asked between steps: true when nobody waits for the answer any more.
pub(crate) type GivenUp<'a> = &'a (dyn Fn() -> bool + Sync);

/// Everything below a folder as JSON, names sorted.
pub(crate) fn tree(root: &Root, given: &str, exclude: &[String], given_up: GivenUp<'_>) -> Result<Listing, Refusal> {
    let dir = root.open_dir(&root.inside(given)?, given)?;
    let mut walk = Walk::new(exclude, given_up)?;
    let nodes = walk.tree(&dir, "", 0).map_err(|e| root.explain(given, "read", &e))?;
    let text = serde_json::to_string_pretty(&nodes).map_err(|e| format!("The tree could not be written down: {e}."))?;
    Ok(Listing {
        text,
        note: walk.note(),
    })
}

/// The paths below a folder that match, relative to the served folder, sorted within each folder.
pub(crate) fn search(
    root: &Root,
    given: &str,
    pattern: &str,
    exclude: &[String],
    given_up: GivenUp<'_>,
) -> Result<Listing, Refusal> {
    let inside = root.inside(given)?;
    let dir = root.open_dir(&inside, given)?;
    let mut walk = Walk::new(exclude, given_up)?;
    let wanted = Pattern::new(pattern)?;
    let mut prefix = if inside.is_root() {
        String::new()
    } else {
        inside.path().to_string_lossy().into_owned() + "/"
    };
    prefix = one_line(&prefix);
    let mut text = String::new();
    walk.search(&dir, "", 0, &wanted, &mut |found| {
        push_line(&mut text, &format!("{prefix}{}", one_line(found)));
    })
    .map_err(|e| root.explain(given, "read", &e))?;
    if text.is_empty() {
        text.push_str("No matches found");
    }
    Ok(Listing {
        text,
        note: walk.note(),
    })
}

#[derive(Serialize)]
struct Node {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    children: Option<Vec<Node>>,
}

/// What is looked for: a glob over the relative path, or, without wildcards, a part of the name in any case.
enum Pattern {
    Glob(GlobMatcher),
    PartOfName(String),
}

impl Pattern {
    fn new(pattern: &str) -> Result<Self, Refusal> {
        if pattern.is_empty() {
            return Err("The pattern is empty: give one, for example \"**/*.md\".".to_owned());
        }
        if pattern.contains(['*', '?', '[', '{', '/']) {
            return glob(pattern).map(Self::Glob);
        }
        Ok(Self::PartOfName(pattern.to_lowercase()))
    }

    fn matches(&self, relative: &str, name: &str) -> bool {
        match self {
            Self::Glob(glob) => glob.is_match(relative),
            Self::PartOfName(part) => name.to_lowercase().contains(part),
        }
    }
}

struct Walk<'a> {
    exclude: Vec<GlobMatcher>,
    given_up: GivenUp<'a>,
    visited: usize,
    listed: usize,
    full: bool,
    too_deep: bool,
    unreadable: usize,
}

impl<'a> Walk<'a> {
    fn new(exclude: &[String], given_up: GivenUp<'a>) -> Result<Self, Refusal> {
        let mut globs = Vec::new();
        for pattern in exclude {
            if given_up() {
                return Err(NOBODY_WAITS.to_owned());
            }
            globs.push(glob(pattern)?);
            if !pattern.contains('*') {
                globs.push(glob(&format!("**/{pattern}"))?);
            }
        }
        Ok(Self {
            exclude: globs,
            given_up,
            visited: 0,
            listed: 0,
            full: false,
            too_deep: false,
            unreadable: 0,
        })
    }

    fn tree(&mut self, dir: &Dir, prefix: &str, depth: usize) -> io::Result<Vec<Node>> {
        let mut nodes = Vec::new();
        for (name, entry) in self.entries(dir)? {
            if self.is_over() {
                break;
            }
            let relative = format!("{prefix}{name}");
            if self.exclude.iter().any(|g| g.is_match(&relative)) {
                continue;
            }
            self.listed += 1;
            let kind = kind_of(&entry);
            let children = match kind {
                Kind::Folder if depth < MAX_DEPTH => {
                    Some(self.below(&entry, |walk, dir| walk.tree(dir, &format!("{relative}/"), depth + 1)))
                }
                Kind::Folder => {
                    self.too_deep = true;
                    Some(Vec::new())
                }
                Kind::File | Kind::Link | Kind::Other => None,
            };
            nodes.push(Node {
                name: one_line(&name),
                kind: match kind {
                    Kind::Folder => "directory",
                    Kind::File => "file",
                    Kind::Link => "link",
                    Kind::Other => "other",
                },
                children,
            });
        }
        Ok(nodes)
    }

    fn search(
        &mut self,
        dir: &Dir,
        prefix: &str,
        depth: usize,
        wanted: &Pattern,
        found: &mut dyn FnMut(&str),
    ) -> io::Result<()> {
        for (name, entry) in self.entries(dir)? {
            if self.is_over() {
                break;
            }
            let relative = format!("{prefix}{name}");
            if self.exclude.iter().any(|g| g.is_match(&relative)) {
                continue;
            }
            if wanted.matches(&relative, &name) {
                self.listed += 1;
                found(&relative);
            }
            if kind_of(&entry) != Kind::Folder {
                continue;
            }
            if depth < MAX_DEPTH {
                self.below(&entry, |walk, dir| {
                    walk.search(dir, &format!("{relative}/"), depth + 1, wanted, found)
                });
            } else {
                self.too_deep = true;
            }
        }
        Ok(())
    }

    /// Goes into a folder; one that cannot be read is counted and left out.
    fn below<T: Default>(&mut self, entry: &DirEntry, look: impl FnOnce(&mut Self, &Dir) -> io::Result<T>) -> T {
        match entry.open_dir().and_then(|dir| look(self, &dir)) {
            Ok(found) => found,
            Err(_unreadable) => {
                self.unreadable += 1;
                T::default()
            }
        }
    }

    fn entries(&mut self, dir: &Dir) -> io::Result<Vec<(String, DirEntry)>> {
        let mut entries = Vec::new();
        for entry in dir.entries()? {
            let entry = entry?;
            self.visited += 1;
            if self.visited > MAX_VISITED {
                break;
            }
            entries.push((lossy(&entry.file_name()), entry));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    fn is_over(&mut self) -> bool {
        if self.listed >= MAX_ENTRIES || self.visited > MAX_VISITED || (self.given_up)() {
            self.full = true;
        }
        self.full
    }

    fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        if self.full {
            notes.push(format!(
                "Not everything is shown: it stopped after {} entries. Ask for a folder further down, or leave some out with excludePatterns.",
                self.listed
            ));
        }
        if self.too_deep {
            notes.push(format!(
                "Folders more than {MAX_DEPTH} levels down are left out: ask for one of them by itself."
            ));
        }
        if self.unreadable > 0 {
            notes.push(format!(
                "{} folders could not be read and are left out.",
                self.unreadable
            ));
        }
        (!notes.is_empty()).then(|| format!("Note: {}", notes.join(" ")))
    }
}

fn glob(pattern: &str) -> Result<GlobMatcher, Refusal> {
    GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map(|g| g.compile_matcher())
        .map_err(|e| {
            format!(
                "The pattern {} cannot be used ({}): correct it, for example \"**/*.md\".",
                quoted(pattern),
                e.kind()
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn sample() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sub/deep")).unwrap();
        for (path, size) in [
            ("b.md", 2048),
            ("a.txt", 3),
            ("sub/c.md", 1),
            ("sub/deep/Report d.md", 1),
        ] {
            fs::write(dir.path().join(path), vec![b'x'; size]).unwrap();
        }
        let root = Root::open(dir.path().to_owned(), None).unwrap();
        (dir, root)
    }

    fn found(root: &Root, path: &str, pattern: &str, exclude: &[&str]) -> String {
        let exclude: Vec<_> = exclude.iter().map(|e| (*e).to_owned()).collect();
        search(root, path, pattern, &exclude, &|| false).unwrap().text
    }

    #[test]
    fn a_search_follows_the_glob_or_a_part_of_the_name() {
        let (_dir, root) = sample();
        assert_eq!(found(&root, ".", "*.md", &[]), "b.md");
        assert_eq!(
            found(&root, ".", "**/*.md", &[]),
            "b.md\nsub/c.md\nsub/deep/Report d.md"
        );
        assert_eq!(found(&root, "sub", "**/*.md", &["deep"]), "sub/c.md");
        assert_eq!(found(&root, ".", "**/*.{txt,rs}", &[]), "a.txt");
        assert_eq!(found(&root, ".", "report", &[]), "sub/deep/Report d.md");
        assert_eq!(found(&root, ".", "nothing", &[]), "No matches found");
        assert!(
            search(&root, ".", "[", &[], &|| false)
                .unwrap_err()
                .contains("cannot be used")
        );
    }

    #[test]
    fn patterns_without_end_stop_when_nobody_waits() {
        let (_dir, root) = sample();
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let given_up = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2;
        let exclude = vec!["*".to_owned(); 1_000_000];
        assert!(search(&root, ".", "x", &exclude, &given_up).is_err());
        assert_eq!(asked.into_inner(), 3);
    }

    #[test]
    fn a_tree_is_json_with_children_for_folders_only() {
        let (_dir, root) = sample();
        let tree = tree(&root, ".", &["deep".to_owned()], &|| false).unwrap();
        assert_eq!(tree.note, None);
        let json: serde_json::Value = serde_json::from_str(&tree.text).unwrap();
        assert_eq!(
            json,
            serde_json::json!([
                {"name": "a.txt", "type": "file"},
                {"name": "b.md", "type": "file"},
                {"name": "sub", "type": "directory", "children": [{"name": "c.md", "type": "file"}]},
            ])
        );
    }

    #[test]
    fn a_tree_stops_at_its_limits_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        for i in 0..MAX_ENTRIES + 5 {
            fs::write(dir.path().join(i.to_string()), "").unwrap();
        }
        let root = Root::open(dir.path().to_owned(), None).unwrap();
        assert!(
            tree(&root, ".", &[], &|| false)
                .unwrap()
                .note
                .unwrap()
                .contains("10000 entries")
        );

        let dir = tempfile::tempdir().unwrap();
        let deep: std::path::PathBuf = std::iter::repeat_n("d", MAX_DEPTH + 3).collect();
        fs::create_dir_all(dir.path().join(deep)).unwrap();
        let root = Root::open(dir.path().to_owned(), None).unwrap();
        assert!(
            tree(&root, ".", &[], &|| false)
                .unwrap()
                .note
                .unwrap()
                .contains("levels down")
        );
    }

    #[test]
    fn a_walk_ends_when_nobody_waits_for_it() {
        let (_dir, root) = sample();
        assert_eq!(tree(&root, ".", &[], &|| true).unwrap().text, "[]");
    }
}

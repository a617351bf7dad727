//! Reading files: whole, from either end, several, as media.

use std::io::{self, Read, Seek, SeekFrom};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cap_std::fs::File;
use rmcp::model::{ContentBlock, ResourceContents};

use super::{
    root::{Refusal, Root, quoted},
    walk::{GivenUp, NOBODY_WAITS},
};

/// Most that one answer carries, in bytes of the file.
pub(crate) const MAX_READ: u64 = 10 * 1024 * 1024;

/// Most that one answer may take on the wire; a frame is 16 MiB at most, and escapes make text longer.
const MAX_WIRE: usize = 15 * 1024 * 1024;

const CHUNK: usize = 64 * 1024;

/// Which lines of a file are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    All,
    First(u64),
    Last(u64),
}

/// A file's text. Lines are joined as they are in the file; the last one's line end is left out for `First` and `Last`.
pub(crate) fn text(root: &Root, given: &str, lines: Lines) -> Result<String, Refusal> {
    let inside = root.inside(given)?;
    let (mut file, metadata) = root.open_file(&inside, given)?;
    let read = |e: &io::Error| root.explain(given, "read", e);
    let bytes = match lines {
        Lines::All if metadata.len() > MAX_READ => return Err(too_large(given, metadata.len())),
        Lines::All => up_to_limit(&mut file).map_err(|e| read(&e))?,
        Lines::First(n) => first_lines(&mut file, n).map_err(|e| read(&e))?,
        Lines::Last(n) => last_lines(&mut file, metadata.len(), n).map_err(|e| read(&e))?,
    };
    let Some(bytes) = bytes else {
        return Err(match lines {
            Lines::All => too_large(given, MAX_READ + 1),
            Lines::First(_) | Lines::Last(_) => format!(
                "These lines of {} are larger than {} MiB together: ask for fewer.",
                quoted(given),
                MAX_READ >> 20
            ),
        });
    };
    let text = String::from_utf8(bytes).map_err(|_| {
        format!(
            "{} is not UTF-8 text (perhaps a picture, sound, archive or another encoding): use read_media_file to get its bytes.",
            quoted(given)
        )
    })?;
    fits(text, given)
}

/// Several files' texts under their paths; one that cannot be read takes no other along. What no longer fits is not read.
pub(crate) fn several(root: &Root, paths: &[String], given_up: GivenUp<'_>) -> Result<String, Refusal> {
    let mut out = String::new();
    let mut left = MAX_READ;
    for (i, path) in paths.iter().enumerate() {
        if given_up() {
            return Err(NOBODY_WAITS.to_owned());
        }
        if i > 0 {
            out.push_str("\n---\n");
        }
        match text_up_to(root, path, left) {
            Ok(Some(text)) => {
                left -= text.len() as u64;
                out.push_str(&format!("{path}:\n{text}\n"));
            }
            Ok(None) => out.push_str(&format!(
                "{path}: Error - the files before it fill this answer ({} MiB): read it by itself.",
                MAX_READ >> 20
            )),
            Err(refusal) => out.push_str(&format!("{path}: Error - {refusal}")),
        }
    }
    fits(out, "these files")
}

/// A whole file's text, or `None` where it is longer than `most` bytes but could be read by itself.
fn text_up_to(root: &Root, given: &str, most: u64) -> Result<Option<String>, Refusal> {
    let (_, metadata) = root.open_file(&root.inside(given)?, given)?;
    if (most + 1..=MAX_READ).contains(&metadata.len()) {
        return Ok(None);
    }
    let text = text(root, given, Lines::All)?;
    // It may have grown meanwhile.
    Ok((text.len() as u64 <= most).then_some(text))
}

/// A file's bytes as the block that suits its kind.
pub(crate) fn media(root: &Root, given: &str) -> Result<ContentBlock, Refusal> {
    let inside = root.inside(given)?;
    let (mut file, metadata) = root.open_file(&inside, given)?;
    if metadata.len() > MAX_READ {
        return Err(media_too_large(given, metadata.len()));
    }
    let bytes = up_to_limit(&mut file)
        .map_err(|e| root.explain(given, "read", &e))?
        .ok_or_else(|| media_too_large(given, MAX_READ + 1))?;
    let data = BASE64_STANDARD.encode(bytes);
    let kind = media_type(given);
    Ok(match kind.split_once('/') {
        Some(("image", _)) => ContentBlock::image(data, kind),
        Some(("audio", _)) => ContentBlock::audio(data, kind),
        _ => {
            let uri = file_uri(&root.absolute(&inside));
            ContentBlock::resource(ResourceContents::blob(data, uri).with_mime_type(kind))
        }
    })
}

/// Refuses a text whose frame would be too long.
pub(crate) fn fits(text: String, given: &str) -> Result<String, Refusal> {
    let escaped = text
        .bytes()
        .map(|b| match b {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0x00..=0x1f => 6,
            _ => 1,
        })
        .sum::<usize>();
    if escaped <= MAX_WIRE {
        return Ok(text);
    }
    Err(format!(
        "The text of {} is too large for one answer: use head or tail of read_text_file to read parts of it.",
        quoted(given)
    ))
}

fn too_large(given: &str, size: u64) -> Refusal {
    format!(
        "{} is {} large, and {} MiB is the most for one answer: use head or tail to read parts of it.",
        quoted(given),
        super::look::size_text(size),
        MAX_READ >> 20
    )
}

fn media_too_large(given: &str, size: u64) -> Refusal {
    format!(
        "{} is {} large, and {} MiB is the most that can be handed over: make it smaller first.",
        quoted(given),
        super::look::size_text(size),
        MAX_READ >> 20
    )
}

/// `None` when there is more than [`MAX_READ`]: a file may grow after it was measured.
fn up_to_limit(file: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(MAX_READ + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_READ).then_some(bytes))
}

fn first_lines(file: &mut impl Read, wanted: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK];
    let mut seen = 0;
    loop {
        let n = file.read(&mut chunk)?;
        if n == 0 {
            break;
        }
        for (i, _) in chunk[..n].iter().enumerate().filter(|(_, b)| **b == b'\n') {
            seen += 1;
            if seen == wanted {
                bytes.extend_from_slice(&chunk[..i]);
                return Ok((bytes.len() as u64 <= MAX_READ).then_some(bytes));
            }
        }
        bytes.extend_from_slice(&chunk[..n]);
        if bytes.len() as u64 > MAX_READ {
            return Ok(None);
        }
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    Ok(Some(bytes))
}

fn last_lines(file: &mut File, size: u64, wanted: u64) -> io::Result<Option<Vec<u8>>> {
    let mut position = size;
    // Last chunk first.
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let mut newlines = 0;
    let mut start = 0;
    'file: while position > 0 {
        let length = position.min(CHUNK as u64);
        position -= length;
        file.seek(SeekFrom::Start(position))?;
        let mut chunk = Vec::new();
        file.by_ref().take(length).read_to_end(&mut chunk)?;
        if chunks.is_empty() && chunk.last() == Some(&b'\n') {
            chunk.pop();
        }
        let found = chunk.iter().enumerate().rev().filter(|(_, b)| **b == b'\n');
        for (i, _) in found {
            newlines += 1;
            if newlines == wanted {
                start = i + 1;
                chunks.push(chunk);
                break 'file;
            }
        }
        chunks.push(chunk);
        if chunks.len() as u64 * CHUNK as u64 > MAX_READ + CHUNK as u64 {
            return Ok(None);
        }
    }
    let bytes = chunks.into_iter().rev().flatten().skip(start).collect::<Vec<_>>();
    Ok((bytes.len() as u64 <= MAX_READ).then_some(bytes))
}

fn media_type(given: &str) -> &'static str {
    let extension = given.rsplit_once('.').map(|(_, e)| e.to_ascii_lowercase());
    match extension.as_deref() {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("bmp") => "image/bmp",
        Some("svg") => "image/svg+xml",
        Some("mp3") => "audio/mpeg",
        Some("wav") => "audio/wav",
        Some("ogg") => "audio/ogg",
        Some("flac") => "audio/flac",
        Some("m4a") => "audio/mp4",
        Some("pdf") => "application/pdf",
        Some("zip") => "application/zip",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

fn file_uri(path: &std::path::Path) -> String {
    use std::fmt::Write as _;
    let mut uri = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(*byte)),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn with(content: &[u8]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), content).unwrap();
        let root = Root::open(dir.path().to_owned(), None).unwrap();
        (dir, root)
    }

    #[test]
    fn head_and_tail_count_lines_as_a_person_does() {
        for (content, first, last) in [
            ("a\nb\nc\n", "a\nb", "b\nc"),
            ("a\nb\nc", "a\nb", "b\nc"),
            ("a\r\nb\r\nc\r\n", "a\r\nb\r", "b\r\nc\r"),
            ("one", "one", "one"),
            ("one\n", "one", "one"),
            ("", "", ""),
            ("\n\n\n", "\n", "\n"),
        ] {
            let (_dir, root) = with(content.as_bytes());
            assert_eq!(text(&root, "f", Lines::First(2)).unwrap(), first, "head of {content:?}");
            assert_eq!(text(&root, "f", Lines::Last(2)).unwrap(), last, "tail of {content:?}");
        }
    }

    #[test]
    fn lines_of_a_file_over_the_limit_can_be_read_from_both_ends() {
        let line = "ä".repeat(500);
        let content = vec![line.as_str(); 12_000].join("\n") + "\nlast";
        assert!(content.len() as u64 > MAX_READ);
        let (_dir, root) = with(content.as_bytes());
        assert!(text(&root, "f", Lines::All).unwrap_err().contains("head or tail"));
        assert_eq!(text(&root, "f", Lines::First(300)).unwrap().lines().count(), 300);
        let tail = text(&root, "f", Lines::Last(300)).unwrap();
        assert_eq!(tail.lines().count(), 300);
        assert!(tail.ends_with("last"));
        assert!(
            text(&root, "f", Lines::Last(20_000))
                .unwrap_err()
                .contains("ask for fewer")
        );
        assert!(
            text(&root, "f", Lines::First(20_000))
                .unwrap_err()
                .contains("ask for fewer")
        );
    }

    #[test]
    fn a_text_that_would_not_fit_a_frame_is_refused_instead_of_lost() {
        let (_dir, root) = with(&vec![1; 4 * 1024 * 1024]);
        assert!(
            text(&root, "f", Lines::All)
                .unwrap_err()
                .contains("too large for one answer")
        );
    }

    #[test]
    fn bytes_that_are_no_text_point_to_the_tool_that_can_read_them() {
        let (_dir, root) = with(&[0xff, 0xfe, 0x00]);
        for lines in [Lines::All, Lines::First(1), Lines::Last(1)] {
            assert!(text(&root, "f", lines).unwrap_err().contains("read_media_file"));
        }
        let block = serde_json::to_value(media(&root, "f").unwrap()).unwrap();
        assert_eq!(block["type"], "resource");
        assert_eq!(block["resource"]["blob"], "//4A");
    }

    #[test]
    fn one_unreadable_file_takes_no_other_along() {
        let (_dir, root) = with(b"hello");
        let answer = several(&root, &["gone".to_owned(), "f".to_owned(), "../x".to_owned()], &|| {
            false
        })
        .unwrap();
        assert!(answer.contains("f:\nhello\n"), "{answer}");
        assert_eq!(answer.matches("Error - ").count(), 2, "{answer}");
    }

    #[test]
    fn files_that_no_longer_fit_are_not_read_and_nobody_s_answer_is_not_made() {
        let (dir, root) = with(&vec![b'x'; MAX_READ as usize - 1]);
        // Only whoever reads it sees that it is no text.
        fs::write(dir.path().join("g"), [0xff; 2]).unwrap();
        let paths = |count| [vec!["f".to_owned()], vec!["g".to_owned(); count]].concat();
        let answer = several(&root, &paths(2), &|| false).unwrap();
        assert_eq!(
            answer.matches("fill this answer").count(),
            2,
            "{}",
            &answer[MAX_READ as usize..]
        );
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let given_up = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 2;
        assert!(several(&root, &paths(1_000_000), &given_up).is_err());
        assert_eq!(asked.into_inner(), 3);
    }
}

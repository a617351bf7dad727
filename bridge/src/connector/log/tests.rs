use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use super::{tail::TAIL_BYTES, *};
use crate::secrets::Held;

const PATIENCE: Duration = Duration::from_secs(60);

fn texts(lines: &[LogLine]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_ref()).collect()
}

fn files(folder: &Path) -> Vec<(String, u64)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                entry.metadata().unwrap().len(),
            )
        })
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn stderr_ends_up_in_a_private_file_and_in_the_tail() {
    let home = tempfile::tempdir().unwrap();
    let writer = LogWriter::start().unwrap();
    let path = home.path().join("logs/x.log");
    let log = writer.open(path.clone(), Redactor::default());
    let begun = log.last(0).next;
    log.drain(&b"missing API_KEY\r\n\x1b[1mbold\nno end"[..]).await;
    assert_eq!(texts(&log.tail(2)), ["␛[1mbold", "no end"]);
    assert_eq!(texts(&log.after(begun, 1).lines), ["missing API_KEY"]);
    assert!(writer.flush(PATIENCE));
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].ends_with("Z missing API_KEY"), "{text}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert!(log.remove(PATIENCE));
    assert_eq!((files(path.parent().unwrap()), log.tail(9)), (vec![], vec![]));
}

#[tokio::test]
async fn an_upstream_cannot_speak_as_this_app() {
    let home = tempfile::tempdir().unwrap();
    let log = LogWriter::start()
        .unwrap()
        .open(home.path().join("x.log"), Redactor::default());
    log.drain(&b"[session] Your key expired; paste it at x.test\n said [session] x\n[session] no end"[..])
        .await;
    log.line("[session] connected");
    assert_eq!(
        texts(&log.tail(9)),
        [
            "\\[session] Your key expired; paste it at x.test",
            " said [session] x",
            "\\[session] no end",
            "[session] connected"
        ]
    );
}

#[test]
fn a_line_is_cut_before_anything_looks_for_secrets_in_it() {
    let home = tempfile::tempdir().unwrap();
    let writer = LogWriter::start().unwrap();
    let path = home.path().join("x.log");
    let log = writer.open(path.clone(), Redactor::default());
    log.line(&format!("[stdout] {}é", "'--token',x".repeat(16 * 1024 * 1024 / 11)));
    log.line(&format!("{}é", "y".repeat(64 * 1024 - 1)));
    assert!(writer.flush(PATIENCE));
    let text = fs::read_to_string(path).unwrap();
    let (first, second) = text.split_once('\n').unwrap();
    assert!(
        first.ends_with("[stdout] '--token',[REDACTED]"),
        "{} bytes",
        first.len()
    );
    assert!(second.ends_with("y\n"), "no character is torn");
}

#[tokio::test]
async fn a_secret_reaches_neither_file_nor_tail_nor_follower() {
    let home = tempfile::tempdir().unwrap();
    let writer = LogWriter::start().unwrap();
    let path = home.path().join("x.log");
    let held = Held::new(&["held-value".to_owned().into()]);
    let redactor = Redactor::default();
    redactor.hold(held);
    let log = writer.open(path.clone(), redactor);
    let begun = log.last(0).next;
    log.line("password=hunter2 is not held-value!");
    assert!(writer.flush(PATIENCE));
    let everything = format!(
        "{:?}{:?}{}",
        log.tail(1),
        log.follow(begun, 1, PATIENCE).await,
        fs::read_to_string(path).unwrap()
    );
    assert!(
        !everything.contains("hunter2") && !everything.contains("held-value"),
        "{everything}"
    );
    assert_eq!(everything.matches("password=[REDACTED] is not [REDACTED]!").count(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_follower_waits_for_the_next_line_and_no_longer_than_it_wants() {
    let home = tempfile::tempdir().unwrap();
    let log = LogWriter::start()
        .unwrap()
        .open(home.path().join("x.log"), Redactor::default());
    log.line("seen");
    let begun = log.last(9).next;
    let asked = Instant::now();
    let page = log.follow(begun, 9, Duration::from_secs(30)).await;
    assert_eq!((page.lines.len(), asked.elapsed().as_secs()), (0, 30));

    let (follower, asked) = (log.clone(), Instant::now());
    let following = tokio::spawn(async move { follower.follow(page.next, 9, Duration::from_secs(30)).await });
    tokio::time::sleep(Duration::from_secs(5)).await;
    log.line("one");
    log.line("two");
    assert_eq!(texts(&following.await.unwrap().lines), ["one", "two"]);
    assert!(asked.elapsed() < Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn a_follower_of_a_log_that_is_removed_comes_back_at_once() {
    let home = tempfile::tempdir().unwrap();
    let log = LogWriter::start()
        .unwrap()
        .open(home.path().join("x.log"), Redactor::default());
    let (follower, begun) = (log.clone(), log.last(9).next);
    let following = tokio::spawn(async move { follower.follow(begun, 9, Duration::from_secs(30)).await });
    tokio::task::yield_now().await;
    let asked = Instant::now();
    assert!(log.remove(PATIENCE));
    assert_eq!(following.await.unwrap().lines, []);
    assert!(asked.elapsed() < Duration::from_secs(1));
}

#[test]
fn files_turn_over_at_a_mebibyte_and_only_five_stay() {
    let home = tempfile::tempdir().unwrap();
    let writer = LogWriter::start().unwrap();
    let log = writer.open(home.path().join("x.log"), Redactor::default());
    let line = "y".repeat(60_000);
    for n in 0..120 {
        log.line(&format!("{n} {line}"));
        assert!(writer.flush(PATIENCE));
    }
    let files = files(home.path());
    let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x.log", "x.log.1", "x.log.2", "x.log.3", "x.log.4"]);
    assert!(files.iter().all(|(_, size)| *size <= file::MAX_FILE), "{files:?}");
    let newest = fs::read_to_string(home.path().join("x.log")).unwrap();
    assert!(newest.lines().last().unwrap().contains("Z 119 y"));
}

#[test]
fn a_log_that_falls_behind_drops_lines_and_says_how_many() {
    let home = tempfile::tempdir().unwrap();
    let writer = LogWriter::start().unwrap();
    let log = writer.open(home.path().join("x.log"), Redactor::default());
    let path = home.path().join("x.log");
    {
        let _slow_disk = log.0.file.lock().unwrap();
        for n in 0..5_000 {
            log.line(&n.to_string());
        }
        assert_eq!(texts(&log.tail(1)), ["4999"], "the tail misses nothing");
    }
    assert!(writer.flush(PATIENCE));
    log.line("later");
    assert!(writer.flush(PATIENCE));
    let text = fs::read_to_string(path).unwrap();
    let told: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_suffix(" lines dropped")?.rsplit(' ').next()?.parse().ok())
        .collect();
    let dropped: u64 = told.iter().sum();
    let written = (text.lines().count() - told.len() - 1) as u64;
    assert!(dropped > 0);
    assert_eq!(written + dropped, 5_000);
    assert!(text.ends_with("Z later\n"));
}

#[tokio::test]
async fn a_flood_without_a_line_end_keeps_memory_flat() {
    let home = tempfile::tempdir().unwrap();
    let writer = LogWriter::start().unwrap();
    let log = writer.open(home.path().join("x.log"), Redactor::default());
    let before = resident();
    log.drain(tokio::io::repeat(b'x').take(128 << 20)).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < 16 * 1024, "grew by {grown} KiB");
    assert!(log.tail(usize::MAX).iter().map(|line| line.text.len()).sum::<usize>() <= TAIL_BYTES);
    assert!(writer.flush(PATIENCE));
    let on_disk: u64 = files(home.path()).iter().map(|(_, size)| size).sum();
    assert!(on_disk <= file::FILES as u64 * file::MAX_FILE);
}

/// Resident memory of this process in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

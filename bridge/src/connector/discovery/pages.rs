//! Reading one list to its end: every page, with bounds that no upstream can outrun.

use std::{collections::HashSet, future::Future};

use serde_json::value::RawValue;

use super::{ListFault, ListKind};
use crate::tools::{
    RawItem,
    open::{self, Kind},
};

/// Most pages read of one list.
pub const MAX_PAGES: usize = 200;
/// Most items kept of one list.
pub const MAX_ITEMS: usize = 5_000;
/// Most of one list, in bytes, cursors included: what fits into one frame fits into one page, but not two hundred times.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Longest cursor, in bytes. It is kept and sent back; real ones name a place in a list.
const MAX_CURSOR_BYTES: usize = 64 * 1024;
/// Most values in all items of one list, keys included: each takes up to two hundred bytes of memory, for one of the list.
/// The largest known lists have a tenth of it.
const MAX_VALUES: usize = 500_000;

/// A complete list, as received.
#[derive(Debug, Clone, PartialEq)]
pub struct RawList {
    /// JSON text of the array of all items, each byte for byte as received.
    pub text: String,
    /// The same items, parsed.
    pub items: Vec<RawItem>,
    /// What was strange about the list, for the log.
    pub remarks: Vec<String>,
}

impl RawList {
    /// A complete list without any item.
    pub fn empty() -> Self {
        Self {
            text: "[]".to_owned(),
            items: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Reads a list that was saved.
    ///
    /// # Errors
    /// When the text is no JSON array.
    pub fn from_text(text: String) -> serde_json::Result<Self> {
        let mut items = Vec::new();
        open::items(&text, |item| {
            items.push(RawItem::read(item));
            true
        })?;
        Ok(Self {
            text,
            items,
            remarks: Vec::new(),
        })
    }
}

/// Follows the cursors from the first page to the last. `page` gets the cursor and gives the JSON text of one result.
///
/// Stops at a repeated cursor, follows an empty one once, keeps at most [`MAX_PAGES`] pages, [`MAX_ITEMS`] items and
/// [`MAX_BYTES`] bytes, and ends at a cursor that is too long.
///
/// # Errors
/// The first page's failure, or a later one's: a list is complete or it is none.
pub async fn read_all<F, Fut>(kind: ListKind, mut page: F) -> Result<RawList, ListFault>
where
    F: FnMut(Option<String>) -> Fut,
    Fut: Future<Output = Result<String, ListFault>>,
{
    let mut list = RawList::empty();
    let mut texts: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    let mut cursor = None;
    let mut bytes = 0;
    let mut values = 0;
    for number in 1.. {
        let text = page(cursor).await?;
        let (items, next_cursor) = open_page(kind, &text).ok_or(ListFault::NoList)?;
        for item in items {
            if list.items.len() == MAX_ITEMS {
                list.remarks.push(format!(
                    "the list is longer than {MAX_ITEMS} {}; the rest is left out",
                    kind.noun()
                ));
                return Ok(finish(list, &texts));
            }
            bytes += item.get().len();
            if bytes > MAX_BYTES {
                list.remarks.push(format!(
                    "the list is longer than {} MiB; the rest is left out",
                    MAX_BYTES >> 20
                ));
                return Ok(finish(list, &texts));
            }
            values += open::values(item);
            if values > MAX_VALUES {
                list.remarks.push(format!(
                    "the list has more than {MAX_VALUES} values in it; the rest is left out"
                ));
                return Ok(finish(list, &texts));
            }
            list.items.push(RawItem::read(item));
            texts.push(item.get().to_owned());
        }
        let next = match next_cursor {
            None => return Ok(finish(list, &texts)),
            Some(next) if next.get().len() > MAX_CURSOR_BYTES => {
                list.remarks.push(format!(
                    "a page names a next one by more than {} KiB; the list ends there",
                    MAX_CURSOR_BYTES >> 10
                ));
                return Ok(finish(list, &texts));
            }
            Some(next) => match open::text(next) {
                Some(next) => next.into_owned(),
                None => {
                    list.remarks
                        .push("a page names a next one that is no text; the list ends there".to_owned());
                    return Ok(finish(list, &texts));
                }
            },
        };
        bytes += next.len();
        if !seen.insert(next.clone()) {
            if !next.is_empty() {
                list.remarks
                    .push("a page was offered twice; the list ends there".to_owned());
            }
            return Ok(finish(list, &texts));
        }
        if number == MAX_PAGES {
            list.remarks.push(format!(
                "the list has more than {MAX_PAGES} pages; the rest is left out"
            ));
            return Ok(finish(list, &texts));
        }
        cursor = Some(next);
    }
    Ok(finish(list, &texts))
}

/// The items, at most one more than are kept, and the next cursor of one page; `None` where it holds no list.
fn open_page(kind: ListKind, text: &str) -> Option<(Vec<&RawValue>, Option<&RawValue>)> {
    let [list, next] = open::members(text, [kind.member(), "nextCursor"]).ok()?;
    let mut items = Vec::new();
    open::items(list?.get(), |item| {
        items.push(item);
        items.len() <= MAX_ITEMS
    })
    .ok()?;
    Some((items, next.filter(|next| Kind::of(next) != Kind::Null)))
}

fn finish(mut list: RawList, texts: &[String]) -> RawList {
    list.text = format!("[{}]", texts.join(","));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::cause::Cause;

    async fn read(pages: &[(&str, Option<&str>)]) -> (Result<RawList, ListFault>, Vec<Option<String>>) {
        let mut asked = Vec::new();
        let result = read_all(ListKind::Tools, |cursor| {
            let index = asked.len().min(pages.len() - 1);
            asked.push(cursor);
            let (tools, next) = pages[index];
            let text = match next {
                Some(next) => format!(r#"{{"tools":[{tools}],"nextCursor":{next}}}"#),
                None => format!(r#"{{"tools":[{tools}]}}"#),
            };
            std::future::ready(Ok(text))
        })
        .await;
        (result, asked)
    }

    #[tokio::test]
    async fn all_pages_are_read_and_every_byte_of_an_item_is_kept() {
        let first = r#"{"name":"a","execution":{"x":1.10},"n":12345678901234567890123}"#;
        let (list, asked) = read(&[(first, Some(r#""2""#)), (r#"{"name":"b"}"#, Some(r#""3""#)), ("", None)]).await;
        let list = list.unwrap();
        assert_eq!(list.text, format!("[{first},{{\"name\":\"b\"}}]"));
        assert_eq!(asked, [None, Some("2".to_owned()), Some("3".to_owned())]);
        assert_eq!(RawList::from_text(list.text.clone()).unwrap().items, list.items);
    }

    #[tokio::test]
    async fn a_cursor_that_repeats_ends_the_list() {
        let (list, asked) = read(&[("1", Some(r#""same""#))]).await;
        assert_eq!(asked.len(), 2);
        assert!(!list.unwrap().remarks.is_empty());
    }

    #[tokio::test]
    async fn an_empty_cursor_is_followed_once() {
        let (list, asked) = read(&[("1", Some(r#""""#))]).await;
        assert_eq!(asked, [None, Some(String::new())]);
        assert_eq!(list.unwrap().items.len(), 2);
    }

    #[tokio::test]
    async fn cursors_that_never_end_stop_at_the_page_limit() {
        let mut count = 0;
        let list = read_all(ListKind::Tools, |_| {
            count += 1;
            std::future::ready(Ok(format!(
                r#"{{"tools":[{{"name":"t{count}"}}],"nextCursor":"{count}"}}"#
            )))
        })
        .await
        .unwrap();
        assert_eq!((count, list.items.len()), (MAX_PAGES, MAX_PAGES));
    }

    #[tokio::test]
    async fn pages_that_are_large_every_one_do_not_add_up_without_end() {
        let large = "x".repeat(MAX_BYTES / 4);
        let mut count = 0;
        let list = read_all(ListKind::Tools, |_| {
            count += 1;
            std::future::ready(Ok(format!(
                r#"{{"tools":[{{"name":"t{count}","description":"{large}"}}],"nextCursor":"{count}"}}"#
            )))
        })
        .await
        .unwrap();
        assert_eq!((count, list.items.len()), (4, 3));
        assert!(list.text.len() <= MAX_BYTES);
        assert_eq!(list.remarks, ["the list is longer than 16 MiB; the rest is left out"]);
    }

    #[tokio::test]
    async fn cursors_count_and_a_huge_one_ends_the_list() {
        let cursors_of = |length: usize| async move {
            let mut count = 0;
            let list = read_all(ListKind::Tools, |_| {
                count += 1;
                let cursor = "x".repeat(length - 8) + &count.to_string();
                let large = "x".repeat(MAX_BYTES / 128);
                std::future::ready(Ok(format!(
                    r#"{{"tools":[{{"description":"{large}"}}],"nextCursor":"{cursor}"}}"#
                )))
            });
            let list = list.await.unwrap();
            (count, list.remarks)
        };
        let (pages, remarks) = cursors_of(MAX_CURSOR_BYTES - 2).await;
        assert!(
            (80..90).contains(&pages),
            "two thirds of the list, one of cursors: {pages}"
        );
        assert_eq!(remarks, ["the list is longer than 16 MiB; the rest is left out"]);
        let (pages, remarks) = cursors_of(15 << 20).await;
        assert_eq!(
            (pages, remarks),
            (
                1,
                vec!["a page names a next one by more than 64 KiB; the list ends there".to_owned()]
            )
        );
    }

    #[tokio::test]
    async fn items_full_of_values_end_the_list_before_they_are_parsed() {
        let crowd = format!(r#"{{"name":"a","x":[{}0]}}"#, "0,".repeat(1_000_000));
        let (list, _) = read(&[(&format!(r#"{{"name":"b"}},{crowd}"#), Some(r#""2""#))]).await;
        let list = list.unwrap();
        assert_eq!(list.text, r#"[{"name":"b"}]"#);
        assert_eq!(list.remarks.len(), 1);
        let zeros = "0,".repeat(1_000_000) + "0";
        let (list, _) = read(&[(&zeros, None)]).await;
        assert_eq!(list.unwrap().items.len(), MAX_ITEMS);
    }

    #[tokio::test]
    async fn a_list_longer_than_the_limit_is_cut_with_a_remark() {
        let many = vec!["{}"; MAX_ITEMS + 5].join(",");
        let (list, _) = read(&[(&many, None)]).await;
        let list = list.unwrap();
        assert_eq!((list.items.len(), list.remarks.len()), (MAX_ITEMS, 1));
    }

    #[tokio::test]
    async fn a_failing_later_page_fails_the_whole_list() {
        let mut count = 0;
        let result = read_all(ListKind::Tools, |_| {
            count += 1;
            std::future::ready(if count == 1 {
                Ok(r#"{"tools":[],"nextCursor":"2"}"#.to_owned())
            } else {
                Err(ListFault::Lost(Cause::Network("reset".into())))
            })
        })
        .await;
        assert_eq!(result.unwrap_err(), ListFault::Lost(Cause::Network("reset".into())));
    }

    #[tokio::test]
    async fn something_else_than_a_list_is_told_apart_from_an_empty_one() {
        for text in ["{}", r#"{"tools":{}}"#, "[]", "null", r#"{"tools":null}"#] {
            let result = read_all(ListKind::Tools, |_| std::future::ready(Ok(text.to_owned()))).await;
            assert_eq!(result.unwrap_err(), ListFault::NoList, "{text}");
        }
    }

    #[tokio::test]
    async fn each_list_is_found_under_its_own_member() {
        for (kind, member) in [
            (ListKind::Tools, "tools"),
            (ListKind::Resources, "resources"),
            (ListKind::Templates, "resourceTemplates"),
            (ListKind::Prompts, "prompts"),
        ] {
            let text = format!(r#"{{"x":[1,2],"{member}":[{{"n":1.10}}],"_meta":{{}}}}"#);
            let list = read_all(kind, |_| std::future::ready(Ok(text.clone()))).await.unwrap();
            assert_eq!(list.text, r#"[{"n":1.10}]"#, "{member}");
        }
    }
}

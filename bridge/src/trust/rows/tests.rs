use proptest::prelude::*;

use super::*;

fn row(kind: RowKind, key: &str, body: &str) -> Row {
    Row {
        kind,
        key: key.to_owned(),
        body: body.to_owned(),
    }
}

fn stored(set: &RowSet) -> Stored {
    let rows = set.all().map(|(row, code)| StoredRow {
        kind: row.kind.word().to_owned(),
        key: row.key.clone(),
        body: row.body.clone(),
        code: code.as_bytes().to_vec(),
    });
    Stored {
        head: set.head(),
        rows: rows.collect(),
    }
}

fn set_of(key: &TrustKey, rows: &[Row]) -> RowSet {
    let mut set = RowSet::empty(0);
    let delta = set.delta(key, rows.iter().cloned().map(Change::Put).collect());
    set.apply(delta);
    set
}

fn verified(key: &TrustKey, counter: u64, stored: Stored) -> Result<Vec<Row>, Distrust> {
    let set = RowSet::verify(key, counter, stored)?;
    Ok(set.all().map(|(row, _)| row.clone()).collect())
}

#[test]
fn kinds_are_told_apart_by_their_words_and_keep_their_order() {
    let words: Vec<_> = RowKind::ALL.iter().map(|kind| kind.word()).collect();
    assert!(words.is_sorted_by(|a, b| a < b), "{words:?}");
    assert!(RowKind::ALL.is_sorted());
    for kind in RowKind::ALL {
        assert_eq!(RowKind::parse(kind.word()), Some(kind));
    }
}

#[test]
fn a_rows_code_is_the_standards_hmac_over_what_is_documented() {
    let key = TrustKey::draw().unwrap();
    let mut standard = <Hmac<Sha256> as hmac::Mac>::new_from_slice(key.0.expose_secret()).unwrap();
    standard.update(b"neuron-connect trust row 1\0");
    for field in ["rule", "k", "{}"] {
        standard.update(&u64::try_from(field.len()).unwrap().to_be_bytes());
        standard.update(field.as_bytes());
    }
    let code = key.code_of(&row(RowKind::Rule, "k", "{}"));
    assert_eq!(code.0, <[u8; 32]>::from(standard.finalize().into_bytes()));
}

#[test]
fn a_key_survives_its_text_and_shows_itself_to_nobody() {
    let key = TrustKey::draw().unwrap();
    let text = key.to_base64();
    assert_eq!(TrustKey::parse(&text).unwrap().to_base64(), text);
    assert_eq!(format!("{key:?}"), "TrustKey");
    for wrong in ["", "abc", "!!", &text[4..]] {
        assert!(TrustKey::parse(wrong).is_none(), "{wrong}");
    }
}

#[test]
fn letters_that_move_between_kind_key_and_body_are_noticed() {
    let key = TrustKey::draw().unwrap();
    let good = stored(&set_of(&key, &[row(RowKind::Pin, "ab", "c")]));
    for (kind, id, body) in [
        ("pin", "a", "bc"),
        ("pin", "abc", ""),
        ("rule", "ab", "c"),
        ("", "pinab", "c"),
    ] {
        let mut moved = good.clone();
        let at = &mut moved.rows[0];
        (at.kind, at.key, at.body) = (kind.to_owned(), id.to_owned(), body.to_owned());
        assert_eq!(verified(&key, 1, moved), Err(Distrust::Tampered), "{kind} {id} {body}");
    }
}

#[test]
fn a_row_of_another_set_of_the_same_key_is_not_taken() {
    let key = TrustKey::draw().unwrap();
    let narrow = set_of(&key, &[row(RowKind::Rule, "r", "narrow")]);
    let wide = set_of(&key, &[row(RowKind::Rule, "r", "wide")]);
    let mixed = Stored {
        head: narrow.head(),
        rows: stored(&wide).rows,
    };
    assert_eq!(verified(&key, 1, mixed), Err(Distrust::Tampered));
    let more = Stored {
        head: narrow.head(),
        rows: [
            stored(&narrow).rows,
            stored(&set_of(&key, &[row(RowKind::Pin, "p", "")])).rows,
        ]
        .concat(),
    };
    assert_eq!(verified(&key, 1, more), Err(Distrust::Tampered));
    let none = Stored {
        head: narrow.head(),
        rows: Vec::new(),
    };
    assert_eq!(verified(&key, 1, none), Err(Distrust::Tampered));
}

#[test]
fn a_set_may_be_ahead_of_what_was_counted_and_never_behind() {
    let key = TrustKey::draw().unwrap();
    let rows = [row(RowKind::Rule, "r", "{}")];
    let set = set_of(&key, &rows);
    assert_eq!(verified(&key, 0, stored(&set)).as_deref(), Ok(&rows[..]));
    assert_eq!(verified(&key, 1, stored(&set)).as_deref(), Ok(&rows[..]));
    assert_eq!(verified(&key, 2, stored(&set)), Err(Distrust::RolledBack));
    let mut claimed = stored(&set);
    claimed.head.as_mut().unwrap().generation = 2;
    assert_eq!(verified(&key, 2, claimed), Err(Distrust::Tampered));
}

#[test]
fn nothing_at_all_is_fresh_only_where_nothing_was_ever_counted() {
    let key = TrustKey::draw().unwrap();
    assert_eq!(verified(&key, 0, Stored::default()).as_deref(), Ok(&[][..]));
    assert_eq!(verified(&key, 1, Stored::default()), Err(Distrust::Deleted));
    let headless = Stored {
        head: None,
        ..stored(&set_of(&key, &[row(RowKind::Pin, "p", "")]))
    };
    assert_eq!(verified(&key, 0, headless), Err(Distrust::Tampered));
}

#[test]
fn all_rows_of_a_prefix_go_and_no_others() {
    let key = TrustKey::draw().unwrap();
    let rows = ["a:1", "a:2", "ab:1", "b:1"].map(|id| row(RowKind::Pin, id, ""));
    let mut set = set_of(&key, &[&rows[..], &[row(RowKind::Rule, "a:1", "")]].concat());
    let delta = set.delta(
        &key,
        vec![
            Change::Put(row(RowKind::Pin, "a:3", "")),
            Change::DeleteAll {
                kind: RowKind::Pin,
                key_prefix: "a:".to_owned(),
            },
            Change::Put(row(RowKind::Pin, "a:2", "new")),
        ],
    );
    set.apply(delta);
    let left: Vec<_> = set
        .of(RowKind::Pin)
        .map(|row| (row.key.as_str(), row.body.as_str()))
        .collect();
    assert_eq!(left, [("a:2", "new"), ("ab:1", ""), ("b:1", "")]);
    assert!(set.get(RowKind::Rule, "a:1").is_some());
    assert!(set.get(RowKind::Pin, "a:1").is_none());
}

fn change() -> impl Strategy<Value = Change> {
    let kind = prop_oneof![Just(RowKind::Pin), Just(RowKind::Rule), Just(RowKind::Asker)];
    (kind, "[ab]{0,2}", "[xy]{0,2}", 0..4_u8).prop_map(|(kind, key, body, what)| match what {
        0 => Change::Delete(kind, key),
        1 => Change::DeleteAll { kind, key_prefix: key },
        _ => Change::Put(Row { kind, key, body }),
    })
}

proptest! {
    #[test]
    fn whatever_was_changed_in_whatever_order_verifies_as_it_was_left(
        batches in proptest::collection::vec(proptest::collection::vec(change(), 0..6), 1..6)
    ) {
        let key = TrustKey::draw().unwrap();
        let mut set = RowSet::empty(0);
        let mut plain = BTreeMap::new();
        for batch in &batches {
            for change in batch {
                match change.clone() {
                    Change::Put(row) => {
                        plain.insert((row.kind, row.key.clone()), row);
                    }
                    Change::Delete(kind, key) => {
                        plain.remove(&(kind, key));
                    }
                    Change::DeleteAll { kind, key_prefix } => {
                        plain.retain(|at, _| at.0 != kind || !at.1.starts_with(&key_prefix));
                    }
                }
            }
            let delta = set.delta(&key, batch.clone());
            set.apply(delta);
        }
        let generation = batches.len() as u64;
        prop_assert_eq!(set.generation(), generation);
        let found = verified(&key, generation, stored(&set)).unwrap();
        prop_assert_eq!(found, plain.into_values().collect::<Vec<_>>());
    }
}

//! Entries as lines of a file that other programs read. Pure.

use std::time::{Duration, UNIX_EPOCH};

use serde::Serialize;

use crate::{
    clock::stamp,
    snapshot::{ActivityEntry, ActivityRecord, ActivityWhat, AllowedBy, ExportFormat},
};

const HEADER: &str = "id,time,caller,client,client_name,program,program_path,program_script,pid,kind,connector,subject,detail,\
                      arguments,outcome,code,duration_ms,allowed_by,rule,warnings\r\n";

/// What a file begins with.
pub fn csv_header(format: ExportFormat) -> &'static str {
    match format {
        ExportFormat::Jsonl => "",
        ExportFormat::Csv => HEADER,
    }
}

/// One entry with its line's end.
pub fn line(entry: &ActivityEntry, format: ExportFormat) -> String {
    match format {
        ExportFormat::Jsonl => {
            // An entry is made of what was read from JSON.
            let mut line = serde_json::to_string(entry).unwrap_or_default();
            line.push('\n');
            line
        }
        ExportFormat::Csv => csv(entry),
    }
}

fn csv(entry: &ActivityEntry) -> String {
    let ActivityRecord {
        at,
        who,
        what,
        outcome,
        code,
        duration_ms,
        allowed_by,
        warnings,
    } = &entry.record;
    let arguments = what.arguments().map(word).unwrap_or_default();
    let (by, rule) = allowed(allowed_by);
    let cells = [
        entry.id.to_string(),
        stamp(UNIX_EPOCH + Duration::from_millis(*at)),
        word(&who.kind),
        who.client_id.clone().unwrap_or_default(),
        who.client_name.clone().unwrap_or_default(),
        who.program_name.clone().unwrap_or_default(),
        who.program_path.clone().unwrap_or_default(),
        who.program_script.clone().unwrap_or_default(),
        who.pid.map(|pid| pid.to_string()).unwrap_or_default(),
        word(&what.kind()),
        what.server().unwrap_or_default().to_owned(),
        what.subject().unwrap_or_default().to_owned(),
        detail(what),
        arguments,
        word(outcome),
        code.clone().unwrap_or_default(),
        duration_ms.map(|ms| ms.to_string()).unwrap_or_default(),
        by,
        rule,
        warnings.to_string(),
    ];
    let mut line = cells.iter().map(|text| cell(text)).collect::<Vec<_>>().join(",");
    line.push_str("\r\n");
    line
}

fn detail(what: &ActivityWhat) -> String {
    match what {
        ActivityWhat::Question { asks, .. } => word(asks),
        ActivityWhat::Review { of, .. } => word(of),
        ActivityWhat::Change { change, .. } => word(change),
        ActivityWhat::Lost { entries } => entries.to_string(),
        ActivityWhat::Call { .. }
        | ActivityWhat::Read { .. }
        | ActivityWhat::Prompt { .. }
        | ActivityWhat::SignIn { .. }
        | ActivityWhat::SignOut { .. } => String::new(),
    }
}

fn allowed(by: &AllowedBy) -> (String, String) {
    match by {
        AllowedBy::Owner => ("owner".to_owned(), String::new()),
        AllowedBy::Nobody => ("nobody".to_owned(), String::new()),
        AllowedBy::Rule { rule, .. } => ("rule".to_owned(), rule.clone()),
        AllowedBy::Person { answer } => (format!("person: {}", word(answer)), String::new()),
        AllowedBy::Policy { policy } => (format!("policy: {}", word(policy)), String::new()),
    }
}

/// The word by which an enum is known everywhere, or JSON.
fn word(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    json.trim_matches('"').to_owned()
}

/// RFC 4180, always in quotes. A table program runs what begins with certain characters as a formula, and where a cell
/// begins depends on what it takes for the separator and on what it leaves out: so wherever one could begin, an apostrophe
/// stands before them. Lines of JSON have everything as it is.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len() + 2);
    cell.push('"');
    let mut may_begin = true;
    for c in text.chars() {
        if may_begin && begins_formula(c) {
            cell.push('\'');
        }
        may_begin = c.is_whitespace() || c.is_control() || matches!(c, ',' | ';' | '|' | '"' | '\'' | '\u{feff}');
        if c == '"' {
            cell.push('"');
        }
        cell.push(c);
    }
    cell.push('"');
    cell
}

/// The wide forms count as the narrow ones in some languages.
fn begins_formula(c: char) -> bool {
    matches!(c, '=' | '+' | '-' | '@' | '|' | '＝' | '＋' | '－' | '＠' | '｜')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        ids::{ConnectorId, ToolName},
        snapshot::{ActivityCaller, ActivityOutcome, ActivityWho, Arguments},
    };

    fn entry(tool: &str) -> ActivityEntry {
        ActivityEntry {
            id: 7,
            record: ActivityRecord {
                at: 1_793_709_296_007,
                who: ActivityWho {
                    kind: ActivityCaller::WalkIn,
                    client_id: None,
                    client_name: None,
                    program_name: Some("-evil".into()),
                    program_path: Some("/usr/bin/a,b".into()),
                    program_script: None,
                    pid: Some(12),
                },
                what: ActivityWhat::Call {
                    server: ConnectorId::parse("files").unwrap(),
                    tool: ToolName::new(tool),
                    arguments: Arguments::Shape(json!({"path": "text(3)"})),
                },
                outcome: ActivityOutcome::Failed,
                code: Some("tool_error".into()),
                duration_ms: Some(3),
                allowed_by: AllowedBy::Rule {
                    rule: "r1".into(),
                    name: None,
                },
                warnings: false,
            },
        }
    }

    #[test]
    fn a_line_of_csv_has_the_cells_of_its_header() {
        let line = line(&entry("read"), ExportFormat::Csv);
        assert_eq!(
            line,
            "\"7\",\"2026-11-03T12:34:56.007Z\",\"walk_in\",\"\",\"\",\"'-evil\",\"/usr/bin/a,b\",\"\",\"12\",\"call\",\"files\",\
             \"read\",\"\",\"{\"\"kept\"\":\"\"shape\"\",\"\"value\"\":{\"\"path\"\":\"\"text(3)\"\"}}\",\"failed\",\
             \"tool_error\",\"3\",\"rule\",\"r1\",\"false\"\r\n"
        );
        assert_eq!(csv_header(ExportFormat::Csv).split(',').count(), 20);
    }

    #[test]
    fn no_cell_is_a_formula_and_none_breaks_its_line() {
        for (text, written) in [
            ("", "\"\""),
            ("plain", "\"plain\""),
            ("=1+1", "\"'=1+1\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("|cmd", "\"'|cmd\""),
            ("＝1", "\"'＝1\""),
            ("\t=1", "\"\t'=1\""),
            (" \u{a0}=1", "\" \u{a0}'=1\""),
            ("\n=1", "\"\n'=1\""),
            ("x;=1+1", "\"x;'=1+1\""),
            ("x,-1", "\"x,'-1\""),
            ("x;\"=1\"", "\"x;\"\"'=1\"\"\""),
            ("a\r\nb", "\"a\r\nb\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("a=b", "\"a=b\""),
        ] {
            assert_eq!(cell(text), written);
        }
    }

    #[test]
    fn no_cell_is_a_formula_whatever_the_separator_is_taken_to_be() {
        let formulas = ["=1+1", "+1", "-1", "@a", "|a", "=HYPERLINK(\"x\")"];
        let befores = [
            "", " ", "\t", "\n", "\r", "x;", "x,", "x\t", "x\n", "x|", "x; ", "x;\"", "x;'", "\u{feff}",
        ];
        for (before, formula) in befores
            .iter()
            .flat_map(|before| formulas.map(|formula| (before, formula)))
        {
            let line = line(&entry(&format!("{before}{formula}")), ExportFormat::Csv);
            for separator in [',', ';', '\t', '|'] {
                for cell in line.split(['\r', '\n', separator]) {
                    // With and without what is left out around it.
                    let bare = cell.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\u{feff}'));
                    assert!(!bare.starts_with(['=', '+', '-', '@']), "{separator:?}: {line:?}");
                }
            }
        }
    }

    #[test]
    fn a_line_of_json_is_the_entry_itself() {
        let line = line(&entry("re\nad"), ExportFormat::Jsonl);
        assert_eq!(line.matches('\n').count(), 1);
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["what"]["tool"], "re\nad");
        assert_eq!((&read["id"], &read["at"]), (&json!(7), &json!(1_793_709_296_007_u64)));
    }
}

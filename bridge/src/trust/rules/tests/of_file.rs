use super::*;

#[test]
fn where_the_file_decides_its_rules_follow_it_but_not_a_changed_tool() {
    let mut next = 10;
    let mut apply = |wish: &AutoApprove, known: &[Known], existing: &[Rule]| {
        let mut new_id = || {
            next += 1;
            id(next)
        };
        rules_from_file(
            &server(),
            wish,
            &candidates(known),
            Some(launch()),
            existing,
            7,
            &mut new_id,
        )
    };
    let wish = AutoApprove::Patterns(vec!["read*".into()]);
    let first = apply(&wish, &[known("read", 1), known("write", 2)], &[]);
    assert_eq!(bound_names(&first[0]), ["read"]);

    let again = apply(&wish, &[known("read", 1)], &first);
    assert_eq!(again, first, "nothing changed, and the rule keeps its id");

    // What joins later was not there when the file said it, unless it is named.
    let joined = apply(&wish, &[known("read", 1), known("read_all", 3)], &first);
    assert_eq!(joined, first);
    let all = apply(&AutoApprove::All, &[known("read", 1)], &[]);
    assert_eq!(
        apply(&AutoApprove::All, &[known("read", 1), known("new", 3)], &all),
        all
    );
    let name = AutoApprove::Patterns(vec!["later".into()]);
    let none = apply(&name, &[known("read", 1)], &[]);
    assert_eq!(bound_names(&none[0]), [""; 0]);
    assert_eq!(bound_names(&apply(&name, &[known("later", 3)], &none)[0]), ["later"]);
    let said_anew = apply(&wish, &[known("read", 1), known("read_all", 3)], &[]);
    assert_eq!(bound_names(&said_anew[0]), ["read", "read_all"]);
    // Before a list is known nothing is bound, and the first list is.
    assert_eq!(apply(&AutoApprove::All, &[], &[]), []);

    let changed = apply(&wish, &[known("read", 9)], &first);
    assert!(changed[0].binds(&ToolName::new("read"), fingerprint(1)));
    assert!(!changed[0].binds(&ToolName::new("read"), fingerprint(9)));

    assert_eq!(apply(&AutoApprove::None, &[known("read", 1)], &first), []);
    let mut odd = known("read", 1);
    odd.clean = false;
    assert_eq!(bound_names(&apply(&wish, &[odd], &[])[0]), [""; 0]);
}

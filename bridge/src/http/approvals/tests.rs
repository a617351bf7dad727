use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::super::fake::{PRIVATE, Reply, Running, get, post};

#[tokio::test]
async fn the_owner_sees_what_is_asked_and_a_walk_in_only_how_it_stands() {
    let server = Running::start().await;
    for path in ["/mcp/approvals", "/mcp/approvals/q1"] {
        let told = server.ask(get(path)).await;
        assert_eq!(told.status, 200, "{path}");
        assert!(!told.body.contains(PRIVATE), "{}", told.body);
    }
    let stands = json!({
        "id": "q1", "kind": "elicitation", "state": "waiting", "server": "files", "server_name": "Files",
        "asked_at": 1, "expires_at": 2,
    });
    assert_eq!(server.ask(get("/mcp/approvals/q1")).await.json(), stands);
    let mut local = server.connect_local().await;
    local.write_all(get("/mcp/approvals").as_bytes()).await.unwrap();
    let whole = Reply::read(&mut local).await.json();
    assert_eq!(whole["approvals"][0]["question"]["asks"]["message"], PRIVATE);
    assert_eq!(
        server.api.take_done(),
        [
            "approvals walk-in",
            "approval walk-in q1",
            "approval walk-in q1",
            "approvals owner"
        ]
    );
    let unknown = server.ask(get("/mcp/approvals/q2")).await;
    assert_eq!((unknown.status, unknown.refusal().as_str()), (404, "not_found"));
    server.stop().await;
}

#[tokio::test]
async fn a_launch_is_the_owners_alone_to_see_and_to_answer() {
    let server = Running::start().await;
    assert!(!server.ask(get("/mcp/approvals")).await.body.contains("launch"));
    let unseen = server.ask(get("/mcp/approvals/launch-1")).await;
    assert_eq!((unseen.status, unseen.refusal().as_str()), (404, "not_found"));
    let refused = server
        .ask(post("/mcp/approvals/launch-1", r#"{"answer":"approve"}"#))
        .await;
    assert_eq!((refused.status, refused.refusal().as_str()), (403, "scope_missing"));
    let owner = async |request: String| {
        let mut local = server.connect_local().await;
        local.write_all(request.as_bytes()).await.unwrap();
        Reply::read(&mut local).await
    };
    let list = owner(get("/mcp/approvals")).await.json();
    assert_eq!(list["approvals"][1]["kind"], "launch");
    assert_eq!(list["approvals"][1]["launch"]["now"]["command_line"], json!([PRIVATE]));
    server.api.take_done();
    for (said, done, state) in [
        ("approve", "approve_launches launch-1", "approved"),
        ("deny", "keep_blocked launch-1", "denied"),
    ] {
        let body = json!({"answer": said}).to_string();
        let answered = owner(post("/mcp/approvals/launch-1", &body)).await.json();
        assert_eq!(
            (&answered["ok"], &answered["approval"]["state"]),
            (&json!(true), &json!(state))
        );
        assert_eq!(server.api.take_done(), [done]);
    }
    for bad in [r#"{"answer":"longer"}"#, r#"{"answer":"approve","content":{}}"#] {
        assert_eq!(owner(post("/mcp/approvals/launch-1", bad)).await.status, 400, "{bad}");
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

#[tokio::test]
async fn tools_that_wait_are_the_owners_alone_and_a_plain_yes_leaves_out_what_stands_out() {
    let server = Running::start().await;
    let seen = server.ask(get("/mcp/approvals")).await.body;
    assert!(!seen.contains("v-new") && !seen.contains(PRIVATE), "{seen}");
    let owner = async |request: String| {
        let mut local = server.connect_local().await;
        local.write_all(request.as_bytes()).await.unwrap();
        Reply::read(&mut local).await
    };
    let list = owner(get("/mcp/approvals")).await.json();
    let waiting = &list["approvals"][2];
    assert_eq!(
        (&waiting["kind"], &waiting["state"]),
        (&json!("tools"), &json!("waiting"))
    );
    assert_eq!(waiting["tools"]["tools"][1]["state"], "held");
    let path = format!("/mcp/approvals/{}", waiting["id"].as_str().unwrap());
    assert_eq!(server.ask(get(&path)).await.status, 404);
    assert_eq!(server.ask(post(&path, r#"{"answer":"approve"}"#)).await.status, 403);
    assert_eq!(owner(get(&path)).await.json()["tools"]["tools"][0]["version"], "v-new");
    server.api.take_done();
    for (said, done) in [
        (
            json!({"answer": "approve"}),
            &["approve_tools files new=v-new", "approve_instructions files v-text"][..],
        ),
        (
            json!({"answer": "approve", "content": {"tools": ["odd"]}}),
            &["approve_tools files odd=v-odd"],
        ),
        (
            json!({"answer": "approve", "content": {"prompts": ["sum"]}}),
            &["approve_prompt files sum=v-sum"],
        ),
        (
            json!({"answer": "deny", "content": {"prompts": ["sum"]}}),
            &["keep_prompt_blocked files sum=v-sum"],
        ),
        (
            json!({"answer": "approve", "content": {"instructions": true}}),
            &["approve_instructions files v-text"],
        ),
        (
            json!({"answer": "deny"}),
            &[
                "keep_tool_blocked files new=v-new",
                "keep_tool_blocked files odd=v-odd",
                "keep_prompt_blocked files sum=v-sum",
                "keep_instructions_withheld files v-text",
            ],
        ),
        (
            json!({"answer": "deny", "content": {"instructions": true}}),
            &["keep_instructions_withheld files v-text"],
        ),
        (
            json!({"answer": "deny", "content": {"tools": ["odd"]}}),
            &["keep_tool_blocked files odd=v-odd"],
        ),
    ] {
        let answered = owner(post(&path, &said.to_string())).await.json();
        assert_eq!(answered["ok"], true, "{answered}");
        assert_eq!(server.api.take_done(), done, "{said}");
    }
    for bad in [
        r#"{"answer":"longer"}"#,
        r#"{"answer":"approve","content":{"tools":["new","other"]}}"#,
        r#"{"answer":"approve","content":{"tool":"new"}}"#,
        r#"{"answer":"approve","content":{}}"#,
    ] {
        assert_eq!(owner(post(&path, bad)).await.status, 400, "{bad}");
    }
    let other = format!("{}0", &path[..path.len() - 1]);
    let other = if other == path {
        format!("{}1", &path[..path.len() - 1])
    } else {
        other
    };
    server.api.take_done();
    owner(post(&other, r#"{"answer":"approve"}"#)).await;
    let done = server.api.take_done();
    assert!(done.iter().all(|done| !done.starts_with("approve_tools")), "{done:?}");
    server.stop().await;
}

#[tokio::test]
async fn an_answer_is_one_of_four_and_values_go_only_with_a_yes() {
    let server = Running::start().await;
    let answer = async |body: &str| {
        let mut local = server.connect_local().await;
        let request = post("/mcp/approvals/q1", body);
        local.write_all(request.as_bytes()).await.unwrap();
        Reply::read(&mut local).await
    };
    for (body, done) in [
        (r#"{"answer":"approve"}"#, "answer_approval q1 Approve(None)"),
        (
            r#"{"answer":"approve","content":{"n":1.10}}"#,
            r#"answer_approval q1 Approve(Some({"n": Number(1.10)}))"#,
        ),
        (r#"{"answer":"deny"}"#, "answer_approval q1 Deny"),
        (r#"{"answer":"cancel"}"#, "answer_approval q1 Cancel"),
        (r#"{"answer":"longer"}"#, "extend_approval q1"),
    ] {
        let reply = answer(body).await;
        assert_eq!(
            (reply.status, &reply.json()["approval"]["id"]),
            (200, &json!("q1")),
            "{body}"
        );
        assert_eq!(server.api.take_done(), [done]);
    }
    for body in [
        "{}",
        r#"{"answer":"yes"}"#,
        r#"{"answer":"deny","content":{}}"#,
        r#"{"answer":"longer","content":{}}"#,
        r#"{"answer":"approve","content":[]}"#,
        r#"{"answer":"approve","id":"q2"}"#,
        r#"{"answer":"approve","content":{"a":1,"a":2}}"#,
    ] {
        let reply = answer(body).await;
        assert_eq!((reply.status, reply.refusal().as_str()), (400, "bad_request"), "{body}");
    }
    assert_eq!(server.api.take_done(), [""; 0]);
    server.stop().await;
}

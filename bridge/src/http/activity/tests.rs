use tokio::io::AsyncWriteExt as _;

use super::super::fake::{Reply, Running, get};

async fn owner(server: &Running, path: &str) -> Reply {
    let mut local = server.connect_local().await;
    local.write_all(get(path).as_bytes()).await.unwrap();
    Reply::read(&mut local).await
}

#[tokio::test]
async fn activity_is_the_owners_alone() {
    let server = Running::start().await;
    for path in ["/mcp/activity", "/mcp/activity?format=csv"] {
        let refused = server.ask(get(path)).await;
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (403, &"scope_missing".into())
        );
        assert_eq!(server.api.take_done(), Vec::<String>::new());
        assert_eq!(owner(&server, path).await.status, 200);
        assert_eq!(server.api.take_done().len(), 1);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_page_is_asked_for_as_it_says_and_nonsense_is_refused() {
    let server = Running::start().await;
    let page = owner(
        &server,
        "/mcp/activity?server=files&caller=walk_in&outcome=denied&kind=call&text=a%20b&from=1&to=2&cursor=9&limit=5",
    );
    assert_eq!(page.await.status, 200);
    let done = server.api.take_done().concat();
    for part in [
        "files",
        "WalkIn",
        "Denied",
        "Call",
        "a b",
        "Some(1)",
        "Some(2)",
        "Before(9) 5",
    ] {
        assert!(done.contains(part), "{part}: {done}");
    }
    for bad in [
        "limit=0",
        "limit=501",
        "cursor=1&after=2",
        "cursor=x",
        "cursor=18446744073709551615",
        "from=9223372036854775808",
        "outcome=good",
        "format=xml",
        "format=csv&limit=5",
        "more=1",
    ] {
        let refused = owner(&server, &format!("/mcp/activity?{bad}")).await;
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (400, &"bad_request".into()),
            "{bad}"
        );
        assert_eq!(server.api.take_done(), Vec::<String>::new(), "{bad}");
    }
    server.stop().await;
}

use super::*;

fn found(line: &str) -> Vec<(String, bool)> {
    let words = shell_words::split(line).unwrap();
    let found = packages(&words[0], &words[1..]);
    found
        .into_iter()
        .map(|package| (package.name, package.pinned))
        .collect()
}

#[test]
fn a_package_and_whether_its_version_is_fixed_are_read_from_every_runners_line() {
    for (line, name, pinned) in [
        ("npx -y pkg", "pkg", false),
        ("npx -y pkg@latest", "pkg", false),
        ("npx -y pkg@1", "pkg", false),
        ("npx -y pkg@^1.2.3", "pkg", false),
        ("npx -y pkg@1.2.3", "pkg", true),
        ("npx -y pkg@1.2.3-beta.1 --flag", "pkg", true),
        ("npx -y @scope/pkg", "@scope/pkg", false),
        ("npx -y @scope/pkg@2.0.0", "@scope/pkg", true),
        ("/opt/node/bin/npx.cmd --yes @scope/pkg@next", "@scope/pkg", false),
        ("npx --package=pkg@1.2.3 tool --x", "pkg", true),
        ("npx -p pkg tool", "pkg", false),
        ("npx --registry https://r.example pkg@1.2.3", "pkg", true),
        ("npx -y github:a/b", "github:a/b", false),
        (
            "npx -y a/b#0123456789012345678901234567890123456789",
            "a/b#0123456789012345678901234567890123456789",
            true,
        ),
        ("bunx pkg@1.0.0", "pkg", true),
        ("bun x pkg", "pkg", false),
        ("pnpm dlx pkg", "pkg", false),
        ("yarn dlx pkg@1.0.0", "pkg", true),
        ("npm exec -y -- pkg@1.0.0", "pkg", true),
        ("uvx mcp-server-time", "mcp-server-time", false),
        ("uvx mcp-server-time@latest", "mcp-server-time", false),
        ("uvx mcp-server-time@1.2", "mcp-server-time", true),
        ("uvx mcp-server-time==1.2.3", "mcp-server-time", true),
        ("uvx 'mcp-server-time>=1'", "mcp-server-time", false),
        ("uvx --from 'pkg[cli]==1.0' tool", "pkg", true),
        ("uvx --from=pkg tool", "pkg", false),
        ("uvx --python 3.12 pkg==1", "pkg", true),
        (
            "uvx --from git+https://e.example/x tool",
            "git+https://e.example/x",
            false,
        ),
        ("uv tool run pkg", "pkg", false),
        ("pipx run --spec pkg==1.0 tool", "pkg", true),
        ("uv run --with pkg server.py", "pkg", false),
        ("docker run -i --rm mcp/time", "mcp/time", false),
        ("docker run -i --rm mcp/time:latest", "mcp/time", false),
        (
            "docker run -it --rm -e A=1 --mount type=bind,src=/a,dst=/b mcp/time:1.2",
            "mcp/time",
            true,
        ),
        ("docker run -eA=1 -ite B r.example:5000/x", "r.example:5000/x", false),
        ("podman run --name n x@sha256:00", "x", true),
        ("deno run -A npm:pkg@1.2.3", "npm:pkg@1.2.3", true),
        ("deno run -A jsr:@a/b", "jsr:@a/b", false),
        ("go run example.com/x@v1.2.3", "example.com/x@v1.2.3", true),
        ("go run example.com/x@latest", "example.com/x@latest", false),
    ] {
        assert_eq!(found(line), [(name.to_owned(), pinned)], "{line}");
    }
    assert_eq!(found("uvx --with b==1 a").len(), 2);
    assert_eq!(
        found("npx -p a@1.0.0 -p b tool"),
        [("a".to_owned(), true), ("b".to_owned(), false)]
    );
}

#[test]
fn what_lies_here_is_no_package() {
    for line in [
        "npx ./server",
        "node server.js",
        "npx",
        "uvx",
        "docker run",
        "uv run server.py",
        "go run ./x",
        "uvx /x",
    ] {
        assert!(found(line).is_empty(), "{line}");
    }
}

#[test]
fn a_version_takes_its_place_in_the_argument_and_nothing_else() {
    for (line, version, pinned) in [
        ("npx -y @s/p@latest x", "1.2.3", "@s/p@1.2.3"),
        ("uvx p", "1.2", "p==1.2"),
        ("uvx --from='p[cli]' t", "1.2", "p[cli]==1.2"),
    ] {
        let words = shell_words::split(line).unwrap();
        let package = packages(&words[0], &words[1..]).remove(0);
        let mut arg = words[1 + package.arg].clone();
        arg.replace_range(package.bytes.clone(), &pinned_spec(&package, version).unwrap());
        assert!(arg.ends_with(pinned), "{arg}");
    }
    assert!(!is_plain_version("1; x") && !is_plain_version("--x") && !is_plain_version("latest"));
    assert!(!is_plain_name("-x") && !is_plain_name("a b") && is_plain_name("@a/b"));
}

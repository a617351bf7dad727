"""A FastMCP server that wants a sign-in, with its own authorization server; over HTTP at a port, with tokens that live for
so many seconds."""

import sys

import fastmcp.server.auth.providers.in_memory as in_memory
from fastmcp import FastMCP
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions

port = int(sys.argv[1])
in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = int(sys.argv[2])

auth = in_memory.InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{port}",
    client_registration_options=ClientRegistrationOptions(
        enabled=True, valid_scopes=["read", "write"], default_scopes=["read"]
    ),
    revocation_options=RevocationOptions(enabled=True),
    required_scopes=["read"],
)
server = FastMCP("signed-in", auth=auth)


@server.tool
def add(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    return a + b


server.run(transport="http", host="127.0.0.1", port=port, show_banner=False)

"""A FastMCP server over HTTP at a port."""

import sys

from fastmcp import FastMCP

server = FastMCP("fast")


@server.tool
def add(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    return a + b


server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)

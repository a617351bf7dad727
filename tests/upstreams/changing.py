"""A server whose tool list changes while it runs; over its pipes, or over HTTP at a port."""

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("changing")


@server.tool()
async def grow(context: Context) -> str:
    """Adds the tool `grown` and says so."""

    def grown() -> str:
        """Was not there before."""
        return "here"

    server.add_tool(grown)
    await context.notify_tools_changed()
    return "grown"


if len(sys.argv) > 1:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run(transport="stdio")

"""A server made with the official Python SDK that offers resources, a template and a prompt besides tools."""

from mcp.server import MCPServer

server = MCPServer("notes")


@server.resource("notes://today", mime_type="text/plain")
def today() -> str:
    return "heute 🦀"


@server.resource("notes://picture", mime_type="image/png")
def picture() -> bytes:
    return bytes(range(256)) * 1000


@server.resource("notes://{day}/entry")
def entry(day: str) -> str:
    return f"entry of {day}"


@server.prompt(title="Summarize")
def summarize(text: str, style: str = "short") -> str:
    return f"Summarize ({style}): {text}"


server.run()

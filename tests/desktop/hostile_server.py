"""A server over stdin and stdout whose every text is markup: what a page must never take as such."""

import json
import sys

MARKUP = '<img src=x onerror="window.injected = true"><script src=x></script><b>bold</b>'

TOOL = {
    "name": "greet",
    "title": f"title {MARKUP}",
    "description": f"description {MARKUP}",
    "inputSchema": {"type": "object", "properties": {"name": {"type": "string", "description": MARKUP}}},
}


def answer(request):
    """The result of a request; an error for a method that this server does not know."""
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": MARKUP, "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"result {MARKUP}"}], "structuredContent": {MARKUP: MARKUP}}
        case _:
            return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request)
    outcome = {"result": result} if result else {"error": {"code": -32601, "message": f"unknown {MARKUP}"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | outcome), flush=True)

"""A server over stdin and stdout with one tool that writes what it is told to its standard error."""

import json
import sys

TOOL = {
    "name": "write",
    "description": "Writes a line to standard error.",
    "inputSchema": {"type": "object", "properties": {"line": {"type": "string"}}, "required": ["line"]},
}


def answer(request):
    """The result of a request; an error for a method that this server does not know."""
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "chatty", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            print(request["params"]["arguments"]["line"], file=sys.stderr, flush=True)
            return {"content": [{"type": "text", "text": "written"}]}
        case _:
            return None


print("chatty is ready", file=sys.stderr, flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request)
    outcome = {"result": result} if result else {"error": {"code": -32601, "message": "unknown method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | outcome), flush=True)

"""A server over stdin and stdout that notes each of its starts in a folder and offers the tools and prompts that lie there.

Started as `changing_server.py FOLDER NAME`: it adds a line to `FOLDER/NAME.started`, and reads `FOLDER/NAME.tools.json`,
where there is one, whenever it is asked for its tools, and `FOLDER/NAME.prompts.json` likewise.
"""

import json
import sys
from pathlib import Path

TOOLS = [
    {
        "name": "read_note",
        "description": "Reads a note.",
        "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "write_note",
        "description": "Writes a note.",
        "inputSchema": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "text": {"type": "string"}},
            "required": ["title", "text"],
        },
    },
]


def tools(folder, name):
    kept = folder / f"{name}.tools.json"
    return json.loads(kept.read_text()) if kept.exists() else TOOLS


def prompts(folder, name):
    kept = folder / f"{name}.prompts.json"
    return json.loads(kept.read_text()) if kept.exists() else []


def answer(request, folder, name):
    """The result of a request; none for a method that this server does not know."""
    match request["method"]:
        case "initialize":
            return {
                "protocolVersion": request["params"]["protocolVersion"],
                "capabilities": {"tools": {}, "prompts": {}},
                "serverInfo": {"name": name, "version": "1"},
            }
        case "tools/list":
            return {"tools": tools(folder, name)}
        case "prompts/list":
            return {"prompts": prompts(folder, name)}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"done: {json.dumps(request['params'])}"}]}
        case _:
            return None


if __name__ == "__main__":
    place, called = Path(sys.argv[1]), sys.argv[2]
    with open(place / f"{called}.started", "a") as started:
        started.write("started\n")
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(request, place, called)
        outcome = {"result": result} if result else {"error": {"code": -32601, "message": "unknown method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | outcome), flush=True)

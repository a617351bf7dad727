"""A program that uses a tool, as an assistant without a token does: `calling.py ADDRESS NAME ARGUMENTS`.

It prints the HTTP status and the answer, as JSON.
"""

import json
import sys
import urllib.error
import urllib.request

# A question waits for two minutes, and ten once the person asks for more time.
_DEADLINE = 900


def post(address, body, token=None):
    """The status and the answer."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=_DEADLINE) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.load(refusal)


if __name__ == "__main__":
    address, name, given = sys.argv[1:]
    print(json.dumps(post(f"{address}/mcp/call", {"name": name, "input": json.loads(given)})))

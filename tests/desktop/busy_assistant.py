"""An assistant without a token: for each line on standard input, `[NAME, ARGUMENTS]`, it uses a tool and prints what came of
it, one line each, before it reads the next. Started as `busy_assistant.py ADDRESS`.
"""

import json
import sys

from calling import post

for line in sys.stdin:
    name, given = json.loads(line)
    print(json.dumps(post(f"{sys.argv[1]}/mcp/call", {"name": name, "input": given})), flush=True)

"""The authorization server that behaves as told, with the MCP server that it protects."""

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from desktop import PROGRAMS

_DEADLINE = 20


class Authority:
    """Use as a context manager. Options are told at the top of the program; `_` stands for `-`."""

    def __init__(self, **options):
        self._options = options

    def __enter__(self):
        told = [part for name, value in self._options.items() for part in (f"--{name.replace('_', '-')}", value)]
        self._process = subprocess.Popen(
            [PROGRAMS / "fake-authority", *told], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        self.base = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    @property
    def entry(self):
        """The member of `servers`."""
        return {"name": "Notes", "transport": "http", "url": f"{self.base}/mcp"}

    def set(self, **options):
        """Changes options while it runs."""
        values = {name.replace("_", "-"): value for name, value in options.items()}
        request = urllib.request.Request(
            f"{self.base}/fake/set", json.dumps(values).encode(), {"Content-Type": "application/json"}
        )
        urllib.request.urlopen(request, timeout=_DEADLINE).close()

    def count(self, what):
        """How often something happened there: `registered`, `authorized`, `issued`, `served`."""
        with urllib.request.urlopen(f"{self.base}/fake/state", timeout=_DEADLINE) as answer:
            return json.load(answer)[what]


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def follow(address):
    """Opens a sign-in page as a browser does, up to the way back: the address that it leads to; none on an error page."""
    try:
        urllib.request.build_opener(_Stay).open(address, timeout=_DEADLINE).close()
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.headers.get("Location")
    return None


def visit(address):
    """Opens an address and follows it to its end: the page's text."""
    with urllib.request.urlopen(address, timeout=_DEADLINE) as answer:
        return answer.read().decode()


def query(address):
    """What stands after the question mark, each name once."""
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))

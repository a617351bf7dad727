"""The two things a window manager would do: see the windows, and ask one to close."""

import contextlib
import ctypes
import ctypes.util
import subprocess

_CLIENT_MESSAGE = 33


class _ClientMessage(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", ctypes.c_long * 5),
    ]


class _Event(ctypes.Union):
    # An XEvent is as large as 24 longs, whichever member is meant.
    _fields_ = [("client", _ClientMessage), ("pad", ctypes.c_long * 24)]


def windows(display, title):
    """Ids of the visible windows of exactly this title."""
    found = subprocess.run(
        ["xdotool", "search", "--onlyvisible", "--name", f"^{title}$"],
        env={"DISPLAY": display}, capture_output=True, text=True,
    )
    return [int(line) for line in found.stdout.split()]


def ask_to_close(display, window):
    """Sends WM_DELETE_WINDOW."""
    x = ctypes.CDLL(ctypes.util.find_library("X11"))
    x.XOpenDisplay.restype = ctypes.c_void_p
    x.XInternAtom.restype = ctypes.c_ulong
    connection = ctypes.c_void_p(x.XOpenDisplay(display.encode()))
    assert connection, f"no X server at {display}"
    with contextlib.ExitStack() as stack:
        stack.callback(x.XCloseDisplay, connection)
        atom = lambda name: x.XInternAtom(connection, name, False)
        event = _Event()
        event.client.type = _CLIENT_MESSAGE
        event.client.window = window
        event.client.message_type = atom(b"WM_PROTOCOLS")
        event.client.format = 32
        event.client.data[0] = atom(b"WM_DELETE_WINDOW")
        x.XSendEvent(connection, ctypes.c_ulong(window), False, ctypes.c_long(0), ctypes.byref(event))
        x.XSync(connection, False)

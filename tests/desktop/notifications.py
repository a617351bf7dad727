"""What a desktop's notification area is to the app: it keeps what it is told to show."""

import threading

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

_NAME = "org.freedesktop.Notifications"
_INTERFACE = f"""
<node><interface name="{_NAME}">
  <method name="Notify">
    <arg type="s" direction="in"/><arg type="u" direction="in"/><arg type="s" direction="in"/>
    <arg type="s" direction="in"/><arg type="s" direction="in"/><arg type="as" direction="in"/>
    <arg type="a{{sv}}" direction="in"/><arg type="i" direction="in"/><arg type="u" direction="out"/>
  </method>
</interface></node>
"""


class Notifications:
    """Use as a context manager. `shown` are the texts, `actions` what could be clicked in them."""

    def __init__(self, bus_address):
        self._address = bus_address
        self.shown, self.actions = [], []

    def __enter__(self):
        ready = threading.Event()
        self._context = GLib.MainContext()
        self._loop = GLib.MainLoop(self._context)
        self._thread = threading.Thread(target=self._serve, args=[ready], daemon=True)
        self._thread.start()
        assert ready.wait(10), "the notification area did not start"
        return self

    def __exit__(self, *_):
        self._context.invoke_full(GLib.PRIORITY_DEFAULT, self._loop.quit)
        self._thread.join(10)
        self._bus.close_sync(None)

    def _serve(self, ready):
        self._context.push_thread_default()
        flags = Gio.DBusConnectionFlags
        self._bus = Gio.DBusConnection.new_for_address_sync(
            self._address, flags.AUTHENTICATION_CLIENT | flags.MESSAGE_BUS_CONNECTION, None, None
        )
        interface = Gio.DBusNodeInfo.new_for_xml(_INTERFACE).interfaces[0]
        self._bus.register_object("/org/freedesktop/Notifications", interface, self._notify, None, None)
        Gio.bus_own_name_on_connection(self._bus, _NAME, Gio.BusNameOwnerFlags.NONE, lambda *_: ready.set(), None)
        self._loop.run()

    def _notify(self, _bus, _sender, _path, _interface, _method, arguments, invocation):
        _app, _replaces, _icon, title, text, actions, _hints, _time = arguments.unpack()
        self.actions += actions
        self.shown.append(f"{title}: {text}")
        invocation.return_value(GLib.Variant("(u)", (len(self.shown),)))

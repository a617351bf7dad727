"""What a desktop's panel is to the app: a StatusNotifierWatcher that sees its icon, reads its menu and clicks in it."""

import threading

import gi

gi.require_version("Gio", "2.0")
from gi.repository import Gio, GLib  # noqa: E402

from waiting import until  # noqa: E402

_WATCHER = "org.kde.StatusNotifierWatcher"
_ITEM = "org.kde.StatusNotifierItem"
_MENU = "com.canonical.dbusmenu"
_CALL_DEADLINE_MS = 10_000

_INTERFACE = f"""
<node><interface name="{_WATCHER}">
  <method name="RegisterStatusNotifierItem"><arg type="s" direction="in"/></method>
  <method name="RegisterStatusNotifierHost"><arg type="s" direction="in"/></method>
  <property name="RegisteredStatusNotifierItems" type="as" access="read"/>
  <property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
  <property name="ProtocolVersion" type="i" access="read"/>
  <signal name="StatusNotifierItemRegistered"><arg type="s"/></signal>
</interface></node>
"""


class TrayHost:
    """Use as a context manager."""

    def __init__(self, bus_address):
        self._address = bus_address
        self._items = []

    def __enter__(self):
        ready = threading.Event()
        self._context = GLib.MainContext()
        self._loop = GLib.MainLoop(self._context)
        self._thread = threading.Thread(target=self._serve, args=[ready], daemon=True)
        self._thread.start()
        assert ready.wait(10), "the tray host did not start"
        return self

    def __exit__(self, *_):
        self._context.invoke_full(GLib.PRIORITY_DEFAULT, self._loop.quit)
        self._thread.join(10)
        self._bus.close_sync(None)

    def menu(self):
        """The lines of the menu, those behind others after them; separators left out."""
        until("the app's icon in the tray", self.present)
        owner, path = self._items[-1]
        menu = self._call(owner, path, "org.freedesktop.DBus.Properties", "Get", "(ss)", (_ITEM, "Menu"))[0]
        self._call(owner, menu, _MENU, "AboutToShow", "(i)", (0,))
        _revision, root = self._call(
            owner, menu, _MENU, "GetLayout", "(iias)", (0, -1, ["label", "enabled", "toggle-state", "type"])
        )
        return [
            Line(self, owner, menu, item, properties)
            for item, properties in _below(root)
            if properties.get("type") != "separator"
        ]

    def line(self, label):
        """Waits for the menu line that starts so."""
        return until(f"the menu line “{label}”", lambda: self._line(label), report=lambda: f"the menu: {self.menu()}")

    def present(self):
        """Whether the icon that was registered last is still there."""
        if not self._items:
            return False
        bus = "org.freedesktop.DBus"
        return self._call(bus, "/org/freedesktop/DBus", bus, "NameHasOwner", "(s)", (self._items[-1][0],))[0]

    def icon(self):
        """The icon's present name, a path."""
        owner, path = self._items[-1]
        return self._call(owner, path, "org.freedesktop.DBus.Properties", "Get", "(ss)", (_ITEM, "IconName"))[0]

    def _line(self, label):
        return next((line for line in self.menu() if line.label.startswith(label)), None)

    def _call(self, owner, path, interface, method, signature, arguments):
        return self._bus.call_sync(
            owner, path, interface, method, GLib.Variant(signature, arguments), None, Gio.DBusCallFlags.NONE,
            _CALL_DEADLINE_MS, None,
        ).unpack()

    def _serve(self, ready):
        self._context.push_thread_default()
        flags = Gio.DBusConnectionFlags
        self._bus = Gio.DBusConnection.new_for_address_sync(
            self._address, flags.AUTHENTICATION_CLIENT | flags.MESSAGE_BUS_CONNECTION, None, None
        )
        interface = Gio.DBusNodeInfo.new_for_xml(_INTERFACE).interfaces[0]
        self._bus.register_object("/StatusNotifierWatcher", interface, self._method, self._property, None)
        Gio.bus_own_name_on_connection(
            self._bus, _WATCHER, Gio.BusNameOwnerFlags.NONE, lambda *_: ready.set(), None
        )
        self._loop.run()

    def _method(self, _bus, sender, _path, _interface, method, arguments, invocation):
        if method == "RegisterStatusNotifierItem":
            # An item says either its bus name or, as ours does, its object path.
            service = arguments.unpack()[0]
            self._items.append((sender, service) if service.startswith("/") else (service, "/StatusNotifierItem"))
        invocation.return_value(None)

    def _property(self, _bus, _sender, _path, _interface, name):
        return {
            "RegisteredStatusNotifierItems": GLib.Variant("as", [owner + path for owner, path in self._items]),
            "IsStatusNotifierHostRegistered": GLib.Variant("b", True),
            "ProtocolVersion": GLib.Variant("i", 0),
        }[name]


def _below(entry):
    """What a menu's entry has behind it, each with what it has behind it in turn."""
    _item, _properties, children = entry
    for child in children:
        yield child[:2]
        yield from _below(child)


class Line:
    """One line of the menu as it was read."""

    def __init__(self, host, owner, menu, item, properties):
        self._host, self._owner, self._menu, self._item = host, owner, menu, item
        # An underscore marks a key; two are one.
        self.label = properties.get("label", "").replace("__", "_")
        self.enabled = properties.get("enabled", True)
        self.checked = {0: False, 1: True}.get(properties.get("toggle-state"))

    def click(self):
        self._host._call(
            self._owner, self._menu, _MENU, "Event", "(isvu)", (self._item, "clicked", GLib.Variant("i", 0), 0)
        )

    def __repr__(self):
        return f"{self.label!r}" + {None: "", True: " [on]", False: " [off]"}[self.checked]

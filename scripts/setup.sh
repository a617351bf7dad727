#!/usr/bin/env bash
# Installs what the project is built and tested with and is not in its lock files. Quick when nothing is missing,
# never asks anything. Debian and Ubuntu; elsewhere it names what to install.
set -euo pipefail

packages=(
  # the tray app
  build-essential pkg-config libwebkit2gtk-4.1-dev libayatana-appindicator3-dev libdbus-1-dev librsvg2-dev libxdo-dev
  # its links (a desktop brings these with it)
  xdg-utils desktop-file-utils
  # its tests on a private desktop
  xvfb xauth dbus dbus-x11 gnome-keyring libsecret-tools webkit2gtk-driver xdotool imagemagick python3-dbus python3-gi
  # upstreams for tests
  python3 python3-venv
  # packages and icons
  rpm fakeroot librsvg2-bin
  # scripts
  file curl ca-certificates iproute2
)
nextest=0.9.143

# The browser of a sign-in that is tried as a person does it. Ubuntu has no package of it, but maybe a browser like it.
command -v chromium >/dev/null || command -v google-chrome >/dev/null || packages+=(chromium)

say() { echo "setup: $*" >&2; }

missing_packages() {
  # One call: a line for each installed package, and an error for each unknown one.
  local installed
  installed=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
  for package in "${packages[@]}"; do
    grep -qx "$package installed" <<<"$installed" || echo "$package"
  done
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    say "this system has no apt. Install the counterparts of these Debian packages yourself, then go on with" \
      "\`make build SETUP=skip\`:"
    say "${packages[*]}"
    exit 1
  fi
  local missing=() root=()
  mapfile -t missing < <(missing_packages)
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { say "these packages are missing, and there is no sudo: ${missing[*]}"; exit 1; }
    root=(sudo)
  fi
  say "installing ${missing[*]}"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q >/dev/null ||
    say "the package lists could not be renewed; trying with the present ones"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

need_node() {
  local found
  found=$(node --version 2>/dev/null || echo none)
  node --eval 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' \
    2>/dev/null || { say "Node 20.19 or newer is needed (found: $found). See nodejs.org."; exit 1; }
  command -v npm >/dev/null || { say "npm is missing; it comes with Node."; exit 1; }
}

need_rust() {
  command -v cargo >/dev/null || { say "Rust 1.95 or newer is needed. See rustup.rs."; exit 1; }
  local found
  found=$(rustc --version | cut -d' ' -f2)
  [ "$(printf '%s\n' 1.95.0 "$found" | sort --version-sort | head -n1)" = 1.95.0 ] ||
    { say "Rust 1.95 or newer is needed (found: $found): run \`rustup update\`."; exit 1; }
}

need_rust
need_node
install_packages
cargo nextest --version >/dev/null 2>&1 || cargo install --locked cargo-nextest --version "$nextest"

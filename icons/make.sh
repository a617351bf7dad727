#!/usr/bin/env bash
# Makes every icon from icon.svg and records what was made from what.
#   make.sh          makes them (needs rsvg-convert)
#   make.sh --check  fails when a picture is not the one that was made from the present source
set -euo pipefail
cd "$(dirname "$0")"

if [ "${1-}" = --check ]; then
  sha256sum --check --quiet made.sha256 || {
    echo "The icons do not belong to icons/icon.svg: run \`make icons\` and commit what it changes." >&2
    exit 1
  }
  exit 0
fi

command -v rsvg-convert >/dev/null || { echo "rsvg-convert is missing: install librsvg2-bin." >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# render SIZE FILE [CSS]
render() {
  printf '%s' "${3-}" >"$work/style.css"
  rsvg-convert --width "$1" --height "$1" --stylesheet "$work/style.css" --output "$2" icon.svg
}

render 32 32x32.png
render 128 128x128.png
render 256 128x128@2x.png
render 256 256x256.png
render 512 512x512.png

# A tray is 22 to 48 pixels high; the desktop scales this one down.
render 64 tray.png
render 64 tray-attention.png '.badge { display: inline }'
render 64 tray-template.png '.tile { display: none } .link { stroke: #000 } .node { fill: #000 }'
render 64 tray-attention-template.png \
  '.tile { display: none } .link { stroke: #000 } .node { fill: #000 } .badge { display: inline; fill: #000; stroke: none }'

for size in 16 32 48 64 128 256 512 1024; do render "$size" "$work/$size.png"; done
python3 - "$work" <<'PYTHON'
import struct, sys
from pathlib import Path

pictures = {size: Path(sys.argv[1], f"{size}.png").read_bytes() for size in (16, 32, 48, 64, 128, 256, 512, 1024)}

# Windows: a table of pictures, each a PNG. A side of 256 is written as 0.
sizes = [16, 32, 48, 256]
table, offset = struct.pack("<HHH", 0, 1, len(sizes)), 6 + 16 * len(sizes)
for size in sizes:
    table += struct.pack("<BBBBHHII", size % 256, size % 256, 0, 0, 1, 32, len(pictures[size]), offset)
    offset += len(pictures[size])
Path("icon.ico").write_bytes(table + b"".join(pictures[size] for size in sizes))

# macOS: a chain of PNGs, each named by its size in points and its scale.
names = {b"ic11": 32, b"ic12": 64, b"ic07": 128, b"ic13": 256, b"ic08": 256, b"ic14": 512, b"ic09": 512, b"ic10": 1024}
chain = b"".join(name + struct.pack(">I", 8 + len(pictures[size])) + pictures[size] for name, size in names.items())
Path("icon.icns").write_bytes(b"icns" + struct.pack(">I", 8 + len(chain)) + chain)
PYTHON

sha256sum icon.svg make.sh ./*.png icon.ico icon.icns >made.sha256

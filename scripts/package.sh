#!/usr/bin/env bash
# Makes the packages out of release builds of both programs. Needs what `make package` prepares.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}

cargo build --release --locked --package neuron-connectd

# tauri.conf.json cannot know where this build's programs lie.
files="{ \"/usr/bin/neuron-connectd\": \"$target/release/neuron-connectd\" }"
scripts/node_modules/.bin/tauri build --ci \
  --config "{ \"bundle\": { \"linux\": { \"deb\": { \"files\": $files }, \"rpm\": { \"files\": $files } } } }" \
  -- --locked --package neuron-connect

find "$target/release/bundle" -name '*.deb' -o -name '*.rpm'

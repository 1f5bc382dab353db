#!/usr/bin/env bash
# Installs Debian's Chromium where it is missing: the tests marked `browser` open pages in it.
set -euo pipefail

if command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "Chromium is missing and there is no apt-get here; install Chromium by your system's own means." >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Chromium is missing; run 'apt-get install chromium' as root." >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing Chromium."
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends chromium >/dev/null
command -v chromium >/dev/null || {
  echo "apt-get installed no 'chromium' command; install Chromium by your system's own means." >&2
  exit 1
}

#!/usr/bin/env bash
# Installs Debian's PostgreSQL where its server is missing: the tests marked `postgres` start one of
# their own, in a temporary folder, and never touch another.
set -euo pipefail

# Debian keeps the programs of a server out of the PATH, in a folder for each version.
has_server() {
  command -v initdb >/dev/null && return
  compgen -G "/usr/lib/postgresql/*/bin/initdb" >/dev/null
}

if has_server; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "PostgreSQL is missing and there is no apt-get here; install its server by your system's own means." >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "PostgreSQL is missing; run 'apt-get install postgresql' as root." >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "Installing PostgreSQL."
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends postgresql >/dev/null
has_server || {
  echo "apt-get installed no PostgreSQL server; install it by your system's own means." >&2
  exit 1
}

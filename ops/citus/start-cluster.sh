#!/bin/bash
# Builds Citus from given sources and starts a cluster on this machine: a coordinator and two workers.
set -euo pipefail

help() {
  cat <<'HELP'
Usage: ops/citus/start-cluster.sh SOURCES DATA [PORT]
       ops/citus/start-cluster.sh --stop DATA

Builds Citus from SOURCES (a checkout of github.com/citusdata/citus) into the PostgreSQL that pg_config names, unless it
is there already, and starts three servers with their data in the folder DATA: the coordinator at PORT (9700 unless
given), workers at the next two ports. They listen on 127.0.0.1 only, trust every local user, and do not wait for the
disk: for trials and tests, not for data that matters. What is there already is started again.

Needs: PostgreSQL 15 or newer with its headers, a C compiler, make, and the headers of curl, lz4, zstd and OpenSSL; of
Kerberos, too, where PostgreSQL was built with it, as Debian's is. On Debian 12:
  apt-get install postgresql-15 postgresql-server-dev-15 build-essential libcurl4-openssl-dev liblz4-dev libzstd-dev \
    libssl-dev libkrb5-dev
Environment: PG_CONFIG, the program to ask for PostgreSQL's folders (pg_config); SHARDS, how many shards (32).
PostgreSQL refuses to run as root: then the servers run as the user postgres.

The cluster for the tests:
  TEST_CITUS_URL=postgres://postgres@127.0.0.1:PORT/ npm run test:file -- test/store/citus.test.ts
HELP
}

fail() { echo "start-cluster: $1. See --help." >&2; exit 1; }
as_server() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }

[ "${1:-}" = --help ] && { help; exit 0; }
pg_config=${PG_CONFIG:-pg_config}
command -v "$pg_config" >/dev/null || fail "there is no $pg_config: install PostgreSQL's headers, or set PG_CONFIG"
bin=$("$pg_config" --bindir)

if [ "${1:-}" = --stop ]; then
  [ $# = 2 ] || fail "--stop takes the data folder"
  for folder in "$2"/*/; do as_server "$bin/pg_ctl" -D "$folder" -m fast -w stop; done
  exit 0
fi
[ $# = 2 ] || [ $# = 3 ] || { help >&2; exit 1; }
sources=$1 data=$2 port=${3:-9700}
[ -f "$sources/configure" ] || fail "$sources holds no sources of Citus"
[[ $port =~ ^[0-9]+$ ]] || fail "the port must be a number, not $port"

has_header() { echo "#include <$1>" | ${CC:-cc} -E - >/dev/null 2>&1; }

if [ ! -f "$("$pg_config" --sharedir)/extension/citus.control" ]; then
  for header in curl/curl.h lz4.h zstd.h openssl/ssl.h; do has_header $header || fail "the header $header is missing"; done
  if "$pg_config" --configure | grep -q gssapi; then
    has_header gssapi/gssapi.h || fail "PostgreSQL was built with Kerberos, and its header gssapi/gssapi.h is missing"
  fi
  # Code for JIT would need clang, and is of no use here.
  (cd "$sources" && ./configure PG_CONFIG="$(command -v "$pg_config")" && make -j"$(nproc)" with_llvm=no && make install with_llvm=no)
fi

mkdir -p "$data"
[ "$(id -u)" = 0 ] && chown postgres "$data"
ports=("$port" $((port + 1)) $((port + 2)))
for each in "${ports[@]}"; do
  if [ ! -d "$data/$each" ]; then
    as_server "$bin/initdb" -D "$data/$each" -U postgres -A trust --encoding=UTF8 --locale=C >/dev/null
    as_server tee -a "$data/$each/postgresql.conf" >/dev/null <<CONF
shared_preload_libraries = 'citus'
port = $each
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
max_prepared_transactions = 200
max_worker_processes = 64
fsync = off
synchronous_commit = off
full_page_writes = off
citus.shard_count = ${SHARDS:-32}
CONF
  fi
  as_server "$bin/pg_ctl" -D "$data/$each" status >/dev/null ||
    as_server "$bin/pg_ctl" -D "$data/$each" -l "$data/$each.log" -w start >/dev/null
  "$bin/psql" -h 127.0.0.1 -p "$each" -U postgres -qc 'SET client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS citus'
done
"$bin/psql" -h 127.0.0.1 -p "$port" -U postgres -qAt >/dev/null <<SQL
SELECT citus_set_coordinator_host('127.0.0.1', $port);
SELECT citus_add_node('127.0.0.1', ${ports[1]});
SELECT citus_add_node('127.0.0.1', ${ports[2]});
SQL
echo "A coordinator at 127.0.0.1:$port, workers at ${ports[1]} and ${ports[2]}."

# What `demo.sh` and `demo-down.sh` share: where things lie, how a service is raised and ended, and what is on
# this machine. Sourced, not run; the folder of the project is the current one.
# shellcheck shell=bash

DEMO_DIR=$(realpath -m "${DEMO_DIR:-target/demo}")
BROKER_PORT=${BROKER_PORT:-4222}
SERVE_PORT=${SERVE_PORT:-8470}
# Fixed by the product, for a host without ingress.
PROXY_PORT=8480
# What `examples/hosts/this-machine.yml` says.
HOST=this-machine
PREFIX=demo

export REPLICATOR_HOME=$DEMO_DIR/home
replicator=target/debug/replicator
files=(--fleet examples/clanker.yml --distribution lab/images/distribution.json)
agent=(--agent-root "$DEMO_DIR/agent")

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

demand_root() {
  [ "$(id -u)" = 0 ] || fail "the demo is not run as root, and its agent needs to be" \
    "run \`sudo env PATH=\"\$PATH\" HOME=\"\$HOME\" make $1\`"
}

has_systemd() { [ -d /run/systemd/system ]; }

# Whether something listens on this port of the loopback.
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Runs a command until it succeeds, for some seconds at most.
within() {
  local seconds=$1
  shift
  for _ in $(seq 1 $((seconds * 5))); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.2
  done
  return 1
}

# When a process started, in ticks since boot: a number alone may be somebody else's by now.
started() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # The name may hold anything; numbers follow the last bracket.
  set -- ${stat##*) }
  [ "$1" != Z ] && echo "${20}"
}

# Keeps number and start time of a process in a file.
keep_process() { echo "$1 $(started "$1")" >"$2"; }

# Whether the process a file names runs.
runs() {
  local pid at
  [ -f "$1" ] && read -r pid at <"$1" && [ "$(started "$pid")" = "$at" ]
}

# Ends the process a file names: politely, and after 30 seconds not.
end_process() {
  local pid at signal
  [ -f "$1" ] || return 0
  for signal in TERM KILL; do
    runs "$1" || break
    read -r pid at <"$1"
    kill -s "$signal" "$pid" 2>/dev/null || true
    within 30 gone "$1" && break
  done
  gone "$1" || fail "process $pid does not end" "see what it waits for: \`cat /proc/$pid/stack\`"
  rm -f "$1"
}

gone() { ! runs "$1"; }

# raise NAME COMMAND...: as a unit where systemd runs, else detached: own session, log, number and start time.
raise() {
  local name=$1 unit
  shift
  if has_systemd; then
    unit=replicator-$PREFIX-$name.service
    cat >"/etc/systemd/system/$unit" <<END
[Unit]
Description=Replicator demo: $name
After=network.target

[Service]
Environment="REPLICATOR_HOME=$REPLICATOR_HOME"
ExecStart=$(printf '"%s" ' "$@")
Restart=always
RestartSec=2

[Install]
WantedBy=multi-user.target
END
    systemctl daemon-reload
    systemctl enable --quiet --now "$unit"
  elif ! runs "$DEMO_DIR/run/$name"; then
    mkdir -p "$DEMO_DIR/run"
    setsid "$@" >>"$DEMO_DIR/run/$name.log" 2>&1 </dev/null &
    keep_process $! "$DEMO_DIR/run/$name"
    disown
  fi
}

lower() {
  local unit=replicator-$PREFIX-$1.service
  if [ -f "/etc/systemd/system/$unit" ]; then
    systemctl disable --quiet --now "$unit"
    rm -f "/etc/systemd/system/$unit"
    systemctl daemon-reload
  fi
  end_process "$DEMO_DIR/run/$1"
}

# Ends what still runs a program of the demo's that was built anew since; whoever raises it next takes the new one.
end_outdated() {
  local folder pid
  for folder in /proc/[0-9]*; do
    pid=${folder#/proc/}
    case $(readlink "$folder/exe" 2>/dev/null) in "$PWD/target/debug/replicator"*" (deleted)") ;; *) continue ;; esac
    { grep -qaF "$DEMO_DIR" "$folder/cmdline" "$folder/environ"; } 2>/dev/null || continue
    keep_process "$pid" "$DEMO_DIR/run/outdated"
    end_process "$DEMO_DIR/run/outdated"
  done
}

# What a service said last, for the error that it does not answer.
last_words() {
  if has_systemd; then
    journalctl --no-pager --lines 20 --unit "replicator-$PREFIX-$1.service" >&2
  else
    tail -n 20 "$DEMO_DIR/run/$1.log" >&2
  fi
}

raise_broker() {
  raise broker "$PWD/target/lab/bin/nats-server" -c "$REPLICATOR_HOME/fleets/demo/broker/nats.conf"
  within 20 listens "$BROKER_PORT" || {
    last_words broker
    fail "the broker does not listen on port $BROKER_PORT" "see its last lines above"
  }
}

raise_serve() {
  raise serve "$PWD/$replicator" serve --listen "127.0.0.1:$SERVE_PORT"
  within 20 curl --fail --silent --max-time 2 "http://127.0.0.1:$SERVE_PORT/healthz" || {
    last_words serve
    fail "the collector is not healthy at port $SERVE_PORT" "see its last lines above"
  }
}

# What is on this machine, one file a list, so that before and after can be compared.
take_lists() {
  mkdir -p "$1"
  docker ps --all --format '{{.Names}}' >"$1/containers"
  docker network ls --format '{{.Name}}' >"$1/networks"
  docker volume ls --quiet >"$1/volumes"
  docker image ls --format '{{.Repository}}:{{.Tag}}' >"$1/images"
  find /etc /etc/systemd /etc/systemd/system /var/lib /usr/lib /usr/local /run \
    -mindepth 1 -maxdepth 1 ! -name '*.pid' ! -name '*.lock' >"$1/files"
  ls /etc/systemd/system /run/systemd/transient 2>/dev/null >"$1/units" || true
  our_processes >"$1/processes"
  for list in "$1"/*; do LC_ALL=C sort -u -o "$list" "$list"; done
}

# Processes that run a program of this checkout or are given a path of the demo's.
our_processes() {
  local folder line
  for folder in /proc/[0-9]*; do
    [ "${folder#/proc/}" = $$ ] && continue
    # It may end between the look and the reading.
    line=$({ tr '\0' ' ' <"$folder/cmdline"; } 2>/dev/null) || continue
    case $line in
      "$PWD/target/lab/bin/nats-server "* | "$PWD/target/debug/replicator"* | *"--root $DEMO_DIR"*) echo "$line" ;;
    esac
  done
}

# What is in the later list and not in the earlier.
added() { LC_ALL=C comm -13 "$1" "$2"; }

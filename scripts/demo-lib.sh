# What `demo.sh` and `demo-down.sh` share: where things lie, how a service is raised and ended, and what is on
# this machine. Sourced, not run; the folder of the project is the current one.
# shellcheck shell=bash

# Not below `target/`: what runs on this machine is known by it, and `cargo clean` is no way to end that.
DEMO_DIR=$(realpath -m "${DEMO_DIR:-.demo}")
# In every folder this demo made, and in no other: that one is removed whole. It holds the ports.
MARK=$DEMO_DIR/.replicator-demo
# A demo that is there keeps the ports it began with.
[ ! -e "$DEMO_DIR/before/complete" ] || read -r BROKER_PORT SERVE_PORT <"$MARK" || true
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
# How this demo is called again.
make=make
[ "$DEMO_DIR" = "$PWD/.demo" ] || make="DEMO_DIR='$DEMO_DIR' make"

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 1
}

demand_root() {
  [ "$(id -u)" = 0 ] || fail "the demo is not run as root, and its agent needs to be" \
    "run \`sudo env PATH=\"\$PATH\" HOME=\"\$HOME\" $make $1\`"
}

# Makes the demo's folder; somebody else's is left alone.
take_folder() {
  if [ ! -e "$MARK" ] && [ -e "$DEMO_DIR" ] && [ -n "$(ls -A "$DEMO_DIR" 2>/dev/null || echo file)" ]; then
    fail "$DEMO_DIR is there and was not made by the demo" "name another folder with DEMO_DIR: this one would be removed in the end"
  fi
  mkdir -p "$DEMO_DIR"
  echo "$BROKER_PORT $SERVE_PORT" >"$MARK"
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

# Keeps number and start time of a process in a file, whole or not at all.
keep_process() {
  echo "$1 $(started "$1")" >"$2.new"
  mv "$2.new" "$2"
}

# Runs a command in a session of its own. It names itself in the file before it begins: whatever happens to us, it is
# found.
detach() {
  local file=$1
  shift
  # shellcheck disable=SC2016
  setsid bash -c '. scripts/demo-lib.sh; keep_process $$ "$0"; exec "$@"' "$file" "$@" >>"$file.log" 2>&1 </dev/null &
  disown
}

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
    detach "$DEMO_DIR/run/$name" "$@"
    within 5 runs "$DEMO_DIR/run/$name" || true
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

# What this machine lacked and has now, installed for the demo.
installed() {
  [ -f "$DEMO_DIR/installed" ] || return 0
  local package
  for package in $(sort -u "$DEMO_DIR/installed"); do
    if has_package "$package"; then echo "$package"; fi
  done
}

has_package() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# Removes the demo's folder, and says what is left of the demo.
forget() {
  local packages nothing="nothing of the demo is left: no container, network, volume, image, process, unit or file"
  end_process "$DEMO_DIR/run/dockerd"
  packages=$(installed | tr '\n' ' ')
  packages=${packages% }
  # From here on there is no demo. The mark goes last: a removal that is cut off is gone on with.
  rm -f "$DEMO_DIR/before/complete"
  find "$DEMO_DIR" -mindepth 1 -maxdepth 1 ! -path "$MARK" -exec rm -rf {} +
  rm -rf "$DEMO_DIR"
  if [ -z "$packages" ]; then
    echo "$nothing"
  else
    echo "these packages were installed for the demo and stay, with what they run; \`apt-get purge\` removes them:"
    echo "  $packages"
    echo "but for them, $nothing"
  fi
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

# What is on this machine, one file a list, so that before and after can be compared. `/run/containerd` comes with the
# first container that a runtime starts, whosever that is, and goes with the next boot.
take_lists() {
  mkdir -p "$1"
  docker ps --all --format '{{.Names}}' >"$1/containers"
  docker network ls --format '{{.Name}}' >"$1/networks"
  docker volume ls --quiet >"$1/volumes"
  docker image ls --format '{{.Repository}}:{{.Tag}}' >"$1/images"
  find /etc /etc/systemd /etc/systemd/system /var/lib /usr/lib /usr/local /run \
    -mindepth 1 -maxdepth 1 ! -name '*.pid' ! -name '*.lock' ! -path /run/containerd >"$1/files"
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

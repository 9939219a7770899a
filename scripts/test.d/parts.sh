# shellcheck shell=sh
# Shared by the tests that run several programs, which set $program and source this file. Each program has a log in
# $folder, and everything that was started ends with the script.

PATH=$PATH:/usr/sbin
folder=$(mktemp -d)
processes=

finish() {
    for process in $processes; do
        kill "$process" 2>/dev/null || true
    done
    wait
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 1' INT TERM HUP

fail() {
    echo "$0: $*" >&2
    tail -n 5 "$folder"/*.log >&2 2>/dev/null || true
    exit 1
}

# start NAME WORDS…: runs a program in the background, its output in NAME.log.
start() {
    name=$1
    shift
    "$@" >>"$folder/$name.log" 2>&1 &
    started=$!
    processes="$processes $started"
}

# wait_for WHAT WORDS…: tries a command until it works.
wait_for() {
    what=$1 tries=0
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "waited in vain for $what"
        sleep 0.05
    done
}

# Prints a port that is free at the moment.
free_port() {
    mkfifo "$folder/port"
    "$program" --listen 127.0.0.1:0 --database "$folder/port.db" >"$folder/port" 2>/dev/null &
    process=$!
    read -r line <"$folder/port"
    kill "$process"
    wait "$process" || true
    rm "$folder"/port*
    echo "${line##*:}"
}

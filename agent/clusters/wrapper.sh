#!/bin/sh
# Runs a job's command as its child and leaves a record of it in DIR, so that the command's own end is known
# although nobody watched. Plain POSIX sh; needs only date, mv, rm, mkdir, sleep, tr and uname.
#
#   wrapper.sh [-g] [-i] [-l] [-r] DIR -- COMMAND [ARG...]
#
#   -g  signals reach the whole process group by themselves: do not pass them on to the command
#   -i  the cluster may start one job (one id) again as if it never had: what came to its own end is not run again, its
#       code is given once more; all else is a restart
#   -l  append the command's output to DIR/log; without it the output passes through
#   -r  a restart under the same name: the record of the earlier run in DIR is replaced, once its process is gone
#
# DIR/start      {"started_at","pid","host","id"}: made exclusively, so a second run under the same name ends here
# DIR/heartbeat  the time, rewritten every WATCHKEEPER_HEARTBEAT_S (15) seconds
# DIR/exit.json  the same and {"exit_code","signal","ended_at"}: made in one step at the end
#
# Its own exit status is the command's; 98: DIR belongs to another run and nothing was run; 96: wrong usage.
# `signal` is what a status above 128 means by the shells' custom.
#
# Never: keep a command from running because its record cannot be written.

group='' same='' log='' restart=''
while getopts gilr flag; do
    case $flag in
        g) group=1 ;;
        i) same=1 ;;
        l) log=1 ;;
        r) restart=1 ;;
        *) exit 96 ;;
    esac
done
shift $((OPTIND - 1))
if [ $# -lt 3 ] || [ "$2" != -- ]; then
    echo "usage: wrapper.sh [-g] [-i] [-l] [-r] DIR -- COMMAND [ARG...]" >&2
    exit 96
fi
dir=$1
shift 2

now() { date -u +%Y-%m-%dT%H:%M:%SZ; }

# What ends the job before its command was started keeps it from starting.
child='' caught='' held=''
relay() {
    caught=$1
    if [ -n "$child" ]; then kill -s "$1" "$child" 2>/dev/null; else held=$1; fi
}
for name in TERM INT HUP USR1 USR2; do
    # shellcheck disable=SC2064
    trap "relay $name" "$name"
done

# --- the start, exclusively -------------------------------------------------------------------------
started=$(now)
plain() { printf %s "$1" | tr -cd 'A-Za-z0-9._-'; }
facts=$(printf '"started_at":"%s","pid":%d,"host":"%s","id":"%s"' \
    "$started" $$ "$(plain "$(uname -n)")" "$(plain "${WATCHKEEPER_ID:-}")")
mkdir -p "$dir" 2>/dev/null

# What an earlier start left, as far as this host can tell.
record() { if [ -r "$dir/$1" ]; then tr -d '\n' <"$dir/$1"; fi; }
text() { case $2 in *"\"$1\":\""*) rest=${2#*"\"$1\":\""}; printf %s "${rest%%\"*}" ;; esac; }
number() { case $2 in *"\"$1\":"[0-9]*) rest=${2#*"\"$1\":"}; printf %s "${rest%%[!0-9]*}" ;; esac; }
lives() {
    if [ -z "$1" ] || [ "$1" = $$ ] || ! kill -s 0 "$1" 2>/dev/null; then return 1; fi
    # A number may be somebody else's by now: where the system tells, its command names this folder.
    if [ ! -r "/proc/$1/cmdline" ]; then return 0; fi
    case $(tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null) in *"$dir"*) return 0 ;; *) return 1 ;; esac
}
before=$(record start)
if [ -n "$same" ] && [ -z "$restart" ] && [ -n "${WATCHKEEPER_ID:-}" ] &&
    [ "$(text id "$before")" = "$(plain "$WATCHKEEPER_ID")" ]; then
    ended=$(number exit_code "$(record exit.json)")
    if [ -n "$ended" ] && [ "$ended" -lt 128 ]; then # not by a signal: that was the cluster's own abort
        echo "watchkeeper: this very job has ended before, with exit code $ended; nothing was started" >&2
        exit "$ended"
    fi
    restart=1
fi
# Its cluster ends the earlier one, and may do so a moment late: never two at once.
patience=${WATCHKEEPER_PATIENCE_S:-120}
while [ -n "$restart" ] && [ "$(text host "$before")" = "$(plain "$(uname -n)")" ] && lives "$(number pid "$before")"; do
    case $held in TERM) exit 143 ;; INT) exit 130 ;; HUP) exit 129 ;; esac
    if [ "$patience" -le 0 ]; then
        echo "watchkeeper: an earlier start of this job still runs here; nothing was started" >&2
        exit 98
    fi
    sleep 1
    patience=$((patience - 1))
done
if [ -n "$restart" ]; then rm -f "$dir/start" "$dir/exit.json" "$dir/heartbeat" 2>/dev/null; fi
if ! (set -C && printf '{%s}\n' "$facts" >"$dir/start") 2>/dev/null; then
    # There already (another run), or not writable (then the command still runs, without a record). An empty one
    # may be in the middle of being written.
    if [ -e "$dir/start" ] && [ ! -s "$dir/start" ]; then sleep 1; fi
    if [ -s "$dir/start" ]; then
        echo "watchkeeper: $dir holds a run of this name already; nothing was started" >&2
        exit 98
    fi
fi

# --- the heartbeat, in the background; it ends with this process --------------------------------------
beat() {
    exec </dev/null >/dev/null 2>&1 # for good: a shell would keep the old ones, and somebody waits for their end
    trap '' TERM INT HUP USR1 USR2
    while kill -s 0 $$; do
        now >"$dir/heartbeat"
        sleep "${WATCHKEEPER_HEARTBEAT_S:-15}"
    done
}
beat &
heart=$!

# --- the command ------------------------------------------------------------------------------------
# A shell starts its background children with INT and QUIT ignored; `env` can undo that where it is GNU's.
run() {
    trap - TERM HUP USR1 USR2
    case $1 in
        *=*) ;;
        *) if env --default-signal=INT,QUIT true 2>/dev/null; then exec env --default-signal=INT,QUIT "$@"; fi ;;
    esac
    exec "$@"
}
case $caught in
    TERM) set -- sh -c 'exit 143' ;;
    INT) set -- sh -c 'exit 130' ;;
    HUP) set -- sh -c 'exit 129' ;;
esac
# With -g nothing is to be passed on, and a `wait` that no trap cuts short tells the status for certain.
if [ -n "$group" ]; then trap '' TERM INT HUP USR1 USR2; fi
held=''
if [ -n "$log" ] && true >>"$dir/log" 2>/dev/null; then
    run "$@" >>"$dir/log" 2>&1 &
else
    run "$@" &
fi
child=$!
# A signal between the start of the child and the line above was held, not lost.
if [ -n "$held" ]; then kill -s "$held" "$child" 2>/dev/null; fi
exec 2>/dev/null # bash would tell of every child that a signal ended

# A trap that ran may have cut `wait` short, and the status is the signal's then: ask again. A shell that has told
# the status answers 127; bash, when the child ended in that very moment, has lost it and would wait for ever, so
# somebody interrupts it. What the signal said is true then: both got it at once.
caught=''
wait "$child"
code=$?
while [ -n "$caught" ]; do
    caught='' dog=''
    if ! kill -s 0 "$child"; then
        (exec >/dev/null 2>&1; sleep 1; kill -s USR2 $$) &
        dog=$!
    fi
    wait "$child"
    again=$?
    if [ -n "$dog" ]; then
        kill -s KILL "$dog"
        if [ -n "$caught" ] || [ "$again" -eq 127 ]; then break; fi
    fi
    code=$again
done

# --- the end ----------------------------------------------------------------------------------------
signal=null
if [ "$code" -gt 128 ] && [ "$code" -le 192 ]; then signal=$((code - 128)); fi
for try in 1 2 3; do
    if [ ! -d "$dir" ]; then break; fi
    if (printf '{%s,"exit_code":%d,"signal":%s,"ended_at":"%s"}\n' "$facts" "$code" "$signal" "$(now)" \
        >"$dir/exit.json.$$" && mv -f "$dir/exit.json.$$" "$dir/exit.json"); then break; fi
    if [ "$try" -lt 3 ]; then sleep 1; fi
done
# A signal that a shell would have to handle can be lost while that shell is being forked; KILL cannot.
kill -s KILL "$heart"
wait "$heart"
exit "$code"

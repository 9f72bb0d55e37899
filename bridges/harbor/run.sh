#!/bin/sh
# A rollout of a Harbor task in plain processes (docs/targets.md): run.sh TASKS COMMAND... is the agent's program (docs/agents.md), run.sh TASKS its
# grader, which runs tests/test.sh and tells what that leaves in /logs/verifier. Linux, by root or where users may make namespaces.
# The root folder is this machine's, but for /logs, /tests and the first folder of WORKDIR, which are new. Each of the two has namespaces of its own:
# no process of the agent's outlives it, and the tests get WORKDIR, /logs/agent and /logs/artifacts from it, while /tests and /logs/verifier are new again.
set -eu
if [ "${HARBOR_ROOT:-}" = "" ]; then
  HARBOR_ROOT=$(mktemp -d -p "$PWD")
  export HARBOR_ROOT
  exec unshare --mount --pid --fork --kill-child --map-root-user sh "$0" "$@"
fi
root=$HARBOR_ROOT
kept=$PWD/kept
unset HARBOR_ROOT
task=$1/$CAMPAIGN_TASK_ID
shift

instructions=$task/environment/Dockerfile
[ -f "$instructions" ] || instructions=/dev/null
workdir=$(awk 'toupper($1) == "WORKDIR" { print $2 }' "$instructions" | tail -n 1)
workdir=${workdir:-/app}
first=/$(echo "$workdir" | cut -d / -f 2)
case $first in
  /app | /workspace) ;;
  *) [ ! -e "$first" ] || { echo "the task works in $workdir, and $first is a folder of this machine: it needs a container" >&2; exit 1; } ;;
esac

mount -t tmpfs tmpfs "$root"
for entry in /*; do
  case $entry in "$first" | /logs | /tests) continue ;; esac
  if [ -L "$entry" ]; then
    cp -P "$entry" "$root$entry"
  elif [ -d "$entry" ]; then
    mkdir "$root$entry"
    # Some containers let nobody show the processes of a namespace.
    [ "$entry" = /proc ] && mount -t proc proc "$root/proc" 2> /dev/null || mount --rbind "$entry" "$root$entry"
  fi
done
for path in "$first" /logs/agent /logs/artifacts; do
  mkdir -p "$kept$path" "$root$path"
  mount --bind "$kept$path" "$root$path"
done
mkdir -p "$root$workdir" "$root/logs/verifier" "$root/tests"

if [ $# = 0 ]; then
  cp -R "$task/tests/." "$root/tests"
  chroot "$root" sh -c 'cd "$0" && exec bash /tests/test.sh' "$workdir" < /dev/null >&2 || true
  reward=$root/logs/verifier/reward
  if [ -f "$reward.json" ]; then
    tr -d '\n' < "$reward.json"
  elif [ -f "$reward.txt" ]; then
    cat "$reward.txt"
  else
    echo "tests/test.sh has left no reward in /logs/verifier" >&2
    exit 1
  fi
  exit
fi

# COPY SOURCE TARGET, as a Dockerfile means it: of a folder what is in it, into a folder where the target ends with / or is one.
awk 'toupper($1) == "COPY" { print $2, $3 }' "$instructions" | while read -r source target; do
  case $target in /*) target=$root$target ;; *) target=$root$workdir/$target ;; esac
  case $target in "$root$first"*) ;; *) echo "COPY $source leaves $first: the task needs a container" >&2; exit 1 ;; esac
  source=$task/environment/$source
  if [ -d "$source" ]; then
    mkdir -p "$target"
    cp -R "$source/." "$target"
  else
    case $target in */ | */.) mkdir -p "$target" ;; *) mkdir -p "$(dirname "$target")" ;; esac
    cp "$source" "$target"
  fi
done

code=0
chroot "$root" sh -c 'cd "$0" && exec "$@"' "$workdir" "$@" || code=$?
exit "$code"

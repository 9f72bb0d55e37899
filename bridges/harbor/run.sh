#!/bin/sh
# One rollout of a Harbor task as the program of an agent (docs/agents.md), in a plain process: run.sh TASKS COMMAND...
# In a mount namespace of its own, the root folder is this machine's, but for /logs, /tests and the first folder of WORKDIR, which are new, and in
# memory. The agent runs in WORKDIR; then tests/test.sh, and what it leaves in /logs/verifier is the last line. Linux, by root or where users may make namespaces.
set -eu
if [ "${HARBOR_ROOT:-}" = "" ]; then
  mkdir root
  [ "$(id -u)" = 0 ] && user= || user=--map-root-user
  export HARBOR_ROOT="$PWD/root"
  exec unshare --mount $user sh "$0" "$@"
fi
root=$HARBOR_ROOT
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
    mount --rbind "$entry" "$root$entry"
  fi
done
mkdir -p "$root$workdir" "$root/logs/agent" "$root/logs/verifier" "$root/logs/artifacts" "$root/tests"

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
cp -R "$task/tests/." "$root/tests"
chroot "$root" sh -c 'cd "$0" && exec bash /tests/test.sh' "$workdir" < /dev/null >&2 || true
reward=$root/logs/verifier/reward
echo
if [ -f "$reward.json" ]; then tr -d '\n' < "$reward.json"; elif [ -f "$reward.txt" ]; then cat "$reward.txt"; fi
exit "$code"

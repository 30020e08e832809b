#!/bin/bash
# generated.sh COMMAND... runs the command, which regenerates the generated files, and fails if the
# tree has changed.
set -euo pipefail
state() { git status --porcelain --untracked-files=all; git diff; }
before=$(state)
"$@"
after=$(state)
if [ "$before" != "$after" ]; then
	diff <(echo "$before") <(echo "$after") | head -100 || true
	echo "FAIL: generated files are not up to date: run make generate" >&2
	exit 1
fi

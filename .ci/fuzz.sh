#!/bin/bash
# fuzz.sh TIME runs every fuzz target of the root module for that time.
set -uo pipefail
rc=0 found=0 log=$(mktemp)
trap 'rm -f "$log"' EXIT

# fuzz runs a target. Where the time is over in the middle of an input, the go command
# may call that a failure, which says nothing else and keeps no input: then it runs again.
fuzz() {
	for _ in 1 2 3; do
		go test -run '^$' -fuzz "^$2\$" -fuzztime "$3" "$1" 2>&1 | tee "$log" && return
		grep -q '^ *context deadline exceeded$' "$log" || return 1
		grep -q 'Failing input' "$log" && return 1
	done
	return 1
}

for p in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... ); do
	grep -qs '^func Fuzz' "$p"/*_test.go || continue
	p=./${p#"$PWD"/}
	for f in $(go test -list '^Fuzz' "$p" | grep '^Fuzz'); do
		found=$((found + 1))
		echo "== $p $f"
		fuzz "$p" "$f" "$1" || rc=1
	done
done
echo "$found fuzz targets"
[ $found -gt 0 ] || rc=1
exit $rc

#!/bin/bash
# fuzz.sh TIME runs every fuzz target of the root module for that time. While the
# targets of one package run, it builds the program of the next, because few targets
# keep all processors busy, and a linker uses only one.
set -uo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cache=$(go env GOCACHE)/fuzz

# build builds the test programs of the packages and prints path, directory and program of each.
build() {
	local path p n=0
	go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./... | while read -r path p; do
		grep -qs '^func Fuzz' "$p"/*_test.go || continue
		n=$((n + 1))
		go test -vet=off -ldflags='-s -w' -c -fuzz . -o "$dir/$n.test" "$p" >&2 || echo >"$dir/$n.test"
		echo "$path" "$p" "$dir/$n.test"
	done
}

# fuzz runs a target. Go sometimes reports a failure if the time ends in the middle of an input; it
# then prints no other message and keeps no input. In this case fuzz runs the target again.
fuzz() {
	for _ in 1 2 3; do
		(cd "$p" && "$program" -test.run '^$' -test.fuzz "^$1\$" -test.fuzztime "$2" -test.fuzzcachedir "$cache/$path") 2>&1 | tee "$dir/log" && return
		grep -q '^ *context deadline exceeded$' "$dir/log" || return 1
		grep -q 'Failing input' "$dir/log" && return 1
	done
	return 1
}

rc=0 found=0
while read -r path p program <&3; do
	[ -x "$program" ] || { echo "FAIL: $path: its test program was not built"; rc=1; continue; }
	for f in $(cd "$p" && "$program" -test.list '^Fuzz' | grep '^Fuzz'); do
		found=$((found + 1))
		echo "== $path $f"
		fuzz "$f" "$1" || rc=1
	done
	rm -f "$program"
done 3< <(build)
echo "$found fuzz targets"
[ $found -gt 0 ] || rc=1
exit $rc

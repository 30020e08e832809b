#!/bin/bash
# fuzz.sh TIME runs every fuzz target of the root module for that time.
set -uo pipefail
rc=0 found=0 dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# fuzz runs a target of the package in $p, whose program is built once. Where the time is
# over in the middle of an input, a target may call that a failure, which says nothing else
# and keeps no input: then it runs again.
fuzz() {
	for _ in 1 2 3; do
		(cd "$p" && "$dir/fuzz.test" -test.run '^$' -test.fuzz "^$1\$" -test.fuzztime "$2" -test.fuzzcachedir "$cache/$path") 2>&1 | tee "$dir/log" && return
		grep -q '^ *context deadline exceeded$' "$dir/log" || return 1
		grep -q 'Failing input' "$dir/log" && return 1
	done
	return 1
}

cache=$(go env GOCACHE)/fuzz
while read -r path p; do
	grep -qs '^func Fuzz' "$p"/*_test.go || continue
	go test -vet=off -c -fuzz . -o "$dir/fuzz.test" "$p" || { rc=1; continue; }
	for f in $(cd "$p" && "$dir/fuzz.test" -test.list '^Fuzz' | grep '^Fuzz'); do
		found=$((found + 1))
		echo "== $path $f"
		fuzz "$f" "$1" || rc=1
	done
done < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' ./...)
echo "$found fuzz targets"
[ $found -gt 0 ] || rc=1
exit $rc

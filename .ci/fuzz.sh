#!/bin/bash
# fuzz.sh TIME runs every fuzz target of the root module for that time.
set -uo pipefail
rc=0 found=0
for p in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' ./... ); do
	grep -qs '^func Fuzz' "$p"/*_test.go || continue
	p=./${p#"$PWD"/}
	for f in $(go test -list '^Fuzz' "$p" | grep '^Fuzz'); do
		found=$((found + 1))
		echo "== $p $f"
		go test -run '^$' -fuzz "^$f\$" -fuzztime "$1" "$p" || rc=1
	done
done
echo "$found fuzz targets"
[ $found -gt 0 ] || rc=1
exit $rc

package wgsl

import (
	_ "embed"
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// compileText compiles texts with a compiler, after [Check], which must accept every text
// that the compiler accepts.
func compileText(t *testing.T, compiler string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		if err := Check(text); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	testutil.Judge(t, compiler, texts)
}

// unusual is a valid text of constructs that rayo does not generate.
//
//go:embed testdata/unusual.wgsl
var unusual string

func TestCheck(t *testing.T) {
	compileText(t, "naga", map[string]string{"unusual": unusual})
	for name, test := range map[string]struct{ text, where, what string }{
		"built-in value":           {"@compute @workgroup_size(1) fn main(@builtin(global_invocation_idx) id: vec3u) {}", "1:46", "global_invocation_idx"},
		"type of a built-in value": {"@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec2u) {}", "1:72", "vec3<u32>"},
		"of another stage":         {"@compute @workgroup_size(1) fn main(@builtin(position) id: vec4f) {}", "1:46", "position"},
		"no built-in value":        {"@compute @workgroup_size(1) fn main(id: vec3u) {}", "1:37", "id"},
		"member":                   {"struct S { a: u32 } @compute @workgroup_size(1) fn main(s: S) {}", "1:15", "member a"},
		"result":                   {"@compute @workgroup_size(1) fn main() -> u32 { return 1; }", "1:39", "result"},
		"attribute":                {"@compute @workgroup_sizes(1) fn main() {}", "1:10", "workgroup_sizes"},
		"place of an attribute":    {"@compute const a = 1;", "1:1", "compute"},
		"arguments":                {"@compute @workgroup_size(1, 1, 1, 1) fn main() {}", "1:10", "4 arguments"},
		"constant of itself":       {"fn f() { const a = a; }", "1:20", "scope for a"},
		"constants of each other":  {"const a = b; const b = a + 1;", "1:24", "a is defined in terms of itself"},
		"alias of itself":          {"alias A = vec2<A>;", "1:16", "A is defined in terms of itself"},
		"structure of itself":      {"struct A { b: B } struct B { a: array<A, 2> }", "1:39", "A is defined in terms of itself"},
		"recursion":                {"fn f() { g(); } fn g() { f(); }", "1:26", "f is defined in terms of itself"},
		"type by a value":          {"const n = array<u32, n>(1);", "1:22", "n is defined in terms of itself"},
		"before its declaration":   {"fn f() { let b = a; let a = 1; }", "1:18", "scope for a"},
		"behind its block":         {"fn f() { { let a = 1; } let b = a; }", "1:33", "scope for a"},
		"name twice":               {"fn f(a: u32) { let a = 1; }", "1:20", "declared twice"},
		"no value":                 {"fn f() { let a; }", "1:14", "no value"},
		"function":                 {"fn f() { let a = mim(1, 2); }", "1:18", "mim"},
		"operator":                 {"fn f() { let a = 1 + ; }", "1:22", "expression"},
		"brackets":                 {"fn f() { let a = (1 + 2; }", "1:26", "expected"},
		"statement":                {"fn f() { 1 + 2; }", "1:12", "assignment"},
		"depth":                    {"fn f() { let a = " + strings.Repeat("(", 600) + "1" + strings.Repeat(")", 600) + "; }", "", "deeper"},
		"depth of blocks":          {"fn f() " + strings.Repeat("{", 600) + strings.Repeat("}", 600), "", "deeper"},
	} {
		err := Check(test.text)
		var mistake *CompileError
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), test.where) || !strings.Contains(mistake.Message, test.what) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

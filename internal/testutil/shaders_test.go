package testutil

import "testing"

// TestRejected has both compilers reject what is no WGSL, among what is: otherwise
// their consent would mean nothing.
func TestRejected(t *testing.T) {
	const good = "@compute @workgroup_size(1) fn main() {}"
	for _, compiler := range ShaderCompilers {
		t.Run(compiler, func(t *testing.T) {
			Need(t, compiler)
			for name, text := range map[string]string{
				"no WGSL":    "fn main( {}",
				"wrong type": "@compute @workgroup_size(1) fn main() { let x: f32 = 1u; }",
				"unknown":    "@compute @workgroup_size(1) fn main() { let x = y; }",
			} {
				for range 2 { // accepted texts are cached, rejected texts are compiled again
					rejected := Rejected(t, compiler, map[string]string{"good": good, name: text})
					if len(rejected) != 1 || rejected[name] == "" {
						t.Errorf("of what is good and %s these are rejected: %v", name, rejected)
					}
				}
			}
			Judge(t, compiler, map[string]string{"good": good, "again": good})
			if rejected := Rejected(t, compiler, nil); len(rejected) != 0 {
				t.Errorf("of nothing these are rejected: %v", rejected)
			}
		})
	}
}

//go:build !js

package testutil

import (
	"bytes"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// again marks the process that Again starts.
const again = "RAYO_TEST_AGAIN"

// Again runs the calling test once more in a child process, without other tests and with
// env added to the environment. In the child process child is true. The parent gets
// the standard error of the child. The test fails in the parent if the child fails, skips the
// test, is ended by a signal or runs for more than ten minutes, so a test must call [Need]
// before Again.
//
//	stderr, child := testutil.Again(t, "VK_DRIVER_FILES=/nonexistent")
//	if !child {
//		return
//	}
func Again(t *testing.T, env ...string) (stderr string, child bool) {
	t.Helper()
	return AgainUnder(t, nil, env...)
}

// AgainUnder is Again under a command, to which the program and its arguments are
// appended.
func AgainUnder(t testing.TB, command []string, env ...string) (stderr string, child bool) {
	t.Helper()
	if os.Getenv(again) == t.Name() {
		return "", true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, p := range strings.Split(t.Name(), "/") {
		parts = append(parts, "^"+quote(p)+"$")
	}
	args := append(slices.Clone(command), self, "-test.run", strings.Join(parts, "/"), "-test.v", "-test.timeout", (10 * patience).String())
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(append(os.Environ(), env...), again+"="+t.Name())
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	start := time.Now()
	err = c.Run()
	switch text := out.String(); {
	case err != nil:
		t.Fatalf("alone, after %v: %v\n%s%s", time.Since(start).Round(time.Millisecond), err, text, said.String())
	case strings.Contains(text, "--- SKIP: "):
		t.Fatalf("alone it was skipped\n%s%s", text, said.String())
	case !strings.Contains(text, "--- PASS: "):
		t.Fatalf("alone it ran no test\n%s%s", text, said.String())
	default:
		t.Log(strings.TrimSpace(text))
	}
	return said.String(), false
}

// quote makes name a pattern of -test.run that nothing else matches.
func quote(name string) string {
	var b strings.Builder
	for _, r := range name {
		if strings.ContainsRune(`\.+*?()|[]{}^$`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

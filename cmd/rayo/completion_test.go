package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestCompletionInBash completes command lines in bash.
func TestCompletionInBash(t *testing.T) {
	testutil.Need(t, "bash")
	code, script, errs := rayo(t, "completion", "bash")
	if code != exitOK {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		words string // the cursor is in the last word; _ stands for an empty word
		want  string
	}{
		{"rayo de", "devices demo"},
		{"rayo ptx _", "list show check run --help"},
		{"rayo ptx show --ta", "--target"},
		{"rayo bench --quick --th", "--threads"},
		{"rayo ops sigm", "sigmoid"},
		{"rayo completion _", "bash zsh fish --help"},
		{"rayo version --js", "--json"},
		{"rayo nothing", ""},
	} {
		words := strings.Fields(c.words)
		if last := len(words) - 1; words[last] == "_" {
			words[last] = "''"
		}
		run := script + "\nCOMP_WORDS=(" + strings.Join(words, " ") + "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _rayo; echo \"${COMPREPLY[*]}\"\n"
		cmd := exec.Command("bash", "--norc")
		cmd.Stdin = strings.NewReader(run)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.words, got, err, c.want)
		}
	}
}

// TestCompletion checks that each script has every command and flag.
func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		code, script, errs := rayo(t, "completion", shell)
		if code != exitOK || !strings.Contains(script, "made by rayo completion "+shell) {
			t.Fatalf("code %d, %s", code, errs)
		}
		flag := map[string]string{"fish": "-l "}[shell]
		if flag == "" {
			flag = "--"
		}
		for _, want := range []string{"'ptx show'", "devices", "monitor", "leaky_relu", flag + "threads", flag + "portable", flag + "help"} {
			if !strings.Contains(script, want) {
				t.Errorf("%s: no %q", shell, want)
			}
		}
	}
	if code, _, errs := rayo(t, "completion", "csh"); code != exitUsage || !strings.Contains(errs, "bash") {
		t.Errorf("csh: code %d, %q", code, errs)
	}
}

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTune(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // the folder for measurements on Linux
	t.Setenv("HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
	code, out, errs := rayo(t, "tune", "--portable", "--op=gather")
	if code != exitOK || !strings.Contains(out, "gather f32[1000 256] i32[500]") || !strings.Contains(out, "1 choices stored") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	file := regexp.MustCompile(`\nin (\S+)\. rayo tune --portable --forget removes them`).FindStringSubmatch(out)
	if file == nil {
		t.Fatalf("it does not say where, and how to undo:\n%s", out)
	}
	if b, err := os.ReadFile(file[1]); err != nil || !strings.Contains(string(b), "gather") {
		t.Errorf("%q, %v", b, err)
	}
	if code, out, errs := rayo(t, "tune", "--portable", "--forget"); code != exitOK || !strings.HasPrefix(out, "1 choices for ") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if b, err := os.ReadFile(file[1]); err != nil || len(b) != 0 {
		t.Errorf("%q, %v", b, err)
	}
	if code, _, errs := rayo(t, "tune", "--forget", "--op=gather"); code != exitFail || !strings.Contains(errs, "leave out --op") {
		t.Errorf("code %d\n%s", code, errs)
	}
	code, out, errs = rayo(t, "tune", "--op=softmax")
	if code != exitOK || !strings.Contains(out, "without variants") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, _, errs = rayo(t, "tune", "--op=nonsense"); code != exitFail || !strings.Contains(errs, "nonsense") {
		t.Errorf("code %d\n%s", code, errs)
	}
}

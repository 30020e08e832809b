package main

import (
	"strings"
	"testing"
)

func TestTune(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // where Linux keeps what was measured
	t.Setenv("HOME", t.TempDir())
	t.Setenv("LocalAppData", t.TempDir())
	code, out, errs := rayo(t, "tune", "--portable", "--op=gather")
	if code != exitOK || !strings.Contains(out, "gather f32[1000 256] i32[500]") || !strings.Contains(out, "1 choices stored") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	code, out, errs = rayo(t, "tune", "--op=softmax")
	if code != exitOK || !strings.Contains(out, "nothing to tune") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	if code, _, errs = rayo(t, "tune", "--op=nonsense"); code != exitFail || !strings.Contains(errs, "nonsense") {
		t.Errorf("code %d\n%s", code, errs)
	}
}

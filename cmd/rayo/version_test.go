package main

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	code, out, errs := rayo(t, "version")
	if code != exitOK || !strings.HasPrefix(out, "rayo ") || !strings.Contains(out, runtime.Version()) || !strings.Contains(out, "cpu:0") {
		t.Errorf("code %d, %q\n%s", code, errs, out)
	}
	code, out, errs = rayo(t, "version", "--json")
	var r versionReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitOK || r.Go == "" || len(r.Devices) == 0 {
		t.Errorf("code %d, %q, %v\n%s", code, errs, err, out)
	}
}

func TestVersionOfABuild(t *testing.T) {
	r := built(&debug.BuildInfo{GoVersion: "go1.99", Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "abcdef"}, {Key: "vcs.time", Value: "2026-01-02"}, {Key: "vcs.modified", Value: "true"},
		{Key: "CGO_ENABLED", Value: "1"}, {Key: "-tags", Value: "noasm,nocuda"}}})
	r.CUDA = "12.8"
	var out bytes.Buffer
	if err := r.write(&app{out: &out}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"v1.2.3", "abcdef, 2026-01-02, with changes", "go1.99 for ", "with cgo", "noasm,nocuda", "12.8"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if r := built(nil); r.Version != "unknown" {
		t.Errorf("%+v", r)
	}
}

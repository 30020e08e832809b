package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// module returns a module with a memory and a data section.
func module(data []byte) []byte {
	m := slices.Concat(magic, []byte{memorySection, 3, 1, 0, 1, dataSection})
	return append(binary.AppendUvarint(m, uint64(len(data))), data...)
}

// memory returns the first bytes of memory after the segments were copied.
func memory(t *testing.T, m []byte, size int) []byte {
	t.Helper()
	_, data, _ := bytes.Cut(m[len(magic)+5:], []byte{dataSection})
	r := &reader{b: data}
	list, err := segments(r.bytes(r.unsigned()))
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, size)
	for _, s := range list {
		copy(b[s.at:], s.data)
	}
	return b
}

// TestPack packs random segments, whose memory must remain.
func TestPack(t *testing.T) {
	rnd := testutil.Rand(t)
	for range 200 {
		var list []segment
		at := int64(rnd.IntN(200))
		for range rnd.IntN(40) {
			s := segment{at, make([]byte, rnd.IntN(70))}
			for i := range s.data {
				s.data[i] = byte(rnd.Uint32())
			}
			list = append(list, s)
			at += int64(len(s.data))
			if rnd.IntN(4) > 0 { // else the next segment follows immediately
				at += int64(rnd.IntN(2 * maxGap))
			}
		}
		rnd.Shuffle(len(list), func(i, k int) { list[i], list[k] = list[k], list[i] })
		in := module(section(list))
		out, err := pack(in)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(memory(t, in, int(at)+100), memory(t, out, int(at)+100)) {
			t.Errorf("%v: another memory", list)
		}
		_, data, _ := bytes.Cut(out[len(magic)+5:], []byte{dataSection})
		r := &reader{b: data}
		packed, _ := segments(r.bytes(r.unsigned()))
		for i := 1; i < len(packed); i++ {
			if packed[i].at-packed[i-1].at-int64(len(packed[i-1].data)) <= maxGap {
				t.Errorf("segments %d and %d are not joined", i-1, i)
			}
		}
	}
}

// TestRefused requires an error for modules that programs of Go cannot be.
func TestRefused(t *testing.T) {
	overlap := section([]segment{{0, []byte{1, 2, 3}}, {2, []byte{4}}})
	for name, c := range map[string]struct {
		in   []byte
		want error
	}{
		"empty":            {nil, errModule},
		"another format":   {[]byte("\x7fELF\x01\x01\x01\x00"), errModule},
		"cut":              {module(overlap)[:20], errModule},
		"overlap":          {module(overlap), errLayout},
		"passive":          {module([]byte{1, 1, 1, 7}), errLayout},
		"imported memory":  {slices.Concat(magic, []byte{dataSection, 1, 0}), errLayout},
		"count":            {slices.Concat(magic, []byte{countSection, 1, 0}), errLayout},
		"bytes at the end": {module(append(section(nil), 9)), errModule},
	} {
		if _, err := pack(c.in); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestProgram packs a program and runs it.
func TestProgram(t *testing.T) {
	testutil.Need(t, "go")
	testutil.Need(t, "node")
	dir := t.TempDir()
	source, file := filepath.Join(dir, "main.go"), filepath.Join(dir, "page.wasm")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { println(\"packed\") }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, source)
	build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := rewrite(file); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(after, before) {
		t.Error("the program has not changed")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(string(bytes.TrimSpace(root)), "lib/wasm/go_js_wasm_exec"), file).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("packed")) {
		t.Errorf("%v\n%s", err, out)
	}
}

package cuda

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestModuleErrors(t *testing.T) {
	k := newFake()
	d := k.open(t)
	for _, c := range []struct {
		image string
		want  error
		says  string
	}{
		{"", ErrBadImage, "empty"},
		{"hello", ErrBadImage, ".version"},
		{reluText + "\x00", ErrBadImage, "neither a cubin nor PTX"},
		{reluText + "@bad", ErrBadImage, "syntax error near '@bad'"},
		{strings.Replace(reluText, "8.0", "99.9", 1), ErrPTXTooNew, "PTX 99.9"},
		{"\x7fELF", ErrBadImage, "64 bits"},
		{string(fakeCubin(reluText)[:100]), ErrBadImage, "lacks"},
		{string(fakeCubin("@wrongdevice")), ErrBadImage, "FAKE_ERROR_209"},
	} {
		m, err := d.Load([]byte(c.image))
		if m != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Load(%.20q) = %v; want %v that says %q", c.image, err, c.want, c.says)
		}
	}
	_, err := d.Load([]byte(strings.Replace(reluText, "8.0", "99.9", 1)))
	var p *PTXError
	if !errors.As(err, &p) || p.Have != 90 || p.Need != 999 || p.Driver != 13000 || !errors.Is(err, ErrDriverTooOld) {
		t.Errorf("too new: %v", err)
	}
	m := must[*Module](t)(d.Load([]byte(reluText)))
	if _, err := m.Function("sgemm"); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "sgemm") {
		t.Errorf("a function that is not there: %v", err)
	}
	if _, _, err := m.Global("table"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a variable that is not there: %v", err)
	}
	if _, n, err := m.Global("counter"); n != 64 || err != nil {
		t.Errorf("counter = %d bytes, %v", n, err)
	}
	if !strings.Contains(m.Log(), "20 registers") {
		t.Errorf("Log = %q", m.Log())
	}
	noLeaks(t, k, d)
}

func TestPTXVersions(t *testing.T) {
	for _, c := range []struct {
		driver Version
		ptx    PTXVersion
	}{{11040, 74}, {11080, 78}, {12060, 85}, {12080, 87}, {13000, 90}, {10020, 0}} {
		if got := c.driver.PTX(); got != c.ptx {
			t.Errorf("CUDA %v understands PTX %v, want %v", c.driver, got, c.ptx)
		}
	}
	if v := driverFor(87); v != 12080 {
		t.Errorf("PTX 8.7 needs CUDA %v", v)
	}
	if v := driverFor(999); v != 0 {
		t.Errorf("PTX 99.9 needs CUDA %v", v)
	}
	for text, want := range map[string]PTXVersion{".version 8.7\n": 87, "// x\n  .version\t7.0 // y\n": 70, ".version x": 0, "": 0, ".version 8": 0} {
		if got := textVersion([]byte(text)); got != want {
			t.Errorf("textVersion(%q) = %v, want %v", text, got, want)
		}
	}
}

func TestOwnTarget(t *testing.T) {
	for target, want := range map[string]uintptr{"sm_90a": 0x1005a, "sm_100f": 0x20064, "sm_80": 0, "sm_90": 0, "": 0, "sm_a": 0, "sm_9x0a": 0, "sm_99999999999999999999a": 0} {
		if got := ownTarget(target); got != want {
			t.Errorf("ownTarget(%q) = %#x, want %#x", target, got, want)
		}
	}
}

func TestCubinCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	k := newFake()
	files := func() []string {
		f, _ := filepath.Glob(filepath.Join(dir, "*"))
		return f
	}
	run := func(o LoadOptions) (compiled int) {
		t.Helper()
		d := must[*Device](t)(k.driver().open(0, WithCubinCache(dir)))
		defer noLeaks(t, k, d)
		before := k.count("cuLinkAddData_v2")
		m := must[*Module](t)(d.LoadWith([]byte(reluText), o))
		must[*Function](t)(m.Function("relu"))
		return k.count("cuLinkAddData_v2") - before
	}
	if run(LoadOptions{}) != 1 || run(LoadOptions{}) != 0 || len(files()) != 1 {
		t.Fatalf("the second load compiles, or there are %d files", len(files()))
	}
	if run(LoadOptions{MaxRegisters: 32}) != 1 || len(files()) != 2 {
		t.Error("other options take the same cubin")
	}
	if run(LoadOptions{NoCache: true}) != 0 || len(files()) != 2 {
		t.Error("NoCache uses the cache")
	}
	os.Remove(files()[1])
	run(LoadOptions{})
	run(LoadOptions{MaxRegisters: 32})
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:len(b)-1] },
		func(b []byte) []byte { return b[:20] },
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { b[len(b)-70] ^= 1; return b },
		func(b []byte) []byte { b[3] ^= 1; return b },
		func(b []byte) []byte { return append(b, 0) },
		func(b []byte) []byte { return []byte(strings.Repeat("x", 500)) },
	} {
		for _, f := range files() {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(f, damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if run(LoadOptions{}) != 1 || run(LoadOptions{}) != 0 {
			t.Error("a damaged file is used, or not replaced")
		}
		run(LoadOptions{MaxRegisters: 32})
	}

	// A complete file that the driver rejects.
	c := openCubins(dir)
	key := cubinKey([]byte(reluText), 13000, Capability{9, 0}, LoadOptions{})
	c.put(key, fakeCubin("@wrongdevice"))
	if run(LoadOptions{}) != 1 || run(LoadOptions{}) != 0 {
		t.Error("a cubin that the driver refuses is not replaced")
	}
	// Another driver.
	k.version = 12090
	if run(LoadOptions{}) != 1 {
		t.Error("a cubin of another driver is used")
	}
	for _, f := range files() {
		if strings.HasSuffix(f, ".tmp") {
			t.Errorf("%s is left", f)
		}
	}
}

func TestCubinCachePrunes(t *testing.T) {
	c := openCubins(t.TempDir())
	for i := range cubinFiles + 5 {
		name := c.path(fmt.Sprintf("%04d", i))
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if i < 10 {
			old := time.Now().Add(time.Duration(i-100) * time.Hour)
			os.Chtimes(name, old, old)
		}
	}
	c.put("new", fakeCubin(reluText))
	all, _ := filepath.Glob(c.path("*"))
	if len(all) != cubinFiles {
		t.Errorf("%d files are left, want %d", len(all), cubinFiles)
	}
	if _, err := os.Stat(c.path("0000")); err == nil {
		t.Error("the oldest is left")
	}
	if c.get("new") == nil {
		t.Error("the newest is gone")
	}
}

// TestCacheWithoutPlace loads a module without a usable cache folder.
func TestCacheWithoutPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k := newFake()
	d := must[*Device](t)(k.driver().open(0, WithCubinCache(filepath.Join(file, "below"))))
	must[*Module](t)(d.Load([]byte(reluText)))
	noLeaks(t, k, d)
}

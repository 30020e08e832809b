package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/roofline"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestMain lets tests run the command in a separate process, for settings that a process reads only when it starts.
func TestMain(m *testing.M) {
	if os.Getenv("RAYO_TEST_COMMAND") != "" {
		os.Unsetenv("RAYO_TEST_COMMAND")
		main()
	}
	os.Unsetenv("RAYO_DEVICE")
	os.Unsetenv("RAYO_THREADS")
	os.Exit(m.Run())
}

// rayo runs a command line in this process.
func rayo(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// process runs a command line in another process, with more environment.
func process(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Env = append(append(os.Environ(), "RAYO_TEST_COMMAND=1"), env...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err = c.Run()
	if err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), errs.String()
}

// full is a disk that is.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestLostOutput checks that every subcommand fails if its output cannot be written.
func TestLostOutput(t *testing.T) {
	for _, args := range [][]string{{"devices"}, {"devices", "--json"}, {"ops"}, {"ptx", "show", "relu"}, {"ptx", "check", "relu"}, {"wgsl", "show", "relu", "--lines"}, {"wgsl", "check", "relu"}, {"gguf", "inspect", model(t)}, {"gguf", "ls", model(t)}, {"gguf", "verify", model(t)}} {
		var errs bytes.Buffer
		if code := run(context.Background(), args, full{}, &errs); code != exitFail || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: code %d, %q", args, code, errs.String())
		}
	}
}

func TestCommandLines(t *testing.T) {
	for _, c := range []struct {
		name, args  string
		code        int
		out, errors string // expressions that must match
	}{
		{"no arguments show the help", "", 0, `(?s)Usage: rayo.*devices.*ops.*bench.*demo`, `^$`},
		{"help", "--help", 0, `RAYO_DEVICE`, `^$`},
		{"help of a command", "bench --help", 0, `--threads=N`, `^$`},
		{"unknown command", "devics", 2, `^$`, `did you mean "devices"`},
		{"unknown flag", "ops --colour", 2, `^$`, `unknown flag --colour`},
		{"too many arguments", "ops relu tanh", 2, `^$`, `^rayo ops: unexpected argument tanh\nRun rayo ops --help for a list of its arguments and flags\.\n$`},
		{"argument that is missing", "gguf split x", 2, `^$`, `^rayo gguf split: expected "<out>"`},
		{"group without a command", "gguf", 2, `^$`, `(?s)^rayo gguf: expected one of "inspect".*rayo gguf --help for a list of the commands`},
		{"flag without its value", "bench --threads", 2, `^$`, `expected`},
		{"flag with a value of another type", "bench --threads=two", 2, `^$`, `two`},
		{"negative threads", "bench --threads=-1", 1, `^$`, `number of threads must be 0 or more`},
		{"broken expression", "bench --only=(", 1, `^$`, `--only: error parsing regexp`},
		{"expression that matches nothing", "bench --only=xyzzy", 1, `^$`, `matches no operation`},
		{"flags of a profile without one", "bench --save=x", 1, `^$`, `need --profile`},
		{"baseline that is not there", "bench --profile --baseline=" + os.DevNull + "/x", 1, `^$`, `x`},
		{"operation by its name", "ops tanh", 0, `(?m)^tolerance +2 ulp$`, `^$`},
		{"operation by another name", "ops SWISH", 0, `^operation +silu\(x\)`, `^$`},
		{"operation with parameters", "ops clip", 0, `(?s)clip\(x, lo, hi\).*lo: lower limit`, `^$`},
		{"operation with a default", "ops leaky_relu", 0, `(?s)op\.LeakyReluOpts.*default 0\.01`, `^$`},
		{"operation that is not there", "ops conv2", 1, `^$`, `is it conv2d\?`},
		{"operation that resembles nothing", "ops zzz", 1, `^$`, `unknown operation "zzz"; rayo ops lists the operations`},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := rayo(t, strings.Fields(c.args)...)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !regexp.MustCompile(c.out).MatchString(out) {
				t.Errorf("output %q does not match %q", out, c.out)
			}
			if !regexp.MustCompile(c.errors).MatchString(errs) {
				t.Errorf("errors %q do not match %q", errs, c.errors)
			}
		})
	}
}

func TestOpsListsTheWholeCatalogue(t *testing.T) {
	_, out, _ := rayo(t, "ops")
	for _, o := range op.Catalogue() {
		if !strings.Contains(out, "  "+o.Name()+"(") {
			t.Errorf("%s is not listed", o)
		}
		if code, one, _ := rayo(t, "ops", o.Name()); code != 0 || !strings.Contains(one, o.Formula()) {
			t.Errorf("%s alone: code %d\n%s", o, code, one)
		}
	}
}

func TestDevicesSaysWhatItFound(t *testing.T) {
	code, out, errs := rayo(t, "devices")
	if code != 0 || !regexp.MustCompile(`(?m)^cpu:0 `).MatchString(out) || strings.Count(out, "device.Open takes this one") != 1 {
		t.Errorf("code %d, errors %q\n%s", code, errs, out)
	}
	code, out, _ = rayo(t, "devices", "--json")
	var m machine
	if err := json.Unmarshal([]byte(out), &m); err != nil || code != 0 || len(m.Devices) == 0 {
		t.Fatalf("code %d: %v", code, err)
	}
	own := m.Devices
	for len(own) > 1 && own[len(own)-1].Software {
		own = own[:len(own)-1]
	}
	last := own[len(own)-1] // better devices come first in the list
	if m.Open != m.Devices[0].Device || last.Device != "cpu:0" || last.Threads < 1 || m.SIMD.Active == "" || m.Caches.L1 <= 0 {
		t.Errorf("%+v", m)
	}
	for _, r := range m.Refused {
		if r.Reason == "" || strings.HasPrefix(r.Reason, "no device") {
			t.Errorf("%s refused because %q", r.Kind, r.Reason)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("RAYO_DEVICE", "nonsense")
	for _, command := range []string{"demo", "bench"} {
		if code, _, errs := rayo(t, command); code != 1 || !strings.Contains(errs, `RAYO_DEVICE="nonsense"`) {
			t.Errorf("%s: code %d, %q", command, code, errs)
		}
	}
	// users run devices to find a problem, so the command must list devices in spite of errors
	if code, out, errs := rayo(t, "devices"); code != 1 || !strings.Contains(out, "cpu:0") || !strings.Contains(errs, "nonsense") {
		t.Errorf("devices: code %d, %q\n%s", code, errs, out)
	}
	t.Setenv("RAYO_DEVICE", "cpu:1")
	if code, _, errs := rayo(t, "bench", "--quick", "--only=relu"); code != 1 || !strings.Contains(errs, "no device") {
		t.Errorf("cpu:1: code %d, %q", code, errs)
	}
	t.Setenv("RAYO_DEVICE", "cpu")
	t.Setenv("RAYO_THREADS", "none")
	if code, _, errs := rayo(t, "demo"); code != 1 || !strings.Contains(errs, "RAYO_THREADS") {
		t.Errorf("RAYO_THREADS=none: code %d, %q", code, errs)
	}
}

func TestSIMDLevelOfAProcess(t *testing.T) {
	code, out, errs := process(t, []string{"RAYO_SIMD=generic"}, "devices")
	if code != 0 || !strings.Contains(out, "SIMD     generic (the machine has generic") {
		t.Errorf("RAYO_SIMD=generic: code %d, %q\n%s", code, errs, out)
	}
	_, out, _ = process(t, []string{"RAYO_SIMD=abacus"}, "devices")
	if !strings.Contains(out, "cpu       refused: RAYO_SIMD=abacus is none of generic") {
		t.Errorf("RAYO_SIMD=abacus:\n%s", out)
	}
}

func TestBenchMeasures(t *testing.T) {
	code, out, errs := rayo(t, "bench", "--quick", "--json", "--threads=1", "--only=^(relu|dot) 10K$")
	var r benchReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("code %d, %q: %v", code, errs, err)
	}
	if len(r.Results) != 2 || r.Results[0].Op != "relu" || r.Results[1].Op != "dot" || r.Roofline == nil || !strings.Contains(r.Detail, "1 thread") {
		t.Fatalf("%+v", r)
	}
	for _, m := range r.Results {
		if m.NS <= 0 || math.Abs(m.GBps*m.NS-80_000) > 1 || m.Share <= 0 || m.Bound != "memory" {
			t.Errorf("%+v", m)
		}
	}
	if errs != "" {
		t.Errorf("a bar where there is no terminal: %q", errs)
	}
	if code, out, _ = rayo(t, "bench", "--quick", "--only=^sum 10K"); code != 0 || !strings.Contains(out, "sum") {
		t.Errorf("code %d\n%s", code, out)
	}
}

func TestCellsRun(t *testing.T) {
	ctx := context.Background()
	dev, err := openPinned(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	seen := make(map[string]bool)
	for _, c := range cellsOf(dev.Info().Kind, true) {
		if seen[c.op+c.size] {
			t.Errorf("%s %s occurs twice", c.op, c.size)
		}
		seen[c.op+c.size] = true
		if testing.Short() && rand.IntN(3) > 0 {
			continue
		}
		if c.resident != nil {
			m, err := c.resident.measure(&app{ctx: ctx}, dev, roofline.Roofline{})
			if err != nil || m.GBps <= 0 || m.Share <= 0 || m.Bound == "" {
				t.Errorf("%s %s: %v, %+v", c.op, c.size, err, m)
			}
			continue
		}
		w, err := c.prepare(ctx, dev)
		if err == nil {
			err = w.run()
		}
		if err != nil || w.bytes <= 0 {
			t.Errorf("%s %s: %v, %v bytes", c.op, c.size, err, w.bytes)
		}
	}
}

// TestEveryOperationIsMeasured checks that each operation of the catalogue is measured, on a CPU and on a GPU.
func TestEveryOperationIsMeasured(t *testing.T) {
	for _, kind := range []device.Kind{device.CPU, device.CUDA, device.WebGPU} {
		cells := cellsOf(kind, true)
		resident := map[string]bool{}
		for _, c := range cells {
			resident[c.op] = resident[c.op] || c.resident != nil
		}
		for _, o := range op.Catalogue() {
			if !resident[o.Name()] && (kind != device.CPU || !sliced(cells, o.Name())) {
				t.Errorf("%v: no case of %v: add its operands to internal/opcase", kind, o)
			}
		}
	}
}

// TestBenchOnAGPU checks that operations on resident arrays are measured in addition to transfers, and compared with the
// limits of the device's memory.
func TestBenchOnAGPU(t *testing.T) {
	testutil.Vulkan(t, "lavapipe")
	t.Setenv("RAYO_DEVICE", "webgpu:software")
	code, out, errs := rayo(t, "bench", "--quick", "--json", "--only=^relu 1M")
	var r benchReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 {
		t.Fatalf("code %d, %q: %v", code, errs, err)
	}
	if len(r.Results) != 2 || r.Results[0].Bound != "" || r.Results[1].Size != "1M, resident" || r.Results[1].Bound != "memory" || r.Results[1].Share <= 0 {
		t.Errorf("%+v", r.Results)
	}
}

func TestProfileKeepsABaseline(t *testing.T) {
	dir := t.TempDir()
	base, trace := filepath.Join(dir, "base"), filepath.Join(dir, "trace.json")
	if code, out, errs := rayo(t, "bench", "--profile", "--save", base, "--trace", trace); code != 0 || !strings.Contains(out, "conv2d") {
		t.Fatalf("code %d, %q\n%s", code, errs, out)
	}
	var events struct {
		TraceEvents []struct{ Name string }
	}
	data, err := os.ReadFile(trace)
	if err == nil {
		err = json.Unmarshal(data, &events)
	}
	if err != nil || len(events.TraceEvents) < 3 {
		t.Errorf("trace: %v, %d events", err, len(events.TraceEvents))
	}
	if code, out, errs := rayo(t, "bench", "--profile", "--baseline", base); code != 0 || !strings.Contains(out, "ratio") {
		t.Errorf("code %d, %q\n%s", code, errs, out)
	}
	if code, _, errs := rayo(t, "bench", "--profile", "--baseline", trace); code != 1 || !strings.Contains(errs, "line 1 of the baseline") {
		t.Errorf("a baseline that is none: code %d, %q", code, errs)
	}
}

func TestDemo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	code, out, errs := rayo(t, "demo", "-o", dir)
	if code != 0 {
		t.Fatalf("code %d, %q\n%s", code, errs, out)
	}
	for _, want := range []string{"photograph 640×427", "matmul 1024×1024×1024", "upload → relu → scale → read", filepath.Join(dir, "rayo-demo.png")} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if n := strings.Count(out, " ok\n"); n != 3 {
		t.Errorf("%d results ok\n%s", n, out)
	}
	f, err := os.Open(filepath.Join(dir, "rayo-demo.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil || img.Bounds().Dx() < 1280 || img.Bounds().Dy() != 427 {
		t.Fatalf("picture %v: %v", img.Bounds(), err)
	}
	// The right half of the picture shows the filtered rocket, at the place that it has in the left half.
	if r, _, _, _ := img.At(963, 300).RGBA(); r < 0x8000 {
		t.Errorf("no light where the rocket is: red %#x", r)
	}
}

func TestDemoSaysWhereItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := rayo(t, "demo", "-o", file); code != 1 || !strings.Contains(errs, file) {
		t.Errorf("code %d, %q", code, errs)
	}
}

func TestInterruptEndsTheCommand(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"bench"}, &out, &errs); code != 1 || out.Len() > 0 {
		t.Errorf("code %d, %q", code, out.String())
	}
}

// TestOpsByPeers finds operations and methods by the names of other libraries.
func TestOpsByPeers(t *testing.T) {
	for name, want := range map[string]string{
		"np.clip": " clip(", "torch.clamp": " clip(", "ReduceSum": " sum(", "numpy.matmul": " matmul(",
		"einsum": "batch.Batch.Einsum", "torch.repeat_interleave": "batch.Batch.Repeat", "DepthToSpace": "batch.Batch.PixelShuffle", "move_axis": "batch.Batch.MoveAxis",
	} {
		var out strings.Builder
		if err := (&opsCmd{Name: name}).Run(&app{out: &out}); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("rayo ops %s: %v\n%s\nwant %q", name, err, &out, want)
		}
	}
	if err := (&opsCmd{Name: "np.nothing"}).Run(&app{out: new(strings.Builder)}); err == nil {
		t.Error("np.nothing is found")
	}
}

package device

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestEnvironment checks that RAYO_DEVICE chooses the device unless options do.
func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		variable string
		options  []Option
		kind     Kind
		index    int
		name     string
		pinned   bool
	}{
		{"", nil, 0, 0, "", false},
		{"cuda", nil, CUDA, 0, "", true},
		{"wasm:0", nil, Wasm, 0, "", true},
		{"WebGPU:2", nil, WebGPU, 2, "", true},
		{"webgpu:llvm pipe", nil, WebGPU, 0, "llvm pipe", true},
		{"cuda:1", []Option{Require(CPU)}, CPU, 0, "", true},
		{"nonsense", []Option{Require(CPU)}, CPU, 0, "", true},
		{"webgpu:software", []Option{Require(WebGPU)}, WebGPU, 0, "software", true},
		{"webgpu:1", []Option{Require(WebGPU)}, WebGPU, 1, "", true},
		{"webgpu:1", []Option{Require(WebGPU), WithIndex(3)}, WebGPU, 3, "", true},
		{"webgpu:1", []Option{WithName("intel")}, 0, 0, "intel", true},
	} {
		t.Setenv("RAYO_DEVICE", c.variable)
		var got config
		for _, o := range c.options {
			if err := o(&got); err != nil {
				t.Fatal(err)
			}
		}
		if err := got.environment(); err != nil {
			t.Errorf("%q: %v", c.variable, err)
		}
		if got.kind != c.kind || got.index != c.index || got.name != c.name || got.pinned != c.pinned {
			t.Errorf("%q with %d options: %+v", c.variable, len(c.options), got)
		}
	}
	for _, v := range []string{"nonsense", "tpu:0", "cpu:-1"} {
		t.Setenv("RAYO_DEVICE", v)
		if err := new(config).environment(); !errors.Is(err, ErrNoDevice) {
			t.Errorf("%q: %v", v, err)
		}
	}
}

// TestWasm checks that only builds with the tag wazero have this device, and that the error of other builds names the
// tag.
func TestWasm(t *testing.T) {
	t.Setenv("RAYO_DEVICE", "wasm")
	d, err := Open(t.Context())
	if openers[Wasm] == nil {
		if !errors.Is(err, ErrNoDevice) || !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "-tags wazero") {
			t.Error(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	list, err := List(t.Context())
	if err != nil || !slices.ContainsFunc(list, func(i Info) bool { return i.String() == "wasm:0" }) {
		t.Errorf("the devices are %v: %v", list, err)
	}
	if _, err := Open(t.Context(), Require(Wasm), WithIndex(1)); !errors.Is(err, ErrNoDevice) {
		t.Errorf("wasm:1: %v", err)
	}
}

// TestNoDeviceSaysThingsOnce checks that the error of Open repeats neither the kinds nor its beginning.
func TestNoDeviceSaysThingsOnce(t *testing.T) {
	cause := errors.New("cuda: no driver")
	err := error(&noDevice{[]Refusal{
		{CUDA, fmt.Errorf("%w: %w", cause, ErrNoDevice)},
		{CPU, fmt.Errorf("no such level: %w", ErrUnsupported)},
	}})
	if want := "no device: cuda: no driver\ncpu: no such level: unsupported"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	for _, e := range []error{ErrNoDevice, cause, ErrUnsupported} {
		if !errors.Is(err, e) {
			t.Errorf("the error does not wrap %v", e)
		}
	}
}

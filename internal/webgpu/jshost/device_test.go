//go:build js && !nowebgpu

package jshost

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

var ctx = context.Background()

// spy is the host, with the devices that it has opened.
type spy struct {
	webgpu.Host
	devices []*device
}

func (s *spy) Open(ctx context.Context, index int) (webgpu.HostDevice, error) {
	d, err := s.Host.Open(ctx, index)
	if err == nil {
		s.devices = append(s.devices, d.(*device))
	}
	return d, err
}

// guarded opens software beneath the guard until the end of the test.
func guarded(t *testing.T) (*webgpu.Device, *device) {
	t.Helper()
	s := &spy{}
	g := hosttest.Guarded(t, func() (webgpu.Host, error) {
		h, err := New()
		s.Host = h
		return s, err
	}, "browser")
	return g, s.devices[0]
}

// TestLost: a device that is taken away is ErrDeviceLost for who waits and for who comes
// later.
func TestLost(t *testing.T) {
	g, d := guarded(t)
	if err := hosttest.Relu(g, 1000); err != nil {
		t.Fatal(err)
	}
	d.v.Call("destroy")
	<-g.Lost()
	if err := hosttest.Relu(g, 1000); !errors.Is(err, webgpu.ErrDeviceLost) {
		t.Errorf("%v", err)
	}
	select {
	case <-d.Lost():
	default:
		t.Error("the host does not say so")
	}
}

// TestMapLengths requires that only the bytes are mapped that a submission has written.
func TestMapLengths(t *testing.T) {
	g, d := guarded(t)
	if err := hosttest.Relu(g, 1000); err != nil {
		t.Fatal(err)
	}
	x, err := d.NewBuffer(64, webgpu.Storage)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	y, err := d.NewBuffer(4096, webgpu.Readback)
	if err != nil {
		t.Fatal(err)
	}
	defer y.Release()
	want := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	if err := d.Write(x, 0, want); err != nil {
		t.Fatal(err)
	}
	ticket, err := d.Submit([]webgpu.HostCommand{{Do: webgpu.Copy, Src: x, Dst: y, To: 1004, Bytes: 4}, {Do: webgpu.Copy, Src: x, Dst: y, From: 4, To: 1012, Bytes: 4}}, []webgpu.HostBuffer{y})
	if err != nil {
		t.Fatal(err)
	}
	if err := hosttest.Wait(d, ticket); err != nil {
		t.Fatal(err)
	}
	var got [12]byte
	if err := d.Read(y, 1004, got[:]); err != nil {
		t.Fatal(err)
	}
	if string(got[:4])+string(got[8:]) != string(want) {
		t.Errorf("%v, want %v with four bytes between them", got, want)
	}
	for _, off := range []int64{0, 996, 1008} {
		if err := d.Read(y, off, got[:]); err == nil {
			t.Errorf("bytes %d to %d were read, but not all of them are mapped", off, off+12)
		}
	}
	if n := y.(*buffer).mapped.Get("byteLength").Int(); n != 16 {
		t.Errorf("%d bytes are mapped, want 16 from a multiple of eight on", n)
	}
}

// TestFault requires that an error outside of error scopes fails the next submission, and no other.
func TestFault(t *testing.T) {
	g, d := guarded(t)
	if err := hosttest.Relu(g, 1000); err != nil {
		t.Fatal(err)
	}
	d.v.Call("createBuffer", map[string]any{"size": 4, "usage": mapRead | storage})
	if err := hosttest.Relu(g, 1000); err == nil || !strings.Contains(strings.ToLower(err.Error()), "usage") {
		t.Errorf("%v", err)
	}
	if err := hosttest.Relu(g, 1000); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestMistake: mistakes in a text come with line and column, counted in characters.
func TestMistake(t *testing.T) {
	g, _ := guarded(t)
	for _, c := range []struct {
		text         string
		line, column int
		message      string
	}{
		{"@compute @workgroup_size(1) fn main() {\n\tx = 1;\n}", 2, 2, "x"},
		{"@compute @workgroup_size(1) fn main() {\n\n\t/* ünï😀 */ let a = 1u + 1.5;\n}", 3, 21, "operator +"},
		{"@compute @workgroup_size(1) fn other() {}", 0, 0, "main"},
		{"", 0, 0, "main"},
	} {
		_, err := g.Compile(ctx, &webgpu.Shader{Label: "mistake", Text: c.text, Entry: "main"})
		var e *webgpu.CompileError
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if e.Line != c.line || e.Column != c.column || !strings.Contains(e.Message, c.message) || strings.Contains(e.Text, "\n") {
			t.Errorf("%q: %d:%d: %s", c.text, e.Line, e.Column, e.Message)
		}
	}
	if err := hosttest.Relu(g, 1000); err != nil {
		t.Error(err)
	}
}

// TestTooLarge: a buffer that the browser refuses is an error of the call that asks for it,
// and of no other.
func TestTooLarge(t *testing.T) {
	g, d := guarded(t)
	if b, err := d.NewBuffer(4*d.adapter.Buffer, webgpu.Storage); err == nil {
		b.Release()
		t.Error("a buffer four times as large as the limit")
	}
	if err := hosttest.Relu(g, 1000); err != nil {
		t.Errorf("after it: %v", err)
	}
}

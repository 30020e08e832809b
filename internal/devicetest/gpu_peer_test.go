//go:build !js

package devicetest

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// peer is a process that measures the same with PyTorch, or nil.
type peer struct {
	in   *json.Encoder
	out  *bufio.Scanner
	stop func()
}

// startPeer starts what RAYO_PEER says: a command with bench/peers/gpu.py. It is
// nil if that is empty or there is no PyTorch.
func startPeer(b *testing.B) *peer {
	script := os.Getenv("RAYO_PEER")
	if script == "" {
		return nil
	}
	cmd := exec.Command("python3", script)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Logf("no peer: %v", err)
		return nil
	}
	p := &peer{in: json.NewEncoder(in), out: bufio.NewScanner(out), stop: func() { _ = in.Close(); _ = cmd.Wait() }}
	if !p.out.Scan() {
		p.stop()
		b.Log("no peer: PyTorch does not start")
		return nil
	}
	b.Logf("peer %s", p.out.Text())
	return p
}

// time returns how many microseconds the peer takes for a cell.
func (p *peer) time(c *cell) (float64, error) {
	kind := map[op.DType]string{op.F32: "float32", op.F16: "float16", op.BF16: "bfloat16"}[c.typ]
	if c.tf32 {
		kind = "tf32"
	}
	if err := p.in.Encode(map[string]any{"do": c.peer, "type": kind, "shapes": c.shapes}); err != nil {
		return 0, err
	}
	var answer struct {
		Us    float64
		Error string
	}
	if !p.out.Scan() {
		return 0, errors.New("the peer has ended")
	}
	if err := json.Unmarshal(p.out.Bytes(), &answer); err != nil {
		return 0, err
	}
	if answer.Error != "" {
		return 0, errors.New(answer.Error)
	}
	return answer.Us, nil
}

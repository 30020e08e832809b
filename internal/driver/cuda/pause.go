package cuda

import (
	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/ptxkernels"
	"github.com/rayo-go/rayo/ptx"
)

// The device records the time when it reaches an event. If it is idle, it reaches the first event
// before the host has launched the next kernel, and the 3 µs of this launch would count as the
// device's time. So it pauses until the host is ahead.

// pauseKernel waits for about n times two microseconds.
var pauseKernel = &ptxkernels.Kernel{Name: "pause", Target: ptx.SM70, Block: [3]uint32{1, 1, 1}, Build: func(k *ptx.Kernel) {
	n := ptx.Param[ptx.U32](k, "n")
	k.For(ptx.U(0), n, ptx.U(1), func(ptx.U32) { k.Sleep(ptx.U(2000)) })
}}

const (
	pauseFirst = 3   // for the first step, in units of two microseconds
	pauseEach  = 2   // for each other step
	maxPause   = 500 // limit of the sum: after it, the device may catch up
)

// pause makes the device wait while the host enqueues the steps.
func (r *run) pause() error {
	e := r.e
	if e.pausing == nil {
		k, err := e.compile(programKey{native: pauseKernel})
		if err != nil {
			return err
		}
		e.pausing = k
	}
	s := ptxkernels.Stage{Kernel: pauseKernel, Grid: [3]uint32{1, 1, 1}}
	args := cu.Params(r.args[:0])
	args.U32(uint32(min(pauseFirst+pauseEach*len(e.steps), maxPause)))
	r.args = args
	return r.hw.Launch(e.pausing.fn, s.Config(e.pausing.dynamic), r.args)
}

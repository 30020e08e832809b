package engine

import (
	"errors"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
)

// loss records whether the device is lost.
type loss struct {
	flag    atomic.Bool
	channel chan struct{} // closed when flag is set
}

// Lost returns a channel that is closed when the device is lost. After that, all calls return
// ErrDeviceLost and the engine closes itself; Close waits until it has closed.
func (e *Engine) Lost() <-chan struct{} { return e.loss.channel }

// watch waits for the loss of the device or for Close.
func (e *Engine) watch(lost <-chan struct{}) {
	select {
	case <-lost:
		e.lose()
	case <-e.closed:
	}
}

// lose records the loss; later calls do nothing.
func (e *Engine) lose() {
	if e.loss.flag.CompareAndSwap(false, true) {
		close(e.loss.channel)
		go e.Close() // in a goroutine, because Close waits for running calls, and the caller may be one
	}
}

// checkLost records a loss if err reports one, and returns err.
func (e *Engine) checkLost(err error) error {
	if err != nil && errors.Is(err, driver.ErrDeviceLost) {
		e.lose()
	}
	return err
}

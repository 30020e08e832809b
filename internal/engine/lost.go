package engine

import (
	"errors"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
)

// loss is what an engine knows of the loss of its device.
type loss struct {
	flag    atomic.Bool
	channel chan struct{} // closed when flag is set
}

// Lost returns a channel that is closed when the device is lost. From then on
// all calls return ErrDeviceLost, and the engine closes by itself: Close waits
// for that, as ever.
func (e *Engine) Lost() <-chan struct{} { return e.loss.channel }

// watch waits for the device to say that it is lost, or for Close.
func (e *Engine) watch(lost <-chan struct{}) {
	select {
	case <-lost:
		e.lose()
	case <-e.closed:
	}
}

// lose notes the loss once.
func (e *Engine) lose() {
	if e.loss.flag.CompareAndSwap(false, true) {
		close(e.loss.channel)
		go e.Close() // it waits for running calls, and the caller may be one
	}
}

// checkLost looks at an error of the device and returns it.
func (e *Engine) checkLost(err error) error {
	if err != nil && errors.Is(err, driver.ErrDeviceLost) {
		e.lose()
	}
	return err
}

package engine

import "github.com/rayo-go/rayo/internal/driver"

// LockPages locks the pages of b if the device gains from it: see [driver.PageLocker].
func (e *Engine) LockPages(b []byte) (unlock func() error, err error) {
	defer guard(&err)
	if !e.enter() {
		return nil, e.Err()
	}
	defer e.exit()
	if dev, ok := e.dev.(driver.PageLocker); ok {
		return dev.LockPages(b)
	}
	return func() error { return nil }, nil
}

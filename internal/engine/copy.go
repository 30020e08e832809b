package engine

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
)

// Copy copies a buffer to a buffer of the same size on another device, without the host, and waits
// for the end. The error wraps ErrUnsupported if the devices do not support such copies.
func Copy(ctx context.Context, dst, src *Buffer) (err error) {
	defer guard(&err)
	to, ok := dst.eng.dev.(driver.Peer)
	if !ok || dst.bytes != src.bytes {
		return fmt.Errorf("copy of %d bytes from %s to %s: %w", src.bytes, src.eng.name, dst.eng.name, driver.ErrUnsupported)
	}
	if err := driver.Alive(ctx); err != nil {
		return err
	}
	for _, b := range []*Buffer{dst, src} {
		if !b.eng.enter() {
			return b.eng.Err()
		}
		defer b.eng.exit()
		if !b.retain() {
			return fmt.Errorf("buffer: %w", driver.ErrClosed)
		}
		defer b.release()
	}
	return dst.eng.checkLost(to.CopyFrom(ctx, dst.mem, src.eng.dev, src.mem, dst.bytes))
}

// Command cuda_monitor shows the activity of the NVIDIA GPUs of this machine while
// one of them works.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/device"
)

func main() {
	if err := run(context.Background(), os.Stdout, 3, 300*time.Millisecond); err != nil {
		log.Fatal(err)
	}
}

// run takes some readings, one after each interval.
func run(ctx context.Context, w io.Writer, readings int, interval time.Duration) error {
	m, err := cuda.OpenMonitor()
	if errors.Is(err, cuda.ErrNoMonitor) {
		fmt.Fprintln(w, "nothing to monitor:", cuda.ErrNoMonitor)
		return nil
	}
	if err != nil {
		return err
	}
	defer m.Close()

	// Something to see: products of matrices until the last reading. A machine
	// may have the library and no device that works.
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()

	fmt.Fprintln(w, "driver", m.Driver())
	for range readings {
		time.Sleep(interval)
		all, err := m.Read()
		if err != nil {
			stop()
			return errors.Join(err, <-done)
		}
		// What cannot be read prints as unknown.
		for _, s := range all {
			fmt.Fprintf(w, "%d %s: busy %v%%, memory %v of %v bytes, %v W of %v, %v °C, %v MHz\n",
				s.Index, s.Name, s.Utilization, s.MemoryUsed, s.MemoryTotal, s.Power, s.PowerLimit, s.Temperature, s.Clock)
		}
	}
	stop()
	return <-done
}

// work multiplies matrices until ctx ends.
func work(ctx context.Context) error {
	dev, err := device.Open(ctx, device.Require(device.CUDA))
	if errors.Is(err, device.ErrNoDevice) || ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer dev.Close()
	const n = 2048
	a, b, c := device.Alloc(n*n), device.Alloc(n*n), device.Alloc(n*n)
	for ctx.Err() == nil {
		if err := dev.MatMul(ctx, c, a, b, nil, n, n, n); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

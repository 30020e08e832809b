package device

import (
	"context"
	"errors"
	"sync"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
)

// selfTest checks a few known results before Open returns a device, because some drivers and
// compilers are broken and must not give wrong results silently. It closes the engine if a test
// fails. The engine tests other operations before their first use.
func selfTest(ctx context.Context, e *engine.Engine) error {
	if err := knownAnswers(ctx, e); err != nil {
		e.Close()
		return fmt.Errorf("self-test of %s: %w", e.Name(), err)
	}
	return nil
}

// knownAnswers runs all tests concurrently, because a GPU's compiler takes most of the time.
func knownAnswers(ctx context.Context, e *engine.Engine) error {
	errs := make([]error, len(openTests))
	var work sync.WaitGroup
	for i, test := range openTests {
		work.Add(1)
		go func() {
			defer work.Done()
			errs[i] = test(ctx, e)
		}()
	}
	work.Wait()
	return errors.Join(errs...)
}

// knownLength is not a multiple of any vector width.
const knownLength = 67

// small returns small integers, so that every answer of sums and products is exact
// in any order of summation.
func small(of int) []float32 {
	x := make([]float32, knownLength)
	for i := range x {
		x[i] = float32(i%of - of/2)
	}
	return x
}

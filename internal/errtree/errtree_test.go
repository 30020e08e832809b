package errtree

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestAs(t *testing.T) {
	inner := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	for name, err := range map[string]error{
		"itself": inner, "wrapped": fmt.Errorf("a: %w", inner), "joined": errors.Join(errors.New("b"), fmt.Errorf("c: %w", inner)),
		"two": fmt.Errorf("%w: %w", errors.New("d"), inner), "another": errors.New("e"), "nil": nil, "wrapped nil": fmt.Errorf("f: %w", error(nil)),
	} {
		var want *fs.PathError
		is := errors.As(err, &want)
		if got, ok := As[*fs.PathError](err); got != want || ok != is {
			t.Errorf("%s: %v, %v; expected %v, %v", name, got, ok, want, is)
		}
	}
}

package dl

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// Errors of Open wrap ErrUnsupported on a platform or in a build that cannot load libraries.
	ErrUnsupported = errors.New("loading libraries is not supported here")

	// Errors of Open wrap ErrNotFound if no name can be loaded.
	ErrNotFound = errors.New("library not found")

	// Errors of Symbol wrap ErrNoSymbol for a name that the library does not export.
	ErrNoSymbol = errors.New("no such symbol")
)

// A Library is a loaded library. It is safe for concurrent use, and stays loaded until the process
// ends: libraries of drivers start threads and register callbacks, which would fail after unloading.
type Library struct {
	name   string
	handle uintptr
}

// Open loads the first of names that the system's loader finds. Errors wrap [ErrNotFound] or
// [ErrUnsupported]. They list the names without a file, and the loader's message for each other name.
func Open(names ...string) (*Library, error) {
	var said, missing []string
	for _, name := range names {
		if name == "" || strings.IndexByte(name, 0) >= 0 {
			said = append(said, fmt.Sprintf("%q is no name", name))
			continue
		}
		h, err := load(name)
		if err == nil {
			return &Library{name, h}, nil
		}
		if errors.Is(err, ErrUnsupported) {
			return nil, err
		}
		why := err.Error()
		if isMissing(why) {
			missing = append(missing, name)
			continue
		}
		if !strings.Contains(why, name) {
			why = name + ": " + why
		}
		said = append(said, why)
	}
	if len(missing) > 0 {
		said = append(said, "tried "+strings.Join(missing, ", "))
	}
	if len(said) == 0 {
		said = []string{"no name given"}
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, strings.Join(said, "; "))
}

// isMissing reports whether the message of a loader says only that there is no such file.
func isMissing(why string) bool {
	why = strings.ToLower(why)
	return strings.Contains(why, "no such file") || strings.Contains(why, "specified module could not be found") || strings.Contains(why, "image not found")
}

// Name returns the name under which the library was found.
func (l *Library) Name() string { return l.name }

// Symbol returns the address of an exported function or variable. The error of
// a failure wraps [ErrNoSymbol].
func (l *Library) Symbol(name string) (uintptr, error) {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return 0, fmt.Errorf("%s: %w: %q", l.name, ErrNoSymbol, name)
	}
	a, err := find(l.handle, name)
	if err != nil || a == 0 {
		return 0, fmt.Errorf("%s: %w: %s", l.name, ErrNoSymbol, name)
	}
	return a, nil
}

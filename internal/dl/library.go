package dl

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrUnsupported is wrapped by what Open returns on a platform, or in a
	// build, that cannot load libraries.
	ErrUnsupported = errors.New("loading libraries is not supported here")

	// ErrNotFound is wrapped by what Open returns when no name can be loaded.
	ErrNotFound = errors.New("library not found")

	// ErrNoSymbol is wrapped by what Symbol returns for a name that the library
	// does not export.
	ErrNoSymbol = errors.New("no such symbol")
)

// A Library is a loaded library. It is safe for concurrent use. It stays loaded
// until the process ends: libraries of drivers start threads and register
// things that do not survive unloading.
type Library struct {
	name   string
	handle uintptr
}

// Open loads the first of names that the system finds, searching where its
// loader does. The error of a failure wraps [ErrNotFound] or [ErrUnsupported]
// and says for each name what the loader said.
func Open(names ...string) (*Library, error) {
	var said []string
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
		if !strings.Contains(why, name) {
			why = name + ": " + why
		}
		said = append(said, why)
	}
	if len(said) == 0 {
		said = []string{"no name given"}
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, strings.Join(said, "; "))
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

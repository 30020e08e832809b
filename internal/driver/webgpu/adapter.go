package webgpu

import (
	"context"
	"strings"

	"github.com/rayo-go/rayo/internal/ascii"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
)

// Choice says which adapter to open.
type Choice struct {
	// Index is the index among the adapters in the order of preference: discrete GPUs, then
	// integrated, virtual and unknown ones, then software. Best means the first adapter that is not
	// software.
	Index int
	// Name, if not empty, selects the adapters that Index counts: "software", or a part of the name
	// of the adapter or its driver, in upper or lower case.
	Name string
	// Hardware excludes software adapters.
	Hardware bool
}

// Best is the default of Choice.Index.
const Best = -1

// Substitute, if not nil, replaces the host of the build. Tests set it before they open a device.
var Substitute gpu.Host

// Open opens an adapter.
//
// The error wraps [driver.ErrNoDevice] if there is no such adapter, and lists the adapters.
func Open(ctx context.Context, c Choice) (driver.Device, error) {
	h := Substitute
	if h == nil {
		var err error
		if h, err = host(); err != nil {
			return nil, fmt.Errorf("%w: %w", err, driver.ErrNoDevice)
		}
	}
	all, err := h.Adapters(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", h.Name(), err, driver.ErrNoDevice)
	}
	list := ordered(all)
	place, err := c.of(list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Name(), err)
	}
	g, err := gpu.Open(ctx, h, list[place].index)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w: %w", list[place].Name, err, driver.ErrNoDevice)
	}
	return newDevice(g, h.Name(), place), nil
}

// listed is an adapter and its index in the host's list.
type listed struct {
	*gpu.Adapter
	index int
}

// ordered returns the adapters in the order of preference.
func ordered(all []gpu.Adapter) []listed {
	var list []listed
	for i := range all {
		list = append(list, listed{&all[i], i})
		// An insertion: a sort of the standard library is larger.
		for k := i; k > 0 && list[k-1].Type > list[k].Type; k-- {
			list[k-1], list[k] = list[k], list[k-1]
		}
	}
	return list
}

// of returns the index in list of the chosen adapter.
func (c Choice) of(list []listed) (int, error) {
	if len(list) == 0 {
		return 0, fmt.Errorf("no adapter: %w", driver.ErrNoDevice)
	}
	left := c.Index
	for i, a := range list {
		if c.Name != "" && !a.called(c.Name) {
			continue
		}
		if a.Type == gpu.Software && (c.Hardware || c.Name == "" && c.Index < 0) {
			break // the rest is software too, which must be named
		}
		if left <= 0 {
			return i, nil
		}
		left--
	}
	var names []string
	for _, a := range list {
		names = append(names, fmt.Sprintf("%s (%v)", a.Name, a.Type))
	}
	there := strings.Join(names, ", ")
	switch {
	case c.Name != "" && c.Index > 0:
		return 0, fmt.Errorf("there is no adapter %d with a name that contains %q; the adapters are %s: %w", c.Index, c.Name, there, driver.ErrNoDevice)
	case c.Name != "":
		return 0, fmt.Errorf("no adapter has a name that contains %q; the adapters are %s: %w", c.Name, there, driver.ErrNoDevice)
	case c.Index >= 0:
		return 0, fmt.Errorf("there is no adapter %d; the adapters are %s: %w", c.Index, there, driver.ErrNoDevice)
	}
	return 0, fmt.Errorf("there are only software adapters, which must be named, for example by RAYO_DEVICE=webgpu:software: %s: %w", there, driver.ErrNoDevice)
}

// called reports whether one of the adapter's names contains part.
func (a listed) called(part string) bool {
	part = ascii.Lower(part)
	return strings.Contains(ascii.Lower(a.Name), part) || strings.Contains(ascii.Lower(a.Driver), part) ||
		part == "software" && a.Type == gpu.Software
}

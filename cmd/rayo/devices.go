package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/simd"
)

type devicesCmd struct {
	JSON bool `name:"json" help:"Write JSON."`
}

// machine is the output of rayo devices.
type machine struct {
	Open    string       `json:"open"`            // the device that device.Open returns, as kind:index
	Error   string       `json:"error,omitempty"` // the reason why it returns none
	Devices []found      `json:"devices"`
	Refused []refusal    `json:"refused"`
	SIMD    simdReport   `json:"simd"`
	Caches  cachesReport `json:"caches"`
}

type found struct {
	Device  string `json:"device"` // its name in RAYO_DEVICE
	Name    string `json:"name"`
	Detail  string `json:"detail"`
	Threads int    `json:"threads,omitempty"`
	Memory  int64  `json:"memory,omitempty"` // bytes
	// Software says that software emulates the GPU. Such a device is opened only by its name.
	Software bool `json:"software,omitempty"`
}

type refusal struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
}

type simdReport struct {
	Active    string   `json:"active"`
	Supported []string `json:"supported"`
	Refused   string   `json:"refused,omitempty"`
}

type cachesReport struct {
	L1   int `json:"l1"`
	L2   int `json:"l2"`
	Last int `json:"last"`
}

func (c *devicesCmd) Run(a *app) error {
	m, err := look(a)
	if err != nil {
		return err
	}
	if !c.JSON {
		m.write(a)
	} else if err := writeJSON(a.out, m); err != nil {
		return err
	}
	if m.Error != "" {
		return fmt.Errorf("no device can be opened: %s", m.Error)
	}
	return nil
}

// look collects the devices of the machine.
func look(a *app) (*machine, error) {
	infos, err := device.List(a.ctx)
	if err != nil {
		return nil, err
	}
	m := &machine{Devices: []found{}, Refused: []refusal{}}
	for _, i := range infos {
		m.Devices = append(m.Devices, found{i.String(), i.Name, i.Detail, i.Threads, i.Memory, false})
	}
	for n := 0; ; n++ {
		d, err := device.Open(a.ctx, device.Require(device.WebGPU), device.WithName("software"), device.WithIndex(n))
		if err != nil {
			if a.ctx.Err() != nil {
				return nil, a.ctx.Err()
			}
			break
		}
		i := d.Info()
		m.Devices = append(m.Devices, found{i.String(), i.Name, i.Detail, i.Threads, i.Memory, true})
		d.Close()
	}
	for _, k := range []device.Kind{device.CUDA, device.WebGPU, device.CPU} {
		if err := device.Available(a.ctx, k); err != nil {
			m.Refused = append(m.Refused, refusal{k.String(), reason(err, k)})
		}
	}
	if d, err := device.Open(a.ctx); err != nil {
		m.Error = err.Error()
	} else {
		m.Open = d.String()
		d.Close()
	}
	m.SIMD = simdReport{Active: simd.Active().String(), Refused: simd.Refused()}
	for _, l := range simd.Supported() {
		m.SIMD.Supported = append(m.SIMD.Supported, l.String())
	}
	c := memory.CPUCaches()
	m.Caches = cachesReport{c.L1, c.L2, c.Last}
	return m, nil
}

// reason returns the text of the error without parts that the list shows already.
func reason(err error, k device.Kind) string {
	s := strings.TrimPrefix(err.Error(), device.ErrNoDevice.Error()+": ")
	return strings.TrimPrefix(s, k.String()+": ")
}

func (m *machine) write(a *app) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	for _, d := range m.Devices {
		mark := ""
		switch {
		case d.Device == m.Open:
			mark = "device.Open takes this one"
		case d.Software:
			mark = "opened only by name: RAYO_DEVICE=webgpu:software"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.Device, d.Name, d.Detail, mark)
	}
	for _, r := range m.Refused {
		fmt.Fprintf(w, "%s\trefused: %s\n", r.Kind, r.Reason)
	}
	w.Flush()
	fmt.Fprintf(a.out, "\nSIMD     %s (the machine has %s)\n", m.SIMD.Active, strings.Join(m.SIMD.Supported, ", "))
	if m.SIMD.Refused != "" {
		fmt.Fprintf(a.out, "         %s\n", m.SIMD.Refused)
	}
	fmt.Fprintf(a.out, "caches   L1 %s, L2 %s, last %s\n", bytesText(m.Caches.L1), bytesText(m.Caches.L2), bytesText(m.Caches.Last))
}

// bytesText returns a size with a unit, for example 48 KiB.
func bytesText[T int | int64](n T) string {
	units := []string{"B", "KiB", "MiB", "GiB"}
	u := 0
	v := float64(n)
	for ; v >= 1024 && u < len(units)-1; u++ {
		v /= 1024
	}
	return fmt.Sprintf("%.4g %s", v, units[u])
}

func writeJSON(w interface{ Write([]byte) (int, error) }, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

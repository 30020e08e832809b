package main

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/device"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Write JSON."`
}

// versionReport is the output of rayo version. Fields that the build does not know are "".
type versionReport struct {
	Version  string          `json:"version"`            // the version of the module
	Revision string          `json:"revision,omitempty"` // the revision in version control
	Time     string          `json:"time,omitempty"`     // the time of the revision
	Modified bool            `json:"modified,omitempty"` // the source had changes after the revision
	Go       string          `json:"go"`
	Target   string          `json:"target"` // the operating system and the architecture
	Cgo      bool            `json:"cgo"`
	Tags     string          `json:"tags,omitempty"`
	CUDA     string          `json:"cuda,omitempty"` // the version of the driver, or the reason why there is none
	NoCUDA   string          `json:"noCuda,omitempty"`
	Devices  []versionDevice `json:"devices"`
}

// versionDevice is a device with its driver.
type versionDevice struct {
	Device string `json:"device"`
	Detail string `json:"detail"`
}

func (c *versionCmd) Run(a *app) error {
	info, _ := debug.ReadBuildInfo()
	r := built(info)
	if v, err := cuda.DriverVersion(); err == nil {
		r.CUDA = v.String()
	} else if !errors.Is(err, cuda.ErrNoDriver) {
		r.NoCUDA = err.Error()
	}
	infos, err := device.List(a.ctx)
	if err != nil {
		return err
	}
	r.Devices = []versionDevice{}
	for _, i := range infos {
		r.Devices = append(r.Devices, versionDevice{i.String(), i.Detail})
	}
	if c.JSON {
		return writeJSON(a.out, r)
	}
	return r.write(a)
}

// built returns the version data of a build; info may be nil.
func built(info *debug.BuildInfo) *versionReport {
	r := &versionReport{Version: "unknown", Go: runtime.Version(), Target: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return r
	}
	if info.Main.Version != "" {
		r.Version = info.Main.Version
	}
	if info.GoVersion != "" {
		r.Go = info.GoVersion
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Revision = s.Value
		case "vcs.time":
			r.Time = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		case "CGO_ENABLED":
			r.Cgo = s.Value == "1"
		case "-tags":
			r.Tags = s.Value
		}
	}
	return r
}

func (r *versionReport) write(a *app) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "rayo\t%s\n", r.Version)
	if r.Revision != "" {
		changed := ""
		if r.Modified {
			changed = ", with changes"
		}
		fmt.Fprintf(w, "revision\t%s, %s%s\n", r.Revision, r.Time, changed)
	}
	cgo := "without cgo"
	if r.Cgo {
		cgo = "with cgo"
	}
	fmt.Fprintf(w, "built by\t%s for %s, %s\n", r.Go, r.Target, cgo)
	if r.Tags != "" {
		fmt.Fprintf(w, "tags\t%s\n", r.Tags)
	}
	switch {
	case r.CUDA != "":
		fmt.Fprintf(w, "CUDA driver\t%s\n", r.CUDA)
	case r.NoCUDA != "":
		fmt.Fprintf(w, "CUDA driver\t%s\n", r.NoCUDA)
	}
	for _, d := range r.Devices {
		fmt.Fprintf(w, "%s\t%s\n", d.Device, d.Detail)
	}
	return w.Flush()
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
)

// profile shows where the time of the photograph's pipeline goes.
func (c *benchCmd) profile(a *app, dev *device.Device) error {
	var old *batch.Baseline
	if c.Baseline != "" {
		f, err := os.Open(c.Baseline)
		if err != nil {
			return err
		}
		defer f.Close()
		if old, err = batch.ReadBaseline(f); err != nil {
			return fmt.Errorf("%s: %w", c.Baseline, err)
		}
	}
	photo, err := decode(photoJPEG)
	if err != nil {
		return err
	}
	b := batch.New(dev)
	batch.ReadInto(b, neon[batch.Value](b, photo, photo.extend(margin)), device.Alloc(len(photo.rgb)))
	p, err := b.Profile(a.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(a.out, p)
	} else {
		_, err = fmt.Fprint(a.out, p)
		if old != nil {
			fmt.Fprintf(a.out, "\n%s", p.Compare(old))
		}
	}
	if err == nil && c.Trace != "" {
		err = writeTo(c.Trace, p.WriteTrace)
	}
	if err == nil && c.Save != "" {
		err = writeTo(c.Save, func(w io.Writer) error { _, err := p.Baseline().WriteTo(w); return err })
	}
	return err
}

// writeTo writes a file. It also returns errors of closing the file.
func writeTo(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

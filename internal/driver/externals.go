package driver

import "github.com/rayo-go/rayo/internal/fmt"

// Externals describes how the steps of a program use its external slots, by [Slot].Ext.
type Externals struct {
	Need    []int64 // bytes
	Written []bool
}

// ExternalsOf returns the Externals of a program.
func ExternalsOf(p *Program) Externals {
	x := Externals{make([]int64, p.Ext), make([]bool, p.Ext)}
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Data == nil && s.Ext >= 0 {
			x.Need[s.Ext] = max(x.Need[s.Ext], s.Bytes)
			x.Written[s.Ext] = x.Written[s.Ext] || s.Written
		}
	}
	return x
}

// Check returns an error for bindings that are too short for their steps. behind returns the number
// of bytes of device memory after an offset, a negative number if the offset is outside, and
// ErrForeign for memory of another device.
func (x *Externals) Check(ext []Binding, behind func(m Memory, off int64) (int64, error)) error {
	if len(ext) < len(x.Need) {
		return fmt.Errorf("%d of %d operands are bound: %w", len(ext), len(x.Need), ErrShape)
	}
	for i, need := range x.Need {
		b := &ext[i]
		have := int64(len(b.Host))
		if b.Mem != nil {
			var err error
			if have, err = behind(b.Mem, b.Off); err != nil {
				return err
			}
		}
		if have < need {
			return fmt.Errorf("operand %d has %d bytes of %d: %w", i, have, need, ErrShape)
		}
	}
	return nil
}

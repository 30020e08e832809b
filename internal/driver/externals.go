package driver

import "fmt"

// Externals is what the steps of a program do with its external slots, by
// [Slot].Ext.
type Externals struct {
	Need    []int64 // bytes
	Written []bool
}

// ExternalsOf returns those of a program.
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

// Check guards against bindings that steps would read or write beyond. behind
// returns how many bytes there are of memory of the device from an offset on, none
// less than 0 if nothing may be there, and ErrForeign for memory of another.
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

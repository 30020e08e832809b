package kernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// chooseRowWay returns the way for rows of so many elements.
func chooseRowWay(o *op.Operation, t op.DType, rows, cols int, d *Device) (rowWay, bool) {
	v := rowVector(t)
	for _, w := range []rowWay{
		{Lanes: 1, Teams: 128, Rows: 1, Width: v, Registers: 1},
		{Lanes: 2, Teams: 64, Rows: 1, Width: v, Registers: 1},
		{Lanes: 4, Teams: 32, Rows: 1, Width: v, Registers: 1},
		{Lanes: 8, Teams: 16, Rows: 1, Width: v, Registers: 1},
		{Lanes: 16, Teams: 8, Rows: 1, Width: v, Registers: 1},
		{Lanes: 32, Teams: 4, Rows: 1, Width: v, Registers: 1},
		{Lanes: 32, Teams: 4, Rows: 1, Width: v, Registers: 2},
		{Lanes: 32, Teams: 4, Rows: 1, Width: v, Registers: 4},
		{Lanes: 32, Teams: 4, Rows: 1, Width: v, Registers: 8},
		{Lanes: 128, Teams: 1, Rows: 1, Width: v, Registers: 4},
		{Lanes: 256, Teams: 1, Rows: 1, Width: v, Registers: 4},
		{Lanes: 256, Teams: 1, Rows: 1, Width: v, Registers: 8},
		{Lanes: 512, Teams: 1, Rows: 1, Width: v, Registers: 8},
		{Lanes: 512, Teams: 1, Rows: 1, Width: v, Registers: 8, Shared: 8},
		{Lanes: 1024, Teams: 1, Rows: 1, Width: v, Registers: 8, Shared: 8},
	} {
		w.Load, w.Save = ptx.Once, ptx.Once
		if w.fits(cols) {
			return w, true
		}
	}
	return rowWay{}, false
}

package main

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The colours of the systems. They can be distinguished with red-green colour blindness.
var systemColor = map[string]color.Color{
	"rayo":     color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	"numpy":    color.RGBA{0x00, 0x72, 0xb2, 0xff},
	"torch":    color.RGBA{0x00, 0x9e, 0x73, 0xff},
	"openblas": color.RGBA{0x00, 0x72, 0xb2, 0xff},
	"mkl":      color.RGBA{0x00, 0x9e, 0x73, 0xff},
}

// plots draws the tables into dir, which it creates.
func (r *results) plots(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	// Every viewer has a font with letters of this width.
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	plotter.DefaultFont = plot.DefaultFont
	for _, t := range threadCounts {
		panels, err := r.arrayPanels(t)
		if err != nil {
			return err
		}
		if err := grid(panels, 3, filepath.Join(dir, fmt.Sprintf("arrays-%d.svg", t))); err != nil {
			return err
		}
	}
	var panels []*plot.Plot
	for _, t := range threadCounts {
		p, err := r.matmulPanel(t)
		if err != nil {
			return err
		}
		panels = append(panels, p)
	}
	return grid(panels, 1, filepath.Join(dir, "matmul.svg"))
}

// grid draws the panels in rows into an SVG file.
func grid(panels []*plot.Plot, columns int, file string) error {
	rows := (len(panels) + columns - 1) / columns
	width, height := vg.Points(810)/vg.Length(columns), vg.Points(200)
	if columns == 1 {
		height = vg.Points(260)
	}
	table := make([][]*plot.Plot, rows)
	for i := range table {
		table[i] = make([]*plot.Plot, columns)
		for j := range columns {
			if k := i*columns + j; k < len(panels) {
				table[i][j] = panels[k]
			}
		}
	}
	c := vgsvg.New(width*vg.Length(columns), height*vg.Length(rows))
	dc := draw.New(c)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	tiles := draw.Tiles{Rows: rows, Cols: columns, PadX: vg.Points(12), PadY: vg.Points(12), PadTop: vg.Points(6), PadBottom: vg.Points(6), PadLeft: vg.Points(6), PadRight: vg.Points(12)}
	canvases := plot.Align(table, tiles, dc)
	for i, row := range table {
		for j, p := range row {
			if p != nil {
				p.Draw(canvases[i][j])
			}
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = c.WriteTo(f)
	return err
}

// arrayPanels returns a panel for each operation, with the elements per nanosecond of
// each system.
func (r *results) arrayPanels(threads int) ([]*plot.Plot, error) {
	var panels []*plot.Plot
	for i, op := range arrayOps {
		p := plot.New()
		p.Title.Text = fmt.Sprintf("%s, %s", op, plural(threads))
		p.Title.TextStyle.Font.Size = 10
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = decades{}, decades{}
		p.X.Label.Text, p.Y.Label.Text = "elements", "elements / ns"
		p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = 8, 8
		p.Add(faintGrid())
		for _, server := range []string{"numpy", "torch", "rayo"} {
			var pts plotter.XYs
			for _, n := range arraySizes {
				if t := r.of(cell{Op: op, N: n, Threads: threads}, server); t != nil {
					pts = append(pts, plotter.XY{X: float64(n), Y: float64(n) / t.median()})
				}
			}
			if len(pts) == 0 {
				continue
			}
			line, points, err := plotter.NewLinePoints(pts)
			if err != nil {
				return nil, err
			}
			line.Color, points.Color = systemColor[server], systemColor[server]
			line.Width = vg.Points(1.5)
			points.Shape, points.Radius = draw.CircleGlyph{}, vg.Points(2)
			p.Add(line, points)
			if i == 0 {
				p.Legend.Add(systemName[server], line)
			}
		}
		p.Legend.Left, p.Legend.Top = true, true
		small(p)
		panels = append(panels, p)
	}
	return panels, nil
}

// matmulPanel draws bars of GFLOP/s and the peak of the machine.
func (r *results) matmulPanel(threads int) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "matmul, " + plural(threads)
	p.Title.TextStyle.Font.Size = 10
	p.Y.Label.Text = "GFLOP/s"
	p.Y.Label.TextStyle.Font.Size = 8
	p.Y.Min = 0
	width := vg.Points(18)
	var names []string
	for i, server := range []string{"rayo", "openblas", "mkl"} {
		var values plotter.Values
		names = names[:0]
		for _, m := range products {
			c := cell{Op: "matmul", M: m[0], K: m[1], N: m[2], Threads: threads}
			v := 0.0
			if t := r.of(c, server); t != nil {
				v = c.flops() / t.median()
			}
			values = append(values, v)
			names = append(names, c.size())
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return nil, err
		}
		bars.Color, bars.LineStyle.Width = systemColor[server], 0
		bars.Offset = width * vg.Length(i-1)
		p.Add(bars)
		p.Legend.Add(systemName[server], bars)
	}
	if peak := r.peak(threads); peak > 0 {
		f := plotter.NewFunction(func(float64) float64 { return peak })
		f.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		f.XMin, f.XMax = -0.5, float64(len(products))-0.5
		p.Add(f)
		p.Legend.Add("FMA peak", f)
		p.Y.Max = 1.4 * peak
	}
	p.NominalX(names...)
	p.X.Min, p.X.Max = -0.5, float64(len(products))-0.5
	p.Y.Tick.Marker = hundreds{}
	p.Legend.Top = true
	small(p)
	return p, nil
}

// small sets font sizes that fit panels.
func small(p *plot.Plot) {
	p.Legend.TextStyle.Font.Size = 8
	p.Legend.Padding, p.Legend.ThumbnailWidth = vg.Points(3), vg.Points(16)
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = 8, 8
}

func faintGrid() *plotter.Grid {
	g := plotter.NewGrid()
	g.Vertical.Color, g.Horizontal.Color = color.Gray{0xdd}, color.Gray{0xdd}
	return g
}

// hundreds places about five ticks on an axis, at multiples of 50.
type hundreds struct{}

func (hundreds) Ticks(low, high float64) []plot.Tick {
	step := max(50, math.Round(high/5/50)*50)
	var ts []plot.Tick
	for v := 0.0; v <= high; v += step {
		ts = append(ts, plot.Tick{Value: v, Label: fmt.Sprint(v)})
	}
	return ts
}

// decades places ticks at the powers of ten of a logarithmic axis.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	var ts []plot.Tick
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		v := math.Pow(10, e)
		if v < low*0.999 || v > high*1.001 {
			continue
		}
		label := fmt.Sprint(v)
		switch {
		case v >= 1e6:
			label = fmt.Sprintf("%gM", v/1e6)
		case v >= 1e3:
			label = fmt.Sprintf("%gK", v/1e3)
		}
		ts = append(ts, plot.Tick{Value: v, Label: label})
	}
	return ts
}

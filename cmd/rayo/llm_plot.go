package main

import (
	"fmt"
	"html"
	"strings"

	"github.com/rayo-go/rayo/internal/genfile"
)

// The sizes of a diagram, in pixels.
const (
	plotRow, plotLabel, plotBar, plotNumber = 26, 190, 480, 110
)

// writePlot writes a diagram of measurements as SVG: a bar for each, with a line for the standard deviation.
func writePlot(path, title string, rows []llmRow) error {
	top := 0.0
	for _, r := range rows {
		top = max(top, r.Mean+r.SD)
	}
	if top == 0 {
		top = 1
	}
	var b strings.Builder
	width, height := plotLabel+plotBar+plotNumber, plotRow*(len(rows)+2)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="8" y="20" font-weight="bold">%s: tokens a second</text>`+"\n", html.EscapeString(title))
	for i, r := range rows {
		y := plotRow * (i + 1)
		label := r.Test
		if r.Depth > 0 {
			label += fmt.Sprintf(" behind %d", r.Depth)
		}
		if r.Batch > 1 {
			label += fmt.Sprintf(", %d texts", r.Batch)
		}
		length := func(v float64) float64 { return plotBar * v / top }
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, plotLabel-8, y+20, label)
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="#4878a8"/>`, plotLabel, y+6, length(r.Mean), plotRow-8)
		fmt.Fprintf(&b, `<path d="M%.1f %dH%.1f" stroke="black"/>`, plotLabel+length(max(0, r.Mean-r.SD)), y+plotRow/2+2, plotLabel+length(r.Mean+r.SD))
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%.1f ± %.1f</text>`+"\n", plotLabel+length(r.Mean+r.SD)+8, y+20, r.Mean, r.SD)
	}
	b.WriteString("</svg>\n")
	return genfile.Write(path, []byte(b.String()))
}

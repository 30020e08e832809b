package main

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/examples/internal/exampletest"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	before, after, ok := strings.Cut(b.String(), "40 generations later:\n")
	if !ok || strings.Count(before, "#") != 5 {
		t.Fatalf("got\n%s", &b)
	}
	// Every row moved ten columns to the right.
	rows := strings.Split(strings.TrimSpace(before), "\n")
	for i, r := range strings.Split(strings.TrimSpace(after), "\n") {
		if want := rows[i][len(rows[i])-10:] + rows[i][:len(rows[i])-10]; r != want {
			t.Errorf("row %d is %s, want %s", i, r, want)
		}
	}
}

func TestLife(t *testing.T) {
	dev := exampletest.Open(t)
	for _, s := range [][2]int{{3, 3}, {16, 16}, {17, 15}, {61, 43}} {
		w, h := s[0], s[1]
		cells := make([]uint32, w*h)
		for i := range cells {
			cells[i] = rand.Uint32N(2)
		}
		want := slices.Clone(cells)
		for range 5 {
			want = generation(want, w, h)
		}
		if err := play(context.Background(), dev, cells, w, h, 5); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(cells, want) {
			t.Errorf("%d×%d: wrong after 5 generations", w, h)
		}
	}
}

// generation is the rule in plain Go.
func generation(cells []uint32, w, h int) []uint32 {
	next := make([]uint32, len(cells))
	for y := range h {
		for x := range w {
			n := 0
			for dy := -1; dy <= 1; dy++ {
				for dx := -1; dx <= 1; dx++ {
					if dx != 0 || dy != 0 {
						n += int(cells[(y+dy+h)%h*w+(x+dx+w)%w])
					}
				}
			}
			if n == 3 || n == 2 && cells[y*w+x] == 1 {
				next[y*w+x] = 1
			}
		}
	}
	return next
}

package tokenizer

import (
	"strings"
	"sync"
	"unicode"
)

// categoryNames lists the general categories of Unicode. A rune's category is an
// index into it, and a set of categories a mask of 32 bits.
var categoryNames = strings.Fields("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cs")

// categoryTable holds the category of every rune, in pages of 256.
type categoryTable struct {
	page  [(unicode.MaxRune + 1) >> 8]uint16
	pages [][256]uint8
}

// categories returns the table. It builds the table on first use from the tables of package
// unicode, in about a millisecond.
var categories = sync.OnceValue(func() *categoryTable {
	t := &categoryTable{pages: make([][256]uint8, 1)}
	for i, name := range categoryNames[1:] {
		table := unicode.Categories[name]
		for _, r := range table.R16 {
			t.fill(rune(r.Lo), rune(r.Hi), rune(r.Stride), uint8(i+1))
		}
		for _, r := range table.R32 {
			t.fill(rune(r.Lo), rune(r.Hi), rune(r.Stride), uint8(i+1))
		}
	}
	return t
})

func (t *categoryTable) fill(lo, hi, stride rune, category uint8) {
	for r := lo; r <= hi; r += stride {
		p := &t.page[r>>8]
		if *p == 0 {
			*p = uint16(len(t.pages))
			t.pages = append(t.pages, [256]uint8{})
		}
		t.pages[*p][r&255] = category
	}
}

// of returns the category of a valid rune.
func (t *categoryTable) of(r rune) uint8 { return t.pages[t.page[r>>8]][r&255] }

// categoryMask returns the mask of a category or of a whole class: "Lu" or "L".
func categoryMask(name string) (mask uint32) {
	for i, n := range categoryNames {
		if strings.HasPrefix(n, name) {
			mask |= 1 << i
		}
	}
	return mask
}

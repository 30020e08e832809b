package simd

import (
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Sight says which keys the queries of an [Attention] see, and whether keys are in pages. The zero
// Sight hides only the keys that Causal hides.
type Sight struct {
	// Softcap, if not 0, bounds scores before the mask: x becomes
	// Softcap·tanh(x/Softcap).
	Softcap float32
	// Window, if not 0, hides keys at a distance of Window or more from the query.
	Window int
	// FromStart puts query i at the position of key i; otherwise it is at the position of key i +
	// Keys - Queries.
	FromStart bool

	// Add, if not nil, is added to the scores, and hides keys where it is -Inf. Show,
	// if not nil, hides keys where it is 0. The index of the element for a head, query
	// and key is head·MaskHead + query·MaskRow + key·MaskKey.
	Add                        []float32
	Show                       []uint32
	MaskHead, MaskRow, MaskKey int

	// Page, if not 0, is the number of keys in a page, and Table has the page of each run of Page
	// keys. Consecutive pages are KPage and VPage elements apart; KHead, KRow, VHead and VRow are
	// strides within a page. Keys on a page with a number outside [0, Pages) are hidden.
	Table        []int32
	Page, Pages  int
	KPage, VPage int
}

// checkPages panics if pages are not within their operands, or the table is too short.
func (a *Attention) checkPages(keys int) {
	if len(a.Table) < ceilDiv(keys, a.Page) {
		panic(fmt.Sprintf("simd: Attention of %d keys in pages of %d: a Table of %d pages is too short", keys, a.Page, len(a.Table)))
	}
	if a.Pages == 0 {
		return
	}
	fits("K", max(0, a.elements(a.K, a.KHalves)-(a.Pages-1)*a.KPage), a.KVHeads, a.KHead, a.Page, a.KRow, a.Dim, 1)
	fits("V", max(0, a.elements(a.V, a.VHalves)-(a.Pages-1)*a.VPage), a.KVHeads, a.VHead, a.Page, a.VRow, a.ValueDim, 1)
}

// places returns the indices in K and V of the rows from key j on, or false if their page
// number is outside [0, Pages).
func (t *attentionTask) places(head, j int) (k, v int, is bool) {
	if t.Page == 0 {
		return head*t.KHead + j*t.KRow, head*t.VHead + j*t.VRow, true
	}
	page, row := int(t.Table[j/t.Page]), j%t.Page
	if page < 0 || page >= t.Pages {
		return 0, 0, false
	}
	return page*t.KPage + head*t.KHead + row*t.KRow, page*t.VPage + head*t.VHead + row*t.VRow, true
}

// sight returns the range of keys, first to end-1, that the query of row r sees if no mask
// hides them.
func (t *attentionTask) sight(r int) (first, end int) {
	end = t.Keys
	if !t.Causal && t.Window == 0 {
		return 0, end
	}
	at := r % t.Queries
	if !t.FromStart {
		at += t.Keys - t.Queries
	}
	if t.Causal {
		end = max(0, min(end, at+1))
	}
	if t.Window > 0 {
		first = max(0, at-t.Window+1)
		end = min(end, max(0, at+min(t.Window, math.MaxInt-max(at, 0))))
	}
	return min(first, end), end
}

// stretch returns the range of the count keys from key j on that the query of row r sees, relative to j.
func (t *attentionTask) stretch(r, j, count int) (first, end int) {
	first, end = t.sight(r)
	end = max(0, min(count, end-j))
	return max(0, min(first-j, end)), end
}

// cap applies Softcap to scores that were divided by Softcap before.
func (t *attentionTask) cap(scores []float32) {
	if n := len(scores); n > 0 {
		kernelTanh(&scores[0], &scores[0], nil, nil, n, nil)
		rowKernel().affine(&scores[0], &scores[0], nil, nil, n, 0, t.Softcap, 0)
	}
}

// mask returns the index of the first element of the mask for the query of row r of a head of keys.
func (t *attentionTask) mask(head, r int) int {
	return (head*(t.rows/t.Queries)+r/t.Queries)*t.MaskHead + r%t.Queries*t.MaskRow
}

// shows reports whether no mask hides key j from the query of row r.
func (t *attentionTask) shows(head, r, j int) bool {
	at := t.mask(head, r) + j*t.MaskKey
	return (t.Show == nil || t.Show[at] != 0) && (t.Add == nil || !math.IsInf(float64(t.Add[at]), -1))
}

// masked applies the masks to the scores from first to end-1, which belong to keys from key j
// on. It returns the number of keys that the masks show.
func (t *attentionTask) masked(row []float32, head, r, j, first, end int) int {
	shown := end - first
	if t.Add == nil && t.Show == nil {
		return shown
	}
	at := t.mask(head, r)
	for i := first; i < end; i++ {
		switch m := at + (j+i)*t.MaskKey; {
		case t.Show != nil && t.Show[m] == 0, t.Add != nil && math.IsInf(float64(t.Add[m]), -1):
			row[i] = float32(math.Inf(-1))
			shown--
		case t.Add != nil:
			row[i] += t.Add[m]
		}
	}
	return shown
}

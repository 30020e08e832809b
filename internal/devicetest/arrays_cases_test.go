package devicetest

import (
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// single returns one element as an operand.
func single(b *batch.Batch, v float32) batch.Value { return b.Upload([]float32{v}) }

// Methods that make arrays, from an operand or without operands.
var creations = []composition{
	{name: "eye", record: func(b *batch.Batch, _ []batch.Value) batch.Value { return b.Eye(5, 7, 2) },
		want: func([]nd) nd { return made(op.Shape{5, 7}, func(p []int) float64 { return truth(p[1]-p[0] == 2) }) }},
	{name: "eye beyond", record: func(b *batch.Batch, _ []batch.Value) batch.Value { return b.Eye(3, 4, math.MinInt) },
		want: func([]nd) nd { return made(op.Shape{3, 4}, func([]int) float64 { return 0 }) }},
	{name: "eye of nothing", record: func(b *batch.Batch, _ []batch.Value) batch.Value { return b.Eye(0, 4, 0) },
		want: func([]nd) nd { return made(op.Shape{0, 4}, func([]int) float64 { return 0 }) }},
	{name: "tri", record: func(b *batch.Batch, _ []batch.Value) batch.Value { return b.Tri(6, 4, -1) },
		want: func([]nd) nd { return made(op.Shape{6, 4}, func(p []int) float64 { return truth(p[1]-p[0] <= -1) }) }},
	{name: "tril", shapes: []op.Shape{{2, 5, 6}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Tril(x[0], 1) },
		want: func(x []nd) nd {
			return made(x[0].s, func(p []int) float64 { return x[0].at(p...) * truth(p[2]-p[1] <= 1) })
		}},
	{name: "triu", shapes: []op.Shape{{5, 6}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Triu(x[0], -2) },
		want: func(x []nd) nd {
			return made(x[0].s, func(p []int) float64 { return x[0].at(p...) * truth(p[1]-p[0] >= -2) })
		}},
	{name: "diag_embed", shapes: []op.Shape{{2, 4}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.DiagEmbed(x[0], 2) },
		want: func(x []nd) nd {
			return made(op.Shape{2, 6, 6}, func(p []int) float64 {
				if p[2]-p[1] != 2 {
					return 0
				}
				return x[0].at(p[0], p[1])
			})
		}},
	{name: "diag_embed below", shapes: []op.Shape{{3}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.DiagEmbed(x[0], -1) },
		want: func(x []nd) nd {
			return made(op.Shape{4, 4}, func(p []int) float64 {
				if p[0]-p[1] != 1 {
					return 0
				}
				return x[0].at(p[1])
			})
		}},
	{name: "linspace", record: func(b *batch.Batch, _ []batch.Value) batch.Value {
		return b.Linspace(single(b, -2), single(b, 0.7), 11)
	}, loose: 1e-6, want: func([]nd) nd {
		return made(op.Shape{11}, func(p []int) float64 { return -2 + float64(p[0])*2.7/10 })
	}},
	{name: "linspace end", record: func(b *batch.Batch, _ []batch.Value) batch.Value {
		return b.Slice(b.Linspace(single(b, 0.1), single(b, 0.3), 50), 0, -1, op.End, 1)
	}, want: func([]nd) nd { return nd{op.Shape{1}, []float64{float64(float32(0.3))}} }},
	{name: "linspace of one", record: func(b *batch.Batch, _ []batch.Value) batch.Value {
		return b.Linspace(single(b, 4), single(b, 9), 1)
	}, want: func([]nd) nd { return nd{op.Shape{1}, []float64{4}} }},
	{name: "arange", record: func(b *batch.Batch, _ []batch.Value) batch.Value {
		return b.Arange(single(b, 3), single(b, -2), 5)
	}, want: func([]nd) nd { return made(op.Shape{5}, func(p []int) float64 { return 3 - 2*float64(p[0]) }) }},
	{name: "one_hot", record: func(b *batch.Batch, _ []batch.Value) batch.Value {
		return b.OneHot(batch.Upload(b, []int32{2, 0, -1, 9}, 2, 2), 3, 1)
	}, want: func([]nd) nd {
		ids := []int{2, 0, -1, 9}
		return made(op.Shape{2, 3, 2}, func(p []int) float64 { return truth(ids[2*p[0]+p[2]] == p[1]) })
	}},
	{name: "meshgrid", shapes: []op.Shape{{3}, {4}}, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		grid := b.Meshgrid(x...)
		return b.Stack(0, grid...)
	}, want: func(x []nd) nd {
		return made(op.Shape{2, 3, 4}, func(p []int) float64 { return x[p[0]].at(p[1+p[0]]) })
	}},
	{name: "a large constant", record: func(b *batch.Batch, _ []batch.Value) batch.Value { return b.Const(2.5, 1200, 1000) },
		want: func([]nd) nd { return made(op.Shape{1200, 1000}, func([]int) float64 { return 2.5 }) }},
	{name: "where over a mask", shapes: []op.Shape{{4, 1, 3}, {2, 3}}, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		mask := b.Greater(x[0], single(b, 0))
		return b.Where(mask, x[1], b.Const(-1))
	}, want: func(x []nd) nd {
		return made(op.Shape{4, 2, 3}, func(p []int) float64 {
			if x[0].at(p[0], 0, p[2]) > 0 {
				return x[1].at(p[1], p[2])
			}
			return -1
		})
	}},
}

// padded returns the index, on an axis of n elements, of the element that a padding mode copies to place i.
func padded(i, n int, mode batch.PadMode) int {
	switch {
	case i >= 0 && i < n:
		return i
	case mode == batch.PadEdge:
		return min(max(i, 0), n-1)
	case mode == batch.PadWrap:
		return (i + n) % n
	case i < 0:
		return -i
	}
	return 2*(n-1) - i
}

func padding(name string, mode batch.PadMode, before, after int) composition {
	return composition{name: name, shapes: []op.Shape{{2, 5, 3}},
		record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.PadMode(x[0], 1, before, after, mode) },
		want: func(x []nd) nd {
			return made(op.Shape{2, 5 + before + after, 3}, func(p []int) float64 { return x[0].at(p[0], padded(p[1]-before, 5, mode), p[2]) })
		}}
}

// pixels is a method that moves elements between channels and blocks of pixels. in maps an element of the
// result to the channel, row and column of its source.
func pixels(name string, from, to op.Shape, record func(b *batch.Batch, x batch.Value) batch.Value, in func(c, i, j int) [3]int) composition {
	return composition{name: name, shapes: []op.Shape{from},
		record: func(b *batch.Batch, x []batch.Value) batch.Value { return record(b, x[0]) },
		want: func(x []nd) nd {
			return made(to, func(p []int) float64 {
				at := in(p[1], p[2], p[3])
				return x[0].at(p[0], at[0], at[1], at[2])
			})
		}}
}

var unfolded = op.UnfoldOpts{Stride: []int{2, 1}, Dilation: []int{1, 2}, Pad: []int{1, 2}}

// windowPlace returns the row and column of the pixel, in an image of 5 by 6 pixels, that is element k of
// window n of unfold, and whether the image has this pixel.
func windowPlace(k, n int) (i, j int, in bool) {
	i, j = n/6*2+k/3-1, n%6+k%3*2-2
	return i, j, i >= 0 && i < 5 && j >= 0 && j < 6
}

// Elements in another order.
var arrangements = []composition{
	{name: "move_axis", shapes: []op.Shape{{2, 3, 4, 5}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.MoveAxis(x[0], 1, -1) },
		want: func(x []nd) nd {
			return made(op.Shape{2, 4, 5, 3}, func(p []int) float64 { return x[0].at(p[0], p[3], p[1], p[2]) })
		}},
	{name: "chunk", shapes: []op.Shape{{7, 2}}, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		parts := b.Chunk(x[0], 0, 3)
		return b.Concat(0, parts[2], parts[0], parts[1])
	}, want: func(x []nd) nd {
		return made(op.Shape{7, 2}, func(p []int) float64 { return x[0].at((p[0]+6)%7, p[1]) })
	}},
	{name: "repeat", shapes: []op.Shape{{3, 4, 2}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Repeat(x[0], -2, 3) },
		want: func(x []nd) nd {
			return made(op.Shape{3, 12, 2}, func(p []int) float64 { return x[0].at(p[0], p[1]/3, p[2]) })
		}},
	{name: "tile", shapes: []op.Shape{{3, 4}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Tile(x[0], 2, 1, 3) },
		want: func(x []nd) nd {
			return made(op.Shape{2, 3, 12}, func(p []int) float64 { return x[0].at(p[1], p[2]%4) })
		}},
	{name: "tile of eight axes", shapes: []op.Shape{{1, 2, 1, 2, 1, 2, 1, 2}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Tile(x[0], 2, 3) },
		want: func(x []nd) nd {
			return made(op.Shape{1, 2, 1, 2, 1, 2, 2, 6}, func(p []int) float64 { return x[0].at(0, p[1], 0, p[3], 0, p[5], 0, p[7]%2) })
		}},
	{name: "tile of nothing", shapes: []op.Shape{{3, 4}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Tile(x[0], 0) },
		want: func([]nd) nd { return nd{s: op.Shape{3, 0}} }},
	{name: "roll", shapes: []op.Shape{{3, 5}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Roll(b.Roll(x[0], 1, 7), 0, -1) },
		want: func(x []nd) nd { return made(x[0].s, func(p []int) float64 { return x[0].at((p[0]+1)%3, (p[1]+3)%5) }) }},
	{name: "rot90", shapes: []op.Shape{{3, 4}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Rot90(x[0], 1, 0, 1) },
		want: func(x []nd) nd { return made(op.Shape{4, 3}, func(p []int) float64 { return x[0].at(p[1], 3-p[0]) }) }},
	{name: "rot90 back", shapes: []op.Shape{{3, 4}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Rot90(b.Rot90(x[0], -1, 0, 1), 2, 1, 0) },
		want: func(x []nd) nd { return made(op.Shape{4, 3}, func(p []int) float64 { return x[0].at(p[1], 3-p[0]) }) }},
	{name: "diff", shapes: []op.Shape{{6, 3}}, loose: 1e-6, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Diff(x[0], 0, 2) },
		want: func(x []nd) nd {
			return made(op.Shape{4, 3}, func(p []int) float64 { return x[0].at(p[0]+2, p[1]) - 2*x[0].at(p[0]+1, p[1]) + x[0].at(p[0], p[1]) })
		}},
	{name: "diff of too few", shapes: []op.Shape{{2, 3}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Diff(x[0], 0, 1<<30) },
		want: func([]nd) nd { return nd{s: op.Shape{0, 3}} }},
	padding("pad reflect", batch.PadReflect, 4, 2), padding("pad edge", batch.PadEdge, 9, 1), padding("pad wrap", batch.PadWrap, 5, 3), padding("pad by nothing", batch.PadWrap, 0, 0),
	{name: "trace", shapes: []op.Shape{{4, 3, 6}}, loose: 1e-6, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Trace(x[0], 1, 0, 2) },
		want: func(x []nd) nd {
			return made(op.Shape{3}, func(p []int) float64 {
				return summed(4, func(i int) float64 { return x[0].at(i, p[0], i+1) })
			})
		}},
	{name: "moving average", shapes: []op.Shape{{2, 20}}, loose: 1e-6, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		return b.Mean(b.SlidingWindow(x[0], -1, 4, 2, 3), op.Axes(-1))
	}, want: func(x []nd) nd {
		return made(op.Shape{2, 6}, func(p []int) float64 {
			return summed(4, func(i int) float64 { return x[0].at(p[0], 2*p[1]+3*i) }) / 4
		})
	}},
	pixels("pixel_shuffle", op.Shape{2, 12, 2, 3}, op.Shape{2, 3, 4, 6}, func(b *batch.Batch, x batch.Value) batch.Value { return b.PixelShuffle(x, 2) },
		func(c, i, j int) [3]int { return [3]int{c*4 + i%2*2 + j%2, i / 2, j / 2} }),
	pixels("depth_to_space", op.Shape{2, 12, 2, 3}, op.Shape{2, 3, 4, 6}, func(b *batch.Batch, x batch.Value) batch.Value { return b.DepthToSpace(x, 2) },
		func(c, i, j int) [3]int { return [3]int{(i%2*2+j%2)*3 + c, i / 2, j / 2} }),
	pixels("pixel_unshuffle", op.Shape{2, 3, 4, 6}, op.Shape{2, 12, 2, 3}, func(b *batch.Batch, x batch.Value) batch.Value { return b.PixelUnshuffle(x, 2) },
		func(c, i, j int) [3]int { return [3]int{c / 4, 2*i + c%4/2, 2*j + c%2} }),
	pixels("space_to_depth", op.Shape{2, 3, 4, 6}, op.Shape{2, 12, 2, 3}, func(b *batch.Batch, x batch.Value) batch.Value { return b.SpaceToDepth(x, 2) },
		func(c, i, j int) [3]int { return [3]int{c % 3, 2*i + c/6, 2*j + c/3%2} }),
	{name: "unfold", shapes: []op.Shape{{2, 3, 5, 6}}, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Unfold(x[0], []int{2, 3}, unfolded) },
		want: func(x []nd) nd {
			return made(op.Shape{2, 18, 18}, func(p []int) float64 {
				i, j, in := windowPlace(p[1]%6, p[2])
				if !in {
					return 0
				}
				return x[0].at(p[0], p[1]/6, i, j)
			})
		}},
	{name: "fold", shapes: []op.Shape{{2, 18, 18}}, loose: 1e-5, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		return b.Fold(x[0], []int{5, 6}, []int{2, 3}, unfolded)
	},
		want: func(x []nd) nd {
			y := made(op.Shape{2, 3, 5, 6}, func([]int) float64 { return 0 })
			for at, v := range x[0].data {
				n, r, q := at%18, at/18%18, at/(18*18)
				if i, j, in := windowPlace(r%6, n); in {
					y.data[((q*3+r/6)*5+i)*6+j] += v
				}
			}
			return y
		}},
	{name: "unfold along three axes", shapes: []op.Shape{{2, 3, 4, 5}}, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		return b.Unfold(x[0], []int{2, 1, 3}, op.UnfoldOpts{Stride: []int{1, 2, 2}})
	}, want: func(x []nd) nd { // 2 by 2 by 2 windows
		return made(op.Shape{2 * 6, 8}, func(p []int) float64 {
			k, n := p[0]%6, p[1]
			return x[0].at(p[0]/6, n/4+k/3, n/2%2*2, n%2*2+k%3)
		})
	}},
	{name: "fold along one axis", shapes: []op.Shape{{2, 2, 6, 3}}, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		return b.Fold(x[0], []int{12}, []int{2}, op.UnfoldOpts{Stride: []int{5}, Pad: []int{1}})
	}, want: func(x []nd) nd {
		return made(op.Shape{2, 2, 3, 12}, func(p []int) float64 {
			if at := p[3] + 1; at%5 < 2 {
				return x[0].at(p[0], p[1], 2*p[2]+at%5, at/5)
			}
			return 0
		})
	}},
	{name: "fold of distant windows", shapes: []op.Shape{{4, 1}}, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		return b.Fold(x[0], []int{9}, []int{2}, op.UnfoldOpts{Stride: []int{1 << 28}, Dilation: []int{3}})
	}, want: func(x []nd) nd {
		return made(op.Shape{2, 9}, func(p []int) float64 {
			if p[1]%3 == 0 && p[1] < 6 {
				return x[0].at(2*p[0]+p[1]/3, 0)
			}
			return 0
		})
	}},
	{name: "fold of no channels", shapes: []op.Shape{{0, 1}}, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		return b.Fold(x[0], []int{1 << 20}, []int{1 << 20})
	}, want: func([]nd) nd { return made(op.Shape{0, 1 << 20}, func([]int) float64 { return 0 }) }},
	{name: "convolution by unfold", shapes: []op.Shape{{3, 6, 7}, {4, 27}}, loose: 1e-5, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		return b.MatMul(x[1], b.Unfold(x[0], []int{3, 3}), batch.None)
	}, want: func(x []nd) nd {
		return made(op.Shape{4, 20}, func(p []int) float64 {
			return summed(27, func(k int) float64 { return x[1].at(p[0], k) * x[0].at(k/9, p[1]/5+k/3%3, p[1]%5+k%3) })
		})
	}},
}

package wgsl

import (
	"sync"

	"github.com/rayo-go/rayo/internal/ascii"
	"github.com/rayo-go/rayo/internal/fmt"
)

// words has the sets of words that the checks of users' texts need. They are made for the first text, so that pages
// without such texts do not link them.
var words struct {
	sync.Once
	keywords, predeclared map[string]bool
}

// isKeyword reports whether the word cannot be a name.
func isKeyword(word string) bool {
	words.Do(makeWords)
	return words.keywords[word]
}

// isPredeclared reports whether the language declares the name: a type, a word of template lists, or a function.
func isPredeclared(name string) bool {
	words.Do(makeWords)
	return words.predeclared[name]
}

func makeWords() {
	words.keywords = wordSet(`alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if let loop
	override requires return struct switch true var while`)
	m := wordSet(`true false
	bool f16 f32 f64 i32 i64 u32 u64 array atomic ptr vec2 vec3 vec4 sampler sampler_comparison binding_array
	texture_1d texture_2d texture_2d_array texture_3d texture_cube texture_cube_array texture_multisampled_2d texture_depth_multisampled_2d
	texture_external texture_storage_1d texture_storage_2d texture_storage_2d_array texture_storage_3d texture_depth_2d texture_depth_2d_array
	texture_depth_cube texture_depth_cube_array
	read write read_write function private workgroup uniform storage

	bitcast all any select arrayLength abs acos acosh asin asinh atan atanh atan2 ceil clamp cos cosh countLeadingZeros countOneBits
	countTrailingZeros cross degrees determinant distance dot dot4U8Packed dot4I8Packed exp exp2 extractBits faceForward firstLeadingBit
	firstTrailingBit floor fma fract frexp insertBits inverse inverseSqrt ldexp length log log2 max min mix modf normalize outerProduct pow
	quantizeToF16 radians reflect refract reverseBits round saturate sign sin sinh smoothstep sqrt step tan tanh transpose trunc
	dpdx dpdxCoarse dpdxFine dpdy dpdyCoarse dpdyFine fwidth fwidthCoarse fwidthFine
	textureDimensions textureGather textureGatherCompare textureLoad textureNumLayers textureNumLevels textureNumSamples textureSample
	textureSampleBias textureSampleCompare textureSampleCompareLevel textureSampleGrad textureSampleLevel textureSampleBaseClampToEdge textureStore
	atomicLoad atomicStore atomicAdd atomicSub atomicMax atomicMin atomicAnd atomicOr atomicXor atomicExchange atomicCompareExchangeWeak
	pack4x8snorm pack4x8unorm pack4xI8 pack4xU8 pack4xI8Clamp pack4xU8Clamp pack2x16snorm pack2x16unorm pack2x16float
	unpack4x8snorm unpack4x8unorm unpack4xI8 unpack4xU8 unpack2x16snorm unpack2x16unorm unpack2x16float
	storageBarrier textureBarrier workgroupBarrier subgroupBarrier workgroupUniformLoad
	subgroupAdd subgroupExclusiveAdd subgroupInclusiveAdd subgroupAll subgroupAnd subgroupAny subgroupBallot subgroupBroadcast
	subgroupBroadcastFirst subgroupElect subgroupMax subgroupMin subgroupMul subgroupExclusiveMul subgroupInclusiveMul subgroupOr
	subgroupShuffle subgroupShuffleDown subgroupShuffleUp subgroupShuffleXor subgroupXor quadBroadcast quadSwapDiagonal quadSwapX quadSwapY`)
	for n := 2; n <= 4; n++ {
		for _, s := range "fiuh" {
			m[fmt.Sprintf("vec%d%c", n, s)] = true
		}
		for k := 2; k <= 4; k++ {
			for _, s := range []string{"", "f", "h"} {
				m[fmt.Sprintf("mat%dx%d%s", n, k, s)] = true
			}
		}
	}
	words.predeclared = m
}

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range ascii.Fields(words) {
		m[w] = true
	}
	return m
}

// templates distinguishes template lists from comparisons by the rules of the language: a < after a
// name begins a list if a > closes it before any token that cannot occur in a list. It returns a
// map from the token of each < to the token of its >, and the set of closing tokens.
func (m *module) templates() (lists map[int]int, closes map[int]bool) {
	lists, closes = map[int]int{}, map[int]bool{}
	type pending struct{ at, depth int }
	var open []pending
	depth := 0
	drop := func() {
		for len(open) > 0 && open[len(open)-1].depth >= depth {
			open = open[:len(open)-1]
		}
	}
	joined := func(i int, text string) bool { return m.toks[i+1].is(text) && m.toks[i+1].at == m.toks[i].end() }
	for i := 0; i < len(m.toks)-1; i++ {
		t := &m.toks[i]
		switch {
		case t.is("<"):
			if joined(i, "<") || joined(i, "=") {
				if i++; m.toks[i+1].is("=") {
					drop() // the = of an assignment
				}
			} else if i > 0 && m.toks[i-1].kind == wordToken {
				open = append(open, pending{i, depth})
			}
		case t.is(">"):
			if n := len(open) - 1; n >= 0 && open[n].depth == depth {
				lists[open[n].at], closes[i] = i, true
				open = open[:n]
			} else if joined(i, "=") {
				i++
			}
		case t.is("("), t.is("["):
			depth++
		case t.is(")"), t.is("]"):
			drop()
			depth = max(0, depth-1)
		case (t.is("=") || t.is("!")) && joined(i, "="):
			i++
		case t.is("="), t.is(";"), t.is("{"), t.is(":"):
			depth = 0
			open = open[:0]
		case (t.is("&") || t.is("|")) && joined(i, t.text):
			drop()
			i++
		}
	}
	return lists, closes
}

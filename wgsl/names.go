package wgsl

import (
	"strings"

	"github.com/rayo-go/rayo/internal/ascii"
)

// The names that the printer uses for things that have no name in the program. A name of the
// program that equals one of them gets an underscore.
const (
	wordParams       = "params"
	wordLocal        = "local"
	wordGroup        = "group"
	wordGroups       = "groups"
	wordLane         = "lane"
	wordSubgroupSize = "subgroup_size"
	wordSubgroupLane = "subgroup_lane"
)

// shortNames are the counters of loops, by nesting depth, and the parameters of functions. Deeper
// counters have the names of other values.
var shortNames = [...]string{"i", "j", "k", "l", "m", "x", "y"}

const (
	loopNames = 5
	nameX     = 5 // index in shortNames
	nameY     = 6
)

// taken has the words that cannot be names: the words of the language, the built-in functions that
// the printer calls, and the printer's own names.
var taken = func() map[string]bool {
	m := make(map[string]bool)
	for _, w := range ascii.Fields(`
		alias break case const const_assert continue continuing default diagnostic discard else enable false fn for if
		let loop override requires return struct switch true var while

		NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become binding_array
		cast catch class co_await co_return co_yield coherent column_major common compile compile_fragment concept
		const_cast consteval constexpr constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast
		enum explicit export extends extern external fallthrough filter final finally friend from fxgroup get goto
		groupshared highp impl implements import inline instanceof interface layout lowp macro macro_rules match mediump
		meta mod module move mut mutable namespace new nil noexcept noinline nointerpolation noperspective null nullptr of
		operator package packoffset partial pass patch pixelfragment precise precision premerge priv protected pub
		public readonly ref regardless register reinterpret_cast require resource restrict self set shared sizeof smooth
		snorm static static_assert static_cast std subroutine super target template this thread_local throw trait try
		type typedef typeid typename typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl
		where with writeonly yield

		bool i32 u32 f32 f16 i64 u64 f64 array atomic ptr vec2 vec3 vec4 vec2f vec2i vec2u vec2h vec3f vec3u vec4f vec4i
		vec4u vec4h function private workgroup storage uniform read write read_write sampler

		abs min max clamp fma sqrt floor ceil trunc round inverseSqrt dot select bitcast countOneBits countLeadingZeros
		countTrailingZeros reverseBits pack2x16float unpack2x16float dot4I8Packed dot4U8Packed pack4xI8 unpack4xI8
		unpack4xU8 arrayLength workgroupBarrier storageBarrier workgroupUniformLoad atomicLoad atomicStore atomicAdd
		atomicSub atomicMin atomicMax atomicAnd atomicOr atomicXor atomicExchange atomicCompareExchangeWeak subgroupAdd
		subgroupMin subgroupMax subgroupAnd subgroupOr subgroupAll subgroupAny subgroupExclusiveAdd subgroupShuffle
		subgroupShuffleXor subgroupBroadcastFirst

		Params x y i j k l m`) {
		m[w] = true
	}
	// Buffers and variables are often called x and y. These names are allowed, because only added
	// functions use them.
	delete(m, "x")
	delete(m, "y")
	for _, w := range []string{wordParams, wordLocal, wordGroup, wordGroups, wordLane, wordSubgroupSize, wordSubgroupLane} {
		m[w] = true
	}
	for i := range functions {
		for _, s := range widthSuffix {
			m[functions[i].name+s] = true
		}
	}
	for _, f := range composedNames() {
		for _, s := range widthSuffix {
			m[f+s] = true
		}
	}
	return m
}()

// member is identify for members of structures, which may have the names of loop counters.
func (w *printer) member(s string) string {
	if len(s) == 1 && plain(s) && w.used[s] == 0 {
		w.used[s] = 1
		return s
	}
	return w.identify(s, "param")
}

// identify returns an unused valid name similar to s, and marks it as used. other replaces an empty
// name.
func (w *printer) identify(s, other string) string {
	if !plain(s) || taken[s] {
		s = spell(s, other)
		for taken[s] {
			s += "_"
		}
	}
	n := w.used[s]
	if n == 0 {
		w.used[s] = 1
		return s
	}
	for first := s; n > 0; n = w.used[s] {
		w.used[first]++
		s = w.suffixed(first, w.used[first])
	}
	w.used[s] = 1
	return s
}

// suffixed returns s_n. It caches some of these strings, because a printer needs the same names
// often.
func (w *printer) suffixed(s string, n uint32) string {
	k := suffix{s, n}
	name, ok := w.names[k]
	if !ok {
		name = string(appendUint(append([]byte(s), '_'), n))
		if len(w.names) < 1000 {
			w.names[k] = name
		}
	}
	return name
}

type suffix struct {
	s string
	n uint32
}

// plain reports whether s is an identifier that differs from the printer's names: v followed by a
// number.
func plain(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' || s[0] == '_' {
		return false
	}
	digits := s[0] == 'v' && len(s) > 1
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') {
			return false
		}
		digits = digits && (i == 0 || c >= '0' && c <= '9')
	}
	return !digits && !strings.HasPrefix(s, "turns") && !strings.HasPrefix(s, "sizes")
}

// spell returns an identifier similar to s.
func spell(s, other string) string {
	var b []byte
	for i := 0; i < len(s) && i < 64; i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_') {
			c = '_'
		}
		b = append(b, c)
	}
	s = ascii.Trim(string(b), "_")
	switch {
	case s == "":
		return other
	case plain(s):
		return s
	}
	return other + "_" + s
}

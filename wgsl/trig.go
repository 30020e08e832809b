package wgsl

import (
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// The expansions of Sin and Cos hold for angles up to [ir.TrigLimit]. Larger angles are first
// reduced to a quarter turn with as many bits of 2/pi as necessary.

func nearName(c ir.Code) string   { return c.String() + "_near_f" }
func turnedName(c ir.Code) string { return c.String() + "_turned_f" }

// trigText is the function for $C. $N is the function for angles that are not large, and $T is the
// other of the two functions, which differs by a quarter turn. $S and $Q are the results for even
// and odd quarter turns, and $M is the sign of the argument if it matters.
const trigText = `
fn $C(x: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let size = bits & 0x7fffffffu;
  if (size <= $Lu) || (size >= 0x7f800000u) {
    return $N(x);
  }
  let reduced = reduce_angle(bits);
  let angle = bitcast<f32>(reduced.y);
  let turn = reduced.x$A;
  let y = select($S(angle), $Q(angle), (turn & 1u) != 0u);
  return bitcast<f32>(bitcast<u32>(y) ^ ((turn & 2u) << 30u)$M);
}`

// substitute replaces words. The pairs have a word, of $ and a letter, and its replacement.
func substitute(text string, pairs ...string) string {
	before, rest, more := strings.Cut(text, "$")
	for more {
		for i := 0; i < len(pairs); i += 2 {
			if rest[0] == pairs[i][1] {
				before += pairs[i+1]
			}
		}
		text, rest, more = strings.Cut(rest[1:], "$")
		before += text
	}
	return before
}

// composeTrig is compose for Sin and Cos. It computes vectors component by component.
func composeTrig(c ir.Code, t *Target) *composition {
	other := ir.Sin + ir.Cos - c
	near, turned := compose(expansion(c, t), 1, nearName(c), t), compose(expansion(other, t), 1, turnedName(c), t)
	words := []string{"$C", composedName(c), "$N", nearName(c), "$L", fmt.Sprintf("0x%x", uint32(0x47800000))}
	if c == ir.Sin {
		words = append(words, "$S", nearName(c), "$Q", turnedName(c), "$A", "", "$M", " ^ (bits & 0x80000000u)")
	} else {
		words = append(words, "$S", turnedName(c), "$Q", nearName(c), "$A", " + 1u", "$M", "")
	}
	k := &composition{}
	k.text[0] = near.text[0] + "\n" + turned.text[0] + substitute(trigText, words...)
	k.fns[0] = near.fns[0]
	for f := range k.fns[0] {
		k.fns[0][f] |= turned.fns[0][f]
	}
	k.fns[0][fnReduceAngle] |= 1
	k.fns[0][fnMulHigh] |= 1
	for n, components := range []string{1: "xy", 2: "xyzw"} {
		if n == 0 {
			continue
		}
		var calls []string
		for _, x := range components {
			calls = append(calls, composedName(c)+"(x."+string(x)+")")
		}
		vec := typeNames[ir.F32][n]
		k.text[n] = "fn " + composedName(c) + widthSuffix[n] + "(x: " + vec + ") -> " + vec + " {\n  return " + vec + "(" + strings.Join(calls, ", ") + ");\n}"
	}
	return k
}

// reduceText returns the text of a function that reduces |x| > 2**16, given by its bits. The
// function returns the nearest quarter turn, modulo 4, and the bits of the remaining angle.
//
// The bits of 2/pi that give whole turns do not matter: only 96 bits, from a position that depends
// on the exponent, do. Their product with the mantissa gives the fraction of a turn. 64 of its
// bits are used. The products of its leading bits with the leading bits of pi are exact, so only
// the last sum is rounded unless the angle is small.
func reduceText() string {
	var b strings.Builder
	b.WriteString(`fn reduce_angle(bits: u32) -> vec2u {
  let m = (bits & 0x7fffffu) | 0x800000u;
  let skip = ((bits >> 23u) & 255u) - 120u;
  let shift = skip & 31u;
  var w = vec4u(`)
	row := func(at int) {
		for i := range 4 {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "0x%xu", ir.TwoOverPi[at+i])
		}
	}
	row(0)
	b.WriteString(");\n")
	for at := 1; at+4 <= len(ir.TwoOverPi); at++ {
		fmt.Fprintf(&b, "  if ((skip >> 5u) == %du) {\n    w = vec4u(", at)
		row(at)
		b.WriteString(");\n  }\n")
	}
	b.WriteString(`  let f0 = (w.x << shift) | ((w.y >> 1u) >> (31u - shift));
  let f1 = (w.y << shift) | ((w.z >> 1u) >> (31u - shift));
  let f2 = (w.z << shift) | ((w.w >> 1u) >> (31u - shift));
  let carried = mul_high(m, f2);
  var low = m * f1 + carried;
  var high = mul_high(m, f1) + select(0u, 1u, low < carried) + m * f0;
  let quarter = (high + 0x20000000u) >> 30u;
  high -= quarter << 30u;
  let negative = high & 0x80000000u;
  if negative != 0u {
    low = ~low + 1u;
    high = ~high + select(0u, 1u, low == 0u);
  }
  let head = f32(high >> 17u) * 0x1p-14f;
  let rest = f32(high & 0x1ffffu) * 0x1p-31f + f32(low >> 8u) * 0x1p-55f;
  let angle = head * 3.140625f + (head * 9.67653590e-4f + rest * 3.14159274f);
  return vec2u(quarter, bitcast<u32>(angle) | negative);
}`)
	return b.String()
}

package cpu

import "strings"

// combine replaces a product that only a sum uses, and the sum, by one call of a fused kernel. This
// saves a pass through the first-level cache and a rounding. The sum may be rounded to a 16-bit
// type, the product may not.
func (b *builder) combine(results []int) {
	uses := make([]int, len(b.vals))
	for _, v := range results {
		uses[v]++
	}
	made := make([]int, len(b.vals)) // instruction of each value plus 1
	for i := range b.insts {
		in := &b.insts[i]
		made[in.dst] = i + 1
		for _, a := range in.args {
			if a >= 0 {
				uses[a]++
			}
		}
		if in.par >= 0 {
			uses[in.par]++
		}
	}
	for i := range b.insts {
		sum := &b.insts[i]
		base, half := sum.name, ""
		if i := strings.LastIndexByte(base, '.'); strings.HasSuffix(base, "f16") {
			base, half = base[:i], base[i:]
		}
		if base != "add" && base != "code.add" || sum.when != block {
			continue
		}
		for k := range 2 {
			x, z := sum.args[k], sum.args[1-k]
			if made[x] == 0 || uses[x] != 1 {
				continue
			}
			product := b.insts[made[x]-1]
			if product.when != block {
				continue
			}
			name := ""
			args := [3]int{product.args[0], z, -1}
			switch product.name {
			case "mul", "code.mul":
				name, args = "fma", [3]int{product.args[0], product.args[1], z}
			case "scale", "code.mul.vs":
				name = "axpy"
			}
			name += half
			if fn := kernelNamed(name); fn != nil {
				sum.name, sum.fn, sum.args, sum.par = name, fn, args, product.par
				break
			}
		}
	}
}

package gguf

import (
	"context"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/gguf/block"
)

// Recipe chooses the type of each tensor of a model: most tensors get the base type, and more
// important ones get a type with more bits.
type Recipe struct {
	Name     string
	FileType uint32 // the value of general.file_type
	Base     block.Format
	output   block.Format // the type of the output matrix, or of the embeddings if they are also the output matrix
	more     func(role string, layer, layers, sharing int) block.Format
}

// Recipes returns all recipes. They have the names and choices with which models are
// usually published.
func Recipes() []Recipe {
	return slices.Clone(recipes)
}

var recipes = []Recipe{
	{"F32", 0, block.F32, block.F32, nil},
	{"F16", 1, block.F16, block.F16, nil},
	{"BF16", 32, block.BF16, block.BF16, nil},
	{"Q4_0", 2, block.Q4_0, block.Q6_K, nil},
	{"Q4_1", 3, block.Q4_1, block.Q6_K, nil},
	{"Q5_0", 8, block.Q5_0, block.Q6_K, nil},
	{"Q5_1", 9, block.Q5_1, block.Q6_K, nil},
	{"Q8_0", 7, block.Q8_0, block.Q8_0, nil},
	{"Q2_K", 10, block.Q2_K, block.Q6_K, moreQ2},
	{"Q3_K_S", 11, block.Q3_K, block.Q6_K, nil},
	{"Q3_K_M", 12, block.Q3_K, block.Q6_K, moreQ3},
	{"Q4_K_S", 14, block.Q4_K, block.Q6_K, nil},
	{"Q4_K_M", 15, block.Q4_K, block.Q6_K, medium(block.Q5_K)},
	{"Q5_K_S", 16, block.Q5_K, block.Q6_K, nil},
	{"Q5_K_M", 17, block.Q5_K, block.Q6_K, medium(block.Q6_K)},
	{"Q6_K", 18, block.Q6_K, block.Q6_K, nil},
	{"IQ1_S", 24, block.IQ1_S, block.Q5_K, nil},
	{"IQ1_M", 31, block.IQ1_M, block.Q5_K, nil},
	{"IQ2_XXS", 19, block.IQ2_XXS, block.Q5_K, nil},
	{"IQ2_XS", 20, block.IQ2_XS, block.Q5_K, nil},
	{"IQ2_S", 28, block.IQ2_S, block.Q5_K, nil},
	{"IQ3_XXS", 23, block.IQ3_XXS, block.Q5_K, nil},
	{"IQ3_S", 26, block.IQ3_S, block.Q6_K, nil},
	{"IQ4_NL", 25, block.IQ4_NL, block.Q6_K, nil},
	{"IQ4_XS", 30, block.IQ4_XS, block.Q6_K, nil},
	{"TQ1_0", 36, block.TQ1_0, block.Q6_K, nil},
	{"TQ2_0", 37, block.TQ2_0, block.Q6_K, nil},
	{"MXFP4", 38, block.MXFP4, block.Q8_0, nil},
	{"NVFP4", 39, block.NVFP4, block.Q8_0, nil},
	{"Q1_0", 40, block.Q1_0, block.Q6_K, nil},
	{"Q2_0", 41, block.Q2_0, block.Q6_K, nil},
}

// RecipeOf returns the recipe of a name, in upper or lower case. Q4_K is Q4_K_M,
// and so on.
func RecipeOf(name string) (Recipe, bool) {
	name = strings.ToUpper(name)
	for _, n := range []string{name, name + "_M"} {
		for _, r := range recipes {
			if r.Name == n {
				return r, true
			}
		}
	}
	return Recipe{}, false
}

// RecipeByFileType returns the recipe that general.file_type names.
func RecipeByFileType(n uint64) (Recipe, bool) {
	for _, r := range recipes {
		if uint64(r.FileType) == n {
			return r, true
		}
	}
	return Recipe{}, false
}

// medium is the choice of Q4_K_M and Q5_K_M: six bits for attn_v and ffn_down in the first
// and last eighth of the layers, and in every third layer between.
func medium(fused block.Format) func(string, int, int, int) block.Format {
	return func(role string, layer, layers, _ int) block.Format {
		eighth := layers / 8
		switch role {
		case "attn_qkv":
			return fused
		case "attn_v", "ffn_down", "ffn_down_exps":
			if layer < eighth || layer >= 7*layers/8 || (layer-eighth)%3 == 2 {
				return block.Q6_K
			}
		}
		return block.Invalid
	}
}

func moreQ3(role string, layer, layers, _ int) block.Format {
	switch role {
	case "attn_v":
		if layer < 2 {
			return block.Q5_K
		}
		return block.Q4_K
	case "ffn_down", "ffn_down_exps":
		if layer < layers/16 {
			return block.Q5_K
		}
		return block.Q4_K
	case "attn_output":
		return block.Q4_K
	}
	return block.Invalid
}

func moreQ2(role string, _, _, sharing int) block.Format {
	switch role {
	case "attn_v":
		if sharing >= 4 {
			return block.Q4_K
		}
		return block.Q3_K
	case "ffn_down", "ffn_down_exps", "attn_output":
		return block.Q3_K
	}
	return block.Invalid
}

// fallbacks are the formats with short blocks for rows that are not whole blocks
// of 256.
var fallbacks = map[block.Format]block.Format{
	block.Q4_K: block.Q5_0, block.Q5_K: block.Q5_1, block.Q6_K: block.Q8_0,
	block.Q2_K: block.Q4_0, block.Q3_K: block.Q4_0, block.TQ1_0: block.Q4_0, block.TQ2_0: block.Q4_0,
	block.Q1_0: block.Q4_0, block.Q2_0: block.Q4_0, block.NVFP4: block.MXFP4,
}

// fit returns the format, or one with shorter blocks if rows of the given length are not
// whole blocks.
func fit(f block.Format, row int64) block.Format {
	if row%int64(f.Elements()) == 0 {
		return f
	}
	short, ok := fallbacks[f]
	if !ok {
		short = block.IQ4_NL
	}
	if row%int64(short.Elements()) == 0 {
		return short
	}
	return block.F16
}

// quantizable reports whether a tensor may be quantised. Matrices may, except matrices that choose
// experts, norms, and tables of positions and types.
func quantizable(t *Tensor) bool {
	if len(t.Dims) < 2 || !strings.HasSuffix(t.Name, "weight") || KindOf(t.Name) == "norms" {
		return false
	}
	for _, s := range []string{"ffn_gate_inp", "position_embd", "token_types", "rope_freqs"} {
		if strings.Contains(t.Name, s) {
			return false
		}
	}
	return t.Type.Elements() > 1 || t.Type == block.F32 || t.Type == block.F16 || t.Type == block.BF16 || t.Type == block.F64
}

// TypeFor returns the type that the recipe gives a tensor of a file. A pure recipe uses no type
// with more bits than the base.
func (r Recipe) TypeFor(f *File, t *Tensor, pure bool) block.Format {
	if !quantizable(t) {
		return t.Type
	}
	row, _ := t.Row()
	if pure {
		return fit(r.Base, row)
	}
	isOutput := t.Name == "output.weight" || t.Name == "token_embd.weight" && f.Tensor("output.weight") == nil
	want := r.Base
	if isOutput {
		want = r.output
	} else if r.Base.Layout().Weighted && strings.HasSuffix(t.Name, "token_embd.weight") {
		want = block.Q2_K // embeddings have no importances, because no inputs are multiplied by them
	} else if r.more != nil {
		layers, _ := f.hyper("block_count")
		heads, _ := f.hyper("attention.head_count")
		kv, _ := f.hyper("attention.head_count_kv")
		if m := r.more(role(t.Name), Layer(t.Name), int(layers), int(heads/max(1, kv))); m != block.Invalid {
			want = m
		}
	}
	return fit(want, row)
}

// hyper returns a count of the architecture, at most 2^20.
func (f *File) hyper(key string) (n uint64, ok bool) {
	v, _ := f.Hyper(key)
	n, ok = v.Uint()
	return min(n, 1<<20), ok
}

// role returns the role of a tensor in its layer: attn_v for blk.3.attn_v.weight.
func role(name string) string {
	parts := strings.Split(name, ".")
	if len(parts) < 4 {
		return ""
	}
	return parts[2]
}

// QuantizeOptions are the options of [Quantize].
type QuantizeOptions struct {
	// Pure gives every matrix the base type of the recipe.
	Pure bool
	// Importance has, for the names of tensors, the weight of each column: see
	// [block.Format.QuantizeWeighted]. A tensor of several matrices, as of a mixture of experts, may have the weights of all
	// matrices, one matrix after the other, or those of one, which count for all. [ReadImportance] reads them from a file.
	Importance map[string][]float32
	// Progress is called with the number of bytes that were read since its last call.
	Progress func(bytes int64)
	// Split, if not 0, splits the file into parts: see [SplitAt].
	Split int64
}

// Quantize writes the model with other types to a new file, as [Create] does. A tensor
// whose rows are not whole blocks of its type gets a type with shorter blocks. Quantize
// uses all cores and a few MiB of memory. The error wraps ctx.Err() if ctx was canceled,
// and [block.ErrImportance] if a type needs importances that are not given, or if their number does not match the tensor.
func Quantize(ctx context.Context, path string, f *File, r Recipe, o QuantizeOptions) error {
	meta := f.meta.Clone()
	_ = meta.Set("general.file_type", NewValue(r.FileType))
	_ = meta.Set("general.quantization_version", NewValue(uint32(2)))
	infos := f.infos()
	for i, t := range f.tensors {
		infos[i].Type = r.TypeFor(f, t, o.Pure)
		if err := t.checkImportance(infos[i].Type, o.Importance[t.Name]); err != nil {
			return err
		}
	}
	w, err := Create(path, meta, infos, SplitAt(o.Split))
	if err != nil {
		return err
	}
	defer w.Abort()
	for i, t := range f.tensors {
		dst, err := w.Tensor(t.Name)
		if err == nil {
			err = t.writeAs(ctx, dst, infos[i].Type, o)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

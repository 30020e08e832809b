package llm

import (
	"errors"
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestUnknown checks that models with unsupported computations give errors.
func TestUnknown(t *testing.T) {
	dev := openCPU(t)
	v := variants["qwen3moe"]
	for name, change := range map[string]func(m *randomModel) error{
		"key": func(m *randomModel) error {
			return m.meta.Set("qwen3moe.expert_shared_count", gguf.NewValue(uint32(1)))
		},
		"boolean":      func(m *randomModel) error { return m.meta.Set("qwen3moe.use_parallel_residual", gguf.NewValue(true)) },
		"gating":       func(m *randomModel) error { return m.meta.Set("qwen3moe.expert_gating_func", gguf.NewValue(uint32(2))) },
		"architecture": func(m *randomModel) error { return m.meta.Set("general.architecture", gguf.NewValue("mamba")) },
		"tensor": func(m *randomModel) error {
			m.norm("blk.1.attn_sinks", 4, false)
			return nil
		},
		"tensor outside of layers": func(m *randomModel) error {
			m.add("output.scale", 1, 0.1, 1)
			return nil
		},
		"temperature": func(m *randomModel) error {
			return m.meta.Set("qwen3moe.attention.temperature_scale", gguf.NewValue(float32(0.1)))
		},
		"magnitude": func(m *randomModel) error {
			return m.meta.Set("qwen3moe.rope.scaling.yarn_log_multiplier", gguf.NewValue(float32(-10)))
		},
		"mask": func(m *randomModel) error { return m.meta.Set("qwen3moe.attention.causal", gguf.NewValue("no")) },
		"rope": func(m *randomModel) error {
			return m.meta.Set("qwen3moe.rope.scaling.type", gguf.NewValue("su"))
		},
	} {
		m := v.model(t, testutil.Rand(t))
		if err := change(m); err != nil {
			t.Fatal(err)
		}
		if m, err := Load(t.Context(), dev, m.file(t), Options{}); !errors.Is(err, ErrModel) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				m.Close()
			}
		}
	}
	// A key whose value turns a feature off is accepted.
	m := v.model(t, testutil.Rand(t))
	if err := errors.Join(m.meta.Set("qwen3moe.expert_shared_count", gguf.NewValue(uint32(0))), m.meta.Set("qwen3moe.use_parallel_residual", gguf.NewValue(false)),
		m.meta.Set("qwen3moe.attention.temperature_scale", gguf.NewValue(float32(0)))); err != nil {
		t.Fatal(err)
	}
	k, err := Load(t.Context(), dev, m.file(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	k.Close()
}

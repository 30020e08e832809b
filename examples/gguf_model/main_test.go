package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b, t.TempDir(), ""); err != nil {
		t.Fatal(err)
	}
	const want = `Small (llama), 1049088 parameters
  blk.0.attn_norm.weight   F32   [512], 2 KiB
  blk.0.ffn_up.weight      F16   [512 2048], 2048 KiB
Small (llama), 1049088 parameters
  blk.0.attn_norm.weight   F32   [512], 2 KiB
  blk.0.ffn_up.weight      Q4_K  [512 2048], 576 KiB
ones times blk.0.ffn_up.weight: `
	if !strings.HasPrefix(b.String(), want) || !strings.HasSuffix(b.String(), "and 2047 more\n") {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

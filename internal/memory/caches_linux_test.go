package memory

import "testing"

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int{
		"48K": 48 << 10, "2048K": 2 << 20, "266240K": 260 << 20, "32M": 32 << 20, "512": 512,
		"": 0, "K": 0, "-1K": 0, "many": 0, "99999999999999G": 0,
	} {
		if got := parseSize(s); got != want {
			t.Errorf("parseSize(%q) = %d, want %d", s, got, want)
		}
	}
}

package ascii

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

var texts = []string{"", " ", "a", "Ab Z", "\t\nx\v\f\r y ", "__a_b__", "ÄÉ MiXed\u00a0", "+-12", "[@`{ AZaz", "a  b", "x\x00\xff"}

func TestStrings(t *testing.T) {
	lower := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r < 0x80 {
				return rune(strings.ToLower(string(r))[0])
			}
			return r
		}, s)
	}
	for _, s := range texts {
		if got, want := Lower(s), lower(s); got != want && strings.ToValidUTF8(s, "") == s {
			t.Errorf("Lower(%q) = %q, expected %q", s, got, want)
		}
		for _, cut := range []string{"", Space, "_", "+-0123456789"} {
			if got, want := Trim(s, cut), strings.Trim(s, cut); got != want {
				t.Errorf("Trim(%q, %q) = %q, expected %q", s, cut, got, want)
			}
		}
		want := strings.FieldsFunc(s, func(r rune) bool { return r < 0x80 && strings.ContainsRune(Space, r) })
		if got := Fields(s); !slices.Equal(got, want) {
			t.Errorf("Fields(%q) = %q, expected %q", s, got, want)
		}
	}
}

func TestNatural(t *testing.T) {
	for _, s := range []string{"", "0", "7", "007", "12", "999999999", "1000000000", "-1", "+1", " 1", "1 ", "1a", "٣", "0x1", "1_0"} {
		want, err := strconv.Atoi(s)
		ok := err == nil && s[0] != '-' && s[0] != '+' && len(s) < 10
		if !ok {
			want = 0
		}
		if n, good := Natural(s); n != want || good != ok {
			t.Errorf("Natural(%q) = %d, %v, expected %d, %v", s, n, good, want, ok)
		}
	}
}

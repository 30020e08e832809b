package simd

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestWordsAreWhatTheySay disassembles the instructions of the NEON kernels
// that Go's assembler does not know and compares them with their comments.
func TestWordsAreWhatTheySay(t *testing.T) {
	testutil.Need(t, "objdump")
	source, err := os.ReadFile("map_neon_arm64.s")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	var code []byte
	for _, m := range regexp.MustCompile(`WORD \$0x([0-9A-F]{8}) // (.*)`).FindAllStringSubmatch(string(source), -1) {
		var w uint32
		if _, err := fmt.Sscanf(m[1], "%x", &w); err != nil {
			t.Fatal(err)
		}
		code = binary.LittleEndian.AppendUint32(code, w)
		said = append(said, m[2])
	}
	file := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("aarch64-linux-gnu-objdump", "-D", "-b", "binary", "-m", "aarch64", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// Lines of the form "   0:	4e20d400 	fadd	v0.4s, v0.4s, v0.4s".
	lines := regexp.MustCompile(`(?m)^\s*[0-9a-f]+:\s+[0-9a-f]{8}\s+(.*)$`).FindAllStringSubmatch(string(out), -1)
	if len(lines) != len(said) || len(said) < 1000 {
		t.Fatalf("%d instructions disassembled, %d written", len(lines), len(said))
	}
	bad := 0
	for i, l := range lines {
		is, _, _ := strings.Cut(l[1], "//")
		if is = strings.Join(strings.Fields(is), " "); is != said[i] {
			t.Errorf("%q disassembles as %q", said[i], is)
			if bad++; bad > 10 {
				break
			}
		}
	}
}

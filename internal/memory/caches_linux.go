package memory

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// systemCaches reads what the kernel knows of the first processor, which is
// all there is to know where the instruction set does not tell.
func systemCaches() (c Caches) {
	for i := range 8 {
		field := func(name string) string {
			b, _ := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, name))
			return strings.TrimSpace(string(b))
		}
		if field("type") == "Instruction" {
			continue
		}
		size := parseSize(field("size"))
		switch field("level") {
		case "1":
			c.L1 = size
		case "2":
			c.L2 = size
		case "3", "4":
			c.Last = size
		}
	}
	return c
}

// parseSize understands 32K and 16M; anything else is 0.
func parseSize(s string) int {
	if s == "" {
		return 0
	}
	shift := strings.IndexByte("KMG", s[len(s)-1]) + 1
	if shift > 0 {
		s = s[:len(s)-1]
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1<<30>>(10*max(shift-1, 0)) {
		return 0
	}
	return n << (10 * shift)
}

package memory

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// systemCaches reads the caches of the first processor from the Linux kernel, for
// processors without instructions that report them.
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

// parseSize parses a size such as 32K or 16M. It returns 0 for other texts.
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

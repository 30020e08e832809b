package ptx

import (
	"fmt"
	"strconv"
)

// Target is the minimum compute capability of a module: ten times the capability, plus 1 for the
// variant a, whose code runs only on that generation.
type Target uint16

// The targets.
const (
	SM70  Target = 700 // V100
	SM75  Target = 750 // T4
	SM80  Target = 800 // A100
	SM86  Target = 860
	SM87  Target = 870
	SM89  Target = 890  // L4
	SM90  Target = 900  // H100, H200
	SM90a Target = 901  // likewise, with features of this generation only
	SM100 Target = 1000 // B200: the instructions of SM90, as in those below
	SM103 Target = 1030 // B300
	SM120 Target = 1200 // GeForce RTX 50
	SM121 Target = 1210 // DGX Spark
)

// targets lists the targets, their names and the version of PTX, ten times, that
// first has them.
var targets = []struct {
	target  Target
	name    string
	version uint8
}{
	{SM70, "sm_70", 60},
	{SM75, "sm_75", 63},
	{SM80, "sm_80", 70},
	{SM86, "sm_86", 71},
	{SM87, "sm_87", 74},
	{SM89, "sm_89", 78},
	{SM90, "sm_90", 78},
	{SM90a, "sm_90a", 80},
	{SM100, "sm_100", 86},
	{SM103, "sm_103", 88},
	{SM120, "sm_120", 87},
	{SM121, "sm_121", 88},
}

// Targets returns the targets that this package knows, the least first.
func Targets() []Target {
	all := make([]Target, len(targets))
	for i, t := range targets {
		all[i] = t.target
	}
	return all
}

// String returns the name that PTX has for the target: "sm_90a".
func (t Target) String() string {
	for i := range targets {
		if targets[i].target == t {
			return targets[i].name
		}
	}
	return fmt.Sprintf("Target(%d)", uint16(t))
}

// features returns the target that desc.target is compared with: what SM90a has
// beyond SM90 is in no later generation.
func (t Target) features() Target {
	if t > SM90a {
		return SM90
	}
	return t
}

// version returns the first PTX version with the target, 0 for an unknown target.
func (t Target) version() uint8 {
	for i := range targets {
		if targets[i].target == t {
			return targets[i].version
		}
	}
	return 0
}

func appendVersion(b []byte, v uint8) []byte {
	b = strconv.AppendUint(b, uint64(v/10), 10)
	return append(b, '.', '0'+v%10)
}

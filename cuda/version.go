package cuda

import (
	"fmt"
	"strconv"
)

// A Version is a version of CUDA as the driver counts it: 1000 times the major
// number plus 10 times the minor one, so that 13.0 is 13000.
type Version int

// String returns the version as people write it: "12.4".
func (v Version) String() string {
	return strconv.Itoa(int(v)/1000) + "." + strconv.Itoa(int(v)%1000/10)
}

// A Capability is the compute capability of a device: 9.0 for Hopper.
type Capability struct{ Major, Minor int }

// String returns the capability as people write it: "9.0".
func (c Capability) String() string { return fmt.Sprintf("%d.%d", c.Major, c.Minor) }

// AtLeast reports whether the capability is major.minor or a later one.
func (c Capability) AtLeast(major, minor int) bool {
	return c.Major > major || c.Major == major && c.Minor >= minor
}

// A PTXVersion is a version of the PTX language: 10 times the major number plus
// the minor one, so that 8.7 is 87.
type PTXVersion int

// String returns the version as people write it: "8.7".
func (v PTXVersion) String() string { return fmt.Sprintf("%d.%d", v/10, v%10) }

// languages says from which driver on each version of PTX is understood, the
// newest first.
var languages = []struct {
	driver Version
	ptx    PTXVersion
}{
	{13010, 91}, {13000, 90},
	{12090, 88}, {12080, 87}, {12070, 86}, {12050, 85}, {12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80},
	{11080, 78}, {11070, 77}, {11060, 76}, {11050, 75}, {11040, 74},
}

// PTX returns the newest version of PTX that a driver of version v understands,
// as far as this package knows: a driver newer than it may understand more.
// It is 0 for drivers older than any that this package works with.
func (v Version) PTX() PTXVersion {
	for _, l := range languages {
		if v >= l.driver {
			return l.ptx
		}
	}
	return 0
}

// driverFor returns the oldest driver version that understands p, or 0 if this package does not
// know one.
func driverFor(p PTXVersion) Version {
	var v Version
	for _, l := range languages {
		if l.ptx >= p {
			v = l.driver
		}
	}
	return v
}

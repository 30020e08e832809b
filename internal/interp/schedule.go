package interp

// Schedule is an order in which the checker lets lanes, subgroups and
// workgroups run.
type Schedule uint8

// The schedules. In the last, subgroups also take turns at random places.
const (
	Ascending Schedule = iota
	Descending
	Shuffled
)

// String returns the name of the schedule.
func (s Schedule) String() string {
	switch s {
	case Ascending:
		return "ascending"
	case Descending:
		return "descending"
	}
	return "shuffled"
}

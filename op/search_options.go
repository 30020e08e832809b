package op

// SearchOpts are the parameters of SearchSorted of package batch.
type SearchOpts struct {
	Right bool // return the index after the elements equal to the value, not the index of the first of them
}

// UniqueOpts are the parameters of Unique of package batch.
type UniqueOpts struct {
	Along Along // the axis whose slices are compared; by default single elements are compared
}

// TopOpts are the options of the method TopK of package batch.
type TopOpts struct {
	Smallest bool  // choose the least elements, least first, not the greatest
	Along    Along // the axis along which elements are chosen; by default the last axis
}

// ScanOpts are the options of the scans of package batch: Cumsum, Cumprod, Cummax, Cummin and
// LogCumsumExp.
type ScanOpts struct {
	// Reverse combines each element with those after it, not with those before.
	Reverse bool
	// Exclusive leaves the element itself out. The first result of each row, or with Reverse the last, is
	// then the reduction of no elements: 0 for a sum, 1 for a product, the least number for a maximum.
	Exclusive bool
	Along     Along // axes that are combined as one row; the last axis if not given
}

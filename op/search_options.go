package op

// SearchOpts are the parameters of SearchSorted of package batch.
type SearchOpts struct {
	Right bool // behind equal elements; before them if not given
}

// UniqueOpts are the parameters of Unique of package batch.
type UniqueOpts struct {
	Along Along // the one axis whose slices are compared; single elements if not given
}

package portable

// topKMuch is the number of elements that a lane group would read, from which on sorting the rows
// is faster.
const topKMuch = 1 << 17

// TopKSorts reports whether a radix sort of a row of cols elements takes less time than k searches
// for its greatest element.
func TopKSorts(k, cols int) bool { return cols > rankMax && k*cols >= topKMuch }

const rankMax = 1024 // maximum number of elements of a row whose keys fit in workgroup memory, so that they can be ranked

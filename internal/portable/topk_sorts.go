package portable

// topKMuch is from how many elements a lane group would look at that rows are sorted.
const topKMuch = 1 << 17

// TopKSorts reports whether sorting a row of so many elements by digits takes less time than k
// searches for its greatest element.
func TopKSorts(k, cols int) bool { return cols > rankMax && k*cols >= topKMuch }

const rankMax = 1024 // elements of a row that are ranked: in workgroup memory

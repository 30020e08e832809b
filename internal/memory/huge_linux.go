package memory

import "syscall"

// adviseHuge asks the system for huge pages for b, which must start on a page. Most
// systems use huge pages only on request. A refusal only costs speed.
func adviseHuge(b []byte) {
	if len(b) > 0 {
		syscall.Madvise(b, syscall.MADV_HUGEPAGE)
	}
}

package memory

import "syscall"

// adviseHuge asks for huge pages under b, which must start on a page. Most
// systems give them only where asked; a refusal costs speed alone.
func adviseHuge(b []byte) {
	if len(b) > 0 {
		syscall.Madvise(b, syscall.MADV_HUGEPAGE)
	}
}

package webgpu

import "github.com/rayo-go/rayo/kernel/lib"

// compute adds the launches that compute a request, in windows where arrays are
// larger than bindings.
func (e *preparer) compute(r *lib.Request, in, out []arrayRef) error { return e.plan(r, in, out) }

//go:build cgo && unix

package dl

/*
#cgo linux LDFLAGS: -ldl
#cgo noescape rayo_dl_call
#cgo nocallback rayo_dl_call
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
	uintptr_t fn, bind, context, args[15], result, refused;
} rayo_dl_frame;

typedef int (*rayo_dl_bind)(uintptr_t);
typedef uintptr_t (*rayo_dl_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
	uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static void rayo_dl_call(rayo_dl_frame *f) {
	uintptr_t *a = f->args;
	if (f->bind) {
		int refused = ((rayo_dl_bind)f->bind)(f->context);
		if (refused) {
			f->result = (uintptr_t)refused;
			f->refused = 1;
			return;
		}
	}
	f->refused = 0;
	f->result = ((rayo_dl_fn)f->fn)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14]);
}

// The message of dlerror belongs to the thread, so both calls are one.
static uintptr_t rayo_dl_open(const char *name, const char **message) {
	void *h = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	if (!h) *message = dlerror();
	return (uintptr_t)h;
}

static uintptr_t rayo_dl_find(uintptr_t h, const char *name) {
	return (uintptr_t)dlsym((void *)h, name);
}
*/
import "C"

import (
	"errors"
	"unsafe"
)

func load(name string) (uintptr, error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	var message *C.char
	h := C.rayo_dl_open(n, &message)
	if h == 0 {
		return 0, errors.New(C.GoString(message))
	}
	return uintptr(h), nil
}

func find(handle uintptr, name string) (uintptr, error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return uintptr(C.rayo_dl_find(C.uintptr_t(handle), n)), nil
}

// Call makes the call. Everything that the arguments point to must stay
// reachable until it returns.
func (f *Frame) Call() { C.rayo_dl_call((*C.rayo_dl_frame)(unsafe.Pointer(f))) }

// When a device is lost, or a submission is found to be wrong, some functions of
// the library panic, and nobody is there to catch that: the process would end. On
// Linux the linker lets us stand between the library and what begins a panic. It is
// then unwound up to the function that has a GUARD, which frees the locks and the
// memory that the library has in hand, and that function returns. What the library
// writes to the standard error meanwhile is kept for the error.
#ifndef RAYO_WGPU_GUARD_H
#define RAYO_WGPU_GUARD_H

#include "declare.h"

// rayo_said returns what the library has said of a panic.
wg_text rayo_said(void);

#if defined(__linux__)

typedef struct rayo_guard {
	struct rayo_guard *outer;
	void *frame;
	void *back[5]; // of __builtin_setjmp
} rayo_guard;

void rayo_enter(rayo_guard *, void *frame);
void rayo_leave(rayo_guard *);

// GUARD at the beginning of a function does what follows it in parentheses, which
// is to return, when the library panics.
#define GUARD(panicked) \
	__attribute__((cleanup(rayo_leave))) rayo_guard guard; \
	rayo_enter(&guard, __builtin_frame_address(0)); \
	if (__builtin_setjmp(guard.back) != 0) { \
		panicked; \
	}

#else

#define GUARD(panicked)

#endif
#endif

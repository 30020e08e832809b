//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

#define _GNU_SOURCE
#include "guard.h"

#if defined(__linux__)

#include <string.h>
#include <unistd.h>
#include <unwind.h>

static _Thread_local rayo_guard *current;

// said is what the library has written to the standard error, of its panics.
static _Thread_local char said[512];
static _Thread_local size_t said_bytes;

void rayo_enter(rayo_guard *g, void *frame) {
	said_bytes = 0;
	g->outer = current;
	g->frame = frame;
	current = g;
}

void rayo_leave(rayo_guard *g) { current = g->outer; }

wg_text rayo_said(void) {
	static const char unknown[] = "the library has failed";
	wg_text t = {said, said_bytes};
	if (said_bytes == 0) return (wg_text){unknown, sizeof unknown - 1};
	const char *end = memmem(said, said_bytes, "\nstack backtrace", 16);
	if (end == NULL) end = memmem(said, said_bytes, "\nnote: run with", 15);
	if (end != NULL) t.length = end - said;
	return t;
}

ssize_t __real_write(int, const void *, size_t);

ssize_t __wrap_write(int file, const void *p, size_t n) {
	if (current == NULL || file != STDERR_FILENO) return __real_write(file, p, n);
	size_t room = sizeof said - said_bytes, m = n < room ? n : room;
	memcpy(said + said_bytes, p, m);
	said_bytes += m;
	return (ssize_t)n;
}

// back goes back to the guard. It is a function of its own, as the builtin
// function demands.
static __attribute__((noinline, noreturn)) void back(void) { __builtin_longjmp(current->back, 1); }

// doors are the functions of the library that are called. What they call may be
// unwound. They themselves end the process when that is tried.
static void *const doors[] = {
	wgpuCreateInstance, wgpuInstanceEnumerateAdapters, wgpuAdapterRequestDevice,
	wgpuDevicePoll, wgpuDeviceRelease, wgpuDeviceCreateBuffer, wgpuDeviceCreateShaderModule,
	wgpuDeviceCreateShaderModuleTrusted, wgpuDeviceCreateBindGroupLayout, wgpuDeviceCreatePipelineLayout,
	wgpuDeviceCreateComputePipeline, wgpuDeviceCreateBindGroup, wgpuDeviceCreateQuerySet, wgpuDeviceCreateCommandEncoder,
	wgpuShaderModuleRelease, wgpuBindGroupLayoutRelease, wgpuPipelineLayoutRelease, wgpuComputePipelineRelease,
	wgpuBindGroupRelease, wgpuQuerySetRelease, wgpuCommandEncoderRelease, wgpuComputePassEncoderRelease,
	wgpuCommandBufferRelease, wgpuQueueRelease, wgpuBufferRelease,
	wgpuBufferMapAsync, wgpuBufferGetMappedRange, wgpuBufferGetConstMappedRange, wgpuBufferUnmap,
	wgpuCommandEncoderBeginComputePass, wgpuCommandEncoderClearBuffer, wgpuCommandEncoderCopyBufferToBuffer,
	wgpuCommandEncoderWriteTimestamp, wgpuCommandEncoderResolveQuerySet, wgpuCommandEncoderFinish,
	wgpuComputePassEncoderSetPipeline, wgpuComputePassEncoderSetBindGroup,
	wgpuComputePassEncoderDispatchWorkgroups, wgpuComputePassEncoderEnd,
	wgpuQueueSubmitForIndex, wgpuQueueOnSubmittedWorkDone,
};

static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class, struct _Unwind_Exception *e, struct _Unwind_Context *context, void *frame) {
	if ((actions & _UA_END_OF_STACK) != 0 || _Unwind_GetCFA(context) > (_Unwind_Word)frame) back();
	void *function = (void *)_Unwind_GetRegionStart(context);
	for (size_t i = 0; i < sizeof doors / sizeof *doors; i++)
		if (doors[i] == function) back();
	return _URC_NO_REASON;
}

_Unwind_Reason_Code __real__Unwind_RaiseException(struct _Unwind_Exception *);

_Unwind_Reason_Code __wrap__Unwind_RaiseException(struct _Unwind_Exception *e) {
	if (current == NULL) return __real__Unwind_RaiseException(e);
	return _Unwind_ForcedUnwind(e, stop, current->frame);
}

void __real_abort(void) __attribute__((noreturn));

// A panic of a thread that has panicked before ends here.
__attribute__((noreturn)) void __wrap_abort(void) {
	if (current == NULL) __real_abort();
	back();
}

#else

wg_text rayo_said(void) { return (wg_text){"the library has failed", 22}; }

#endif

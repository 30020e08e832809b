//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

#include "guard.h"
#include "native.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// The library reports mistakes, and a device that is lost, in the thread that
// makes the call, in callbacks. They leave here what the call then returns.
static _Thread_local struct {
	uint32_t kind;
	char *message;
} fault;

static char *copied(wg_text t) {
	if (t.length > 16 << 10) t.length = t.data == NULL ? 0 : t.length == SIZE_MAX ? strlen(t.data) : 16 << 10;
	char *s = malloc(t.length + 1);
	if (s == NULL) abort();
	if (t.length > 0) memcpy(s, t.data, t.length);
	s[t.length] = 0;
	return s;
}

static wg_text text(const char *s) {
	wg_text t = {s, strlen(s)};
	return t;
}

static const wg_text none = {NULL, SIZE_MAX};

static void fail(uint32_t kind, wg_text message) {
	if (fault.kind == RAYO_LOST || (fault.kind != 0 && kind != RAYO_LOST)) return; // the first says why
	free(fault.message);
	fault.kind = kind;
	fault.message = copied(message);
}

// begin forgets what calls that return nothing left.
static void begin(void) {
	free(fault.message);
	fault.message = NULL;
	fault.kind = 0;
}

static rayo_result outcome(void *handle, uint64_t number) {
	rayo_result r = {handle, number, fault.message, fault.kind};
	fault.kind = 0;
	fault.message = NULL;
	if (r.message == NULL && handle == NULL && number == 0) {
		r.kind = WG_ERROR_INTERNAL;
		r.message = copied(text("nothing was created"));
	}
	return r;
}

// panicked is the outcome of a call in which the library has panicked.
static rayo_result panicked(void) {
	if (fault.kind == 0) fail(WG_ERROR_INTERNAL, rayo_said());
	return outcome(NULL, 0);
}

static void silent(wg_enum level, wg_text message, void *a) {}

rayo_result rayo_instance(uint64_t backends) {
	begin();
	GUARD(return panicked())
	wgpuSetLogCallback(silent, NULL);
	wgpuSetLogLevel(WG_LOG_OFF);
	wg_instance_extras extras = {
		.chain = {NULL, WG_INSTANCE_EXTRAS},
		.backends = backends,
		.flags = WG_INSTANCE_NO_LABELS,
		.dxc_path = none,
	};
	wg_instance_desc desc = {.next = &extras.chain};
	return outcome(wgpuCreateInstance(&desc), 0);
}

rayo_result rayo_adapters(void *instance, uint64_t backends, wg_adapter *list, size_t room) {
	begin();
	GUARD(return panicked())
	wg_enumerate options = {NULL, backends};
	size_t n = wgpuInstanceEnumerateAdapters(instance, &options, NULL);
	if (n > room) n = room;
	wg_adapter *all = NULL;
	if (n > 0) {
		// Between the two calls nothing may be plugged in: the second would
		// write more.
		all = calloc(n + 64, sizeof *all);
		size_t m = wgpuInstanceEnumerateAdapters(instance, &options, all);
		for (size_t i = 0; i < m; i++) {
			if (i < n) list[i] = all[i];
			else wgpuAdapterRelease(all[i]);
		}
		if (m < n) n = m;
		free(all);
	}
	return outcome(list, n);
}

// trip is a submission under way. It is complete when all of its callbacks have come,
// and with it all before it are. Threads that submit call those of earlier
// submissions, and may be stopped between any two, while another thread calls those of
// later ones: that a submission has run does not mean that the memory of those
// before it is mapped.
typedef struct trip {
	_Atomic(struct trip *) next;
	uint64_t ticket;
	atomic_size_t left;  // callbacks that have not come
	atomic_bool broken; // some may never come
} trip;

enum { UNKNOWN = 0, NOWHERE = -1, NOTED = sizeof(void *) };

struct rayo_device {
	wg_device device;
	wg_queue queue;
	atomic_int lost;
	_Atomic(char *) why;
	_Atomic uint64_t done; // the last submission that is complete
	trip *last;            // submission, for the one who submits
	trip *first;           // the last that was found complete, or none yet, for the one who walks
	atomic_flag walking;
	int closing;
	atomic_int submitted; // where command buffers note that they were, or one of these
};

static trip *new_trip(void) {
	trip *t = calloc(1, sizeof *t);
	if (t == NULL) abort();
	return t;
}

// walk finds the last submission with which all are complete. If somebody else does
// already that will do.
static void walk(rayo_device *d) {
	if (atomic_flag_test_and_set(&d->walking)) return;
	for (trip *t = d->first, *next; (next = atomic_load(&t->next)) != NULL; t = d->first = next) {
		if (atomic_load(&next->left) > 0 && !atomic_load(&next->broken)) break;
		atomic_store(&d->done, next->ticket);
		if (atomic_load(&t->left) == 0) free(t);
	}
	atomic_flag_clear(&d->walking);
}

struct rayo_buffer {
	wg_buffer buffer;
	uint64_t size;
	uint32_t map; // WG_MAP_READ, WG_MAP_WRITE or 0
	atomic_int mapped, failed;
};

struct rayo_pipeline {
	wg_pipeline pipeline;
	wg_group_layout layout;
};

// broken is panicked for a call that leaves the device in no state to go on.
static rayo_result broken(rayo_device *d) {
	char *nothing = NULL, *why = copied(rayo_said());
	if (!atomic_compare_exchange_strong(&d->why, &nothing, why)) free(why);
	atomic_store(&d->lost, 1);
	fail(RAYO_LOST, text(atomic_load(&d->why)));
	return outcome(NULL, 0);
}

static void on_lost(wg_device const *device, wg_enum reason, wg_text message, void *a, void *b) {
	rayo_device *d = a;
	if (reason == WG_LOST_DESTROYED && d->closing) return;
	char *nothing = NULL, *why = copied(message);
	if (!atomic_compare_exchange_strong(&d->why, &nothing, why)) free(why);
	atomic_store(&d->lost, 1);
	fail(RAYO_LOST, message);
}

static void on_error(wg_device const *device, wg_enum kind, wg_text message, void *a, void *b) {
	fail(kind, message);
}

static void on_device(wg_enum status, wg_device device, wg_text message, void *a, void *b) {
	if (status == WG_SUCCESS) *(wg_device *)a = device;
	else fail(WG_ERROR_INTERNAL, message);
}

rayo_result rayo_open(wg_adapter adapter, const wg_limits *limits, const uint32_t *features, size_t count) {
	begin();
	GUARD(return panicked())
	rayo_device *d = calloc(1, sizeof *d);
	if (d == NULL) abort();
	wg_device_desc desc = {
		.label = none,
		.features = count,
		.feature = features,
		.limits = limits,
		.queue = {.label = none},
		.lost = {.mode = WG_SPONTANEOUS, .call = on_lost, .a = d},
		.error = {.call = on_error, .a = d},
	};
	wg_on_device ready = {.mode = WG_SPONTANEOUS, .call = on_device, .a = &d->device};
	wgpuAdapterRequestDevice(adapter, &desc, ready);
	if (d->device != NULL) d->queue = wgpuDeviceGetQueue(d->device);
	atomic_flag_clear(&d->walking);
	d->first = d->last = new_trip();
	if (d->queue == NULL) {
		d->closing = 1;
		if (d->device != NULL) wgpuDeviceRelease(d->device);
		free(d->first);
		free(d);
		d = NULL;
	}
	return outcome(d, 0);
}

int rayo_lost(rayo_device *d, char **message) {
	*message = atomic_load(&d->why);
	return atomic_load(&d->lost);
}

float rayo_tick(rayo_device *d) { return wgpuQueueGetTimestampPeriod(d->queue); }

void rayo_close(rayo_device *d) {
	GUARD(return)
	d->closing = 1;
	wgpuQueueRelease(d->queue);
	wgpuDeviceRelease(d->device);
	for (trip *t = d->first, *next; t != NULL; t = next) {
		next = atomic_load(&t->next);
		free(t);
	}
	free(atomic_load(&d->why));
	free(d);
}

rayo_result rayo_new_buffer(rayo_device *d, uint64_t usage, uint64_t size, int map, int mapped) {
	begin();
	GUARD(return panicked())
	rayo_buffer *b = calloc(1, sizeof *b);
	if (b == NULL) abort();
	wg_buffer_desc desc = {.label = none, .usage = usage, .size = size, .mapped = mapped};
	b->buffer = wgpuDeviceCreateBuffer(d->device, &desc);
	b->size = size;
	b->map = map;
	atomic_store(&b->mapped, mapped);
	if (b->buffer == NULL || fault.kind != 0) {
		if (b->buffer != NULL) wgpuBufferRelease(b->buffer);
		free(b);
		b = NULL;
	}
	return outcome(b, 0);
}

void *rayo_mapped(rayo_buffer *b) {
	GUARD(return NULL)
	if (!atomic_load(&b->mapped)) return NULL;
	if (b->map == WG_MAP_READ) return (void *)wgpuBufferGetConstMappedRange(b->buffer, 0, b->size);
	return wgpuBufferGetMappedRange(b->buffer, 0, b->size);
}

void rayo_unmap(rayo_buffer *b) {
	GUARD(return)
	if (atomic_exchange(&b->mapped, 0)) wgpuBufferUnmap(b->buffer);
}

void rayo_free_buffer(rayo_buffer *b) {
	GUARD(return)
	wgpuBufferRelease(b->buffer);
	free(b);
}

rayo_result rayo_new_pipeline(rayo_device *d, const char *code, size_t code_bytes, const char *entry, size_t entry_bytes, const uint8_t *bindings, size_t count, int trusted) {
	begin();
	GUARD(return panicked())
	static const wg_enum kinds[] = {WG_BIND_READ_ONLY, WG_BIND_STORAGE, WG_BIND_UNIFORM};
	rayo_pipeline *p = calloc(1, sizeof *p);
	wg_layout_entry *entries = calloc(count + 1, sizeof *entries);
	if (p == NULL || entries == NULL) abort();
	wg_layout layout = NULL;
	wg_source source = {.chain = {NULL, WG_SOURCE_WGSL}, .code = {code, code_bytes}};
	wg_labelled desc = {.next = &source.chain, .label = none};
	wg_module module = trusted ? wgpuDeviceCreateShaderModuleTrusted(d->device, &desc, 0) : wgpuDeviceCreateShaderModule(d->device, &desc);
	if (fault.kind == 0) {
		for (size_t i = 0; i < count; i++) {
			entries[i].binding = (uint32_t)i;
			entries[i].stages = WG_STAGE_COMPUTE;
			entries[i].buffer.type = kinds[bindings[i]];
		}
		wg_group_layout_desc groups = {.label = none, .entries = count, .entry = entries};
		p->layout = wgpuDeviceCreateBindGroupLayout(d->device, &groups);
	}
	if (fault.kind == 0) {
		wg_layout_desc all = {.label = none, .groups = 1, .group = &p->layout};
		layout = wgpuDeviceCreatePipelineLayout(d->device, &all);
	}
	if (fault.kind == 0) {
		wg_pipeline_desc whole = {.label = none, .layout = layout, .compute = {.module = module, .entry = {entry, entry_bytes}}};
		p->pipeline = wgpuDeviceCreateComputePipeline(d->device, &whole);
	}
	if (layout != NULL) wgpuPipelineLayoutRelease(layout);
	if (module != NULL) wgpuShaderModuleRelease(module);
	free(entries);
	if (p->pipeline == NULL || fault.kind != 0) {
		rayo_free_pipeline(p);
		p = NULL;
	}
	return outcome(p, 0);
}

void rayo_free_pipeline(rayo_pipeline *p) {
	GUARD(return)
	if (p->pipeline != NULL) wgpuComputePipelineRelease(p->pipeline);
	if (p->layout != NULL) wgpuBindGroupLayoutRelease(p->layout);
	free(p);
}

rayo_result rayo_new_group(rayo_device *d, rayo_pipeline *p, const rayo_range *r, size_t count) {
	begin();
	GUARD(return panicked())
	wg_group_entry few[16] = {0}, *entries = few;
	if (count > sizeof few / sizeof *few) {
		entries = calloc(count, sizeof *entries);
		if (entries == NULL) abort();
	}
	for (size_t i = 0; i < count; i++) {
		entries[i].binding = (uint32_t)i;
		entries[i].buffer = r[i].buffer->buffer;
		entries[i].offset = r[i].off;
		entries[i].size = r[i].bytes;
	}
	wg_group_desc desc = {.label = none, .layout = p->layout, .entries = count, .entry = entries};
	wg_group g = wgpuDeviceCreateBindGroup(d->device, &desc);
	if (entries != few) free(entries);
	if (g != NULL && fault.kind != 0) {
		wgpuBindGroupRelease(g);
		g = NULL;
	}
	return outcome(g, 0);
}

void rayo_free_group(void *g) {
	GUARD(return)
	wgpuBindGroupRelease(g);
}

static void on_map(wg_enum status, wg_text message, void *a, void *b) {
	rayo_buffer *buffer = a;
	trip *t = b;
	atomic_store(status == WG_SUCCESS ? &buffer->mapped : &buffer->failed, 1);
	atomic_fetch_sub(&t->left, 1);
}

static void on_work(wg_enum status, wg_text message, void *a, void *b) {
	trip *t = a;
	atomic_fetch_sub(&t->left, 1);
}

// recording is a command buffer that is being made.
typedef struct {
	rayo_device *d;
	wg_encoder encoder;
	wg_pass pass; // open, or NULL
	void *pipeline, *group; // of the pass
	wg_queries queries;
	wg_buffer resolved;
} recording;

static void end_pass(recording *r) {
	if (r->pass == NULL) return;
	wgpuComputePassEncoderEnd(r->pass);
	wgpuComputePassEncoderRelease(r->pass);
	r->pass = NULL;
}

static void dispatch(recording *r, const rayo_command *c) {
	rayo_pipeline *p = c->a;
	if (r->pass == NULL) {
		wg_pass_desc desc = {.label = none};
		r->pass = wgpuCommandEncoderBeginComputePass(r->encoder, &desc);
		r->pipeline = r->group = NULL;
	}
	if (r->pipeline != c->a) wgpuComputePassEncoderSetPipeline(r->pass, p->pipeline);
	if (r->group != c->b || r->pipeline != c->a) wgpuComputePassEncoderSetBindGroup(r->pass, 0, c->b, 0, NULL);
	r->pipeline = c->a;
	r->group = c->b;
	wgpuComputePassEncoderDispatchWorkgroups(r->pass, c->x, c->y, c->z);
}

// record puts the commands into the command buffer.
static void record(recording *r, const rayo_command *c, size_t count, uint32_t stamps) {
	if (stamps > 0) {
		wg_queries_desc desc = {.label = none, .type = WG_QUERY_TIMESTAMP, .count = stamps};
		r->queries = wgpuDeviceCreateQuerySet(r->d->device, &desc);
		wg_buffer_desc buffer = {.label = none, .usage = WG_QUERY_RESOLVE | WG_COPY_SRC, .size = 8 * (uint64_t)stamps};
		r->resolved = wgpuDeviceCreateBuffer(r->d->device, &buffer);
		if (fault.kind != 0) return;
	}
	for (; count > 0; c++, count--) {
		if (c->kind != RAYO_DISPATCH) end_pass(r);
		rayo_buffer *src = c->a, *dst = c->b;
		switch (c->kind) {
		case RAYO_DISPATCH:
			dispatch(r, c);
			break;
		case RAYO_COPY:
			wgpuCommandEncoderCopyBufferToBuffer(r->encoder, src->buffer, c->from, dst->buffer, c->to, c->bytes);
			break;
		case RAYO_CLEAR:
			wgpuCommandEncoderClearBuffer(r->encoder, dst->buffer, c->to, c->bytes);
			break;
		case RAYO_STAMP:
			wgpuCommandEncoderWriteTimestamp(r->encoder, r->queries, c->x);
			break;
		case RAYO_STAMPS:
			wgpuCommandEncoderResolveQuerySet(r->encoder, r->queries, 0, stamps, r->resolved, 0);
			wgpuCommandEncoderCopyBufferToBuffer(r->encoder, r->resolved, 0, dst->buffer, c->to, 8 * (uint64_t)stamps);
			break;
		}
	}
	end_pass(r);
}

// The library frees a command buffer only if it was submitted, which it notes in a byte
// of it, and has no other function for one that is not needed any more. So the first
// submission is looked at: if one byte behind the first pointer is 0 before it and 1
// after, and nothing else has changed, then that byte can be set.
typedef struct {
	uint8_t bytes[3 * sizeof(void *)]; // the library's context, a number, the byte
} commands_object;

static void learn(rayo_device *d, const commands_object *before, const void *after) {
	int at = NOWHERE;
	const uint8_t *b = before->bytes, *a = after;
	for (int i = 0; i < (int)sizeof before->bytes; i++) {
		if (b[i] == a[i]) continue;
		if (at != NOWHERE || i < NOTED || b[i] != 0 || a[i] != 1) {
			at = NOWHERE;
			break;
		}
		at = i;
	}
	atomic_store(&d->submitted, at);
}

int rayo_discards(rayo_device *d) { return atomic_load(&d->submitted) > 0; }

void rayo_discard(rayo_device *d, void *commands) {
	GUARD(return)
	int at = atomic_load(&d->submitted);
	if (at > 0) atomic_store((_Atomic uint8_t *)commands + at, 1);
	wgpuCommandBufferRelease(commands);
}

// encode returns a command buffer. A mistake anywhere comes out in the end, and what was
// recorded with it must not be submitted.
static wg_commands encode(rayo_device *d, const rayo_command *c, size_t count) {
	wg_commands commands = NULL;
	uint32_t stamps = 0;
	for (size_t i = 0; i < count; i++)
		if (c[i].kind == RAYO_STAMPS) stamps = (uint32_t)c[i].bytes;
	wg_labelled desc = {.label = none};
	recording r = {.d = d, .encoder = wgpuDeviceCreateCommandEncoder(d->device, &desc)};
	if (fault.kind == 0) record(&r, c, count, stamps);
	end_pass(&r);
	if (r.encoder != NULL) {
		commands = wgpuCommandEncoderFinish(r.encoder, &desc);
		wgpuCommandEncoderRelease(r.encoder);
	}
	if (r.queries != NULL) wgpuQuerySetRelease(r.queries);
	if (r.resolved != NULL) wgpuBufferRelease(r.resolved);
	if (fault.kind != 0 && commands != NULL) {
		rayo_discard(d, commands);
		commands = NULL;
	}
	return commands;
}

rayo_result rayo_encode(rayo_device *d, const rayo_command *c, size_t count) {
	begin();
	if (atomic_load(&d->lost)) return broken(d);
	GUARD(return broken(d))
	return outcome(encode(d, c, count), 0);
}

rayo_result rayo_submit(rayo_device *d, void *encoded, const rayo_command *c, size_t count, rayo_buffer *const *remap, size_t remapped) {
	begin();
	if (atomic_load(&d->lost)) {
		if (encoded != NULL) rayo_discard(d, encoded);
		return broken(d);
	}
	GUARD(return broken(d))
	uint64_t ticket = 0;
	wg_commands commands = encoded != NULL ? encoded : encode(d, c, count);
	if (fault.kind == 0 && commands != NULL) {
		commands_object before;
		memcpy(&before, commands, sizeof before);
		ticket = wgpuQueueSubmitForIndex(d->queue, 1, &commands);
		if (atomic_load(&d->submitted) == UNKNOWN) learn(d, &before, commands);
	}
	if (commands != NULL) wgpuCommandBufferRelease(commands);
	if (fault.kind == 0) {
		trip *t = new_trip();
		t->ticket = ticket;
		atomic_store(&t->left, remapped + 1);
		for (size_t i = 0; i < remapped; i++) {
			wg_on_map done = {.mode = WG_SPONTANEOUS, .call = on_map, .a = remap[i], .b = t};
			atomic_store(&remap[i]->failed, 0);
			wgpuBufferMapAsync(remap[i]->buffer, remap[i]->map, 0, remap[i]->size, done);
		}
		wg_on_work done = {.mode = WG_SPONTANEOUS, .call = on_work, .a = t};
		wgpuQueueOnSubmittedWorkDone(d->queue, done);
		if (fault.kind != 0) atomic_store(&t->broken, true);
		atomic_store(&d->last->next, t);
		d->last = t;
	}
	return outcome(d, ticket);
}

rayo_result rayo_poll(rayo_device *d) {
	begin();
	if (atomic_load(&d->lost)) return broken(d);
	GUARD(return broken(d))
	wgpuDevicePoll(d->device, 0, NULL);
	walk(d);
	return outcome(d, atomic_load(&d->done));
}

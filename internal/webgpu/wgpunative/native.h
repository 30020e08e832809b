// What Go calls. Nothing here calls back into Go.
#ifndef RAYO_WGPU_NATIVE_H
#define RAYO_WGPU_NATIVE_H

#include "declare.h"

// What a call has come to: message is NULL for success and else to be freed, kind
// a WG_ERROR_ number, or RAYO_LOST.
typedef struct {
	void *handle;
	uint64_t number;
	char *message;
	uint32_t kind;
} rayo_result;

enum { RAYO_LOST = 100 };

typedef struct rayo_device rayo_device;
typedef struct rayo_pipeline rayo_pipeline;
typedef struct rayo_buffer rayo_buffer;

// One command of a submission. kind is that of webgpu.CommandKind.
typedef struct {
	uint32_t kind, x, y, z;
	void *a, *b; // pipeline and group, or source and destination
	uint64_t from, to, bytes;
} rayo_command;

typedef struct {
	rayo_buffer *buffer;
	uint64_t off, bytes;
} rayo_range;

enum { RAYO_DISPATCH, RAYO_COPY, RAYO_CLEAR, RAYO_STAMP, RAYO_STAMPS };

// rayo_quiet changes the environment of C so that the standard error stays as it is
// while an instance is created; rayo_loud, with what it returned, changes it back.
int rayo_quiet(void);
void rayo_loud(int quiet);

rayo_result rayo_instance(uint64_t backends);
rayo_result rayo_adapters(void *instance, uint64_t backends, wg_adapter *list, size_t room);

rayo_result rayo_open(wg_adapter adapter, const wg_limits *limits, const uint32_t *features, size_t count);
int rayo_lost(rayo_device *, char **message);
float rayo_tick(rayo_device *);
void rayo_close(rayo_device *);

rayo_result rayo_new_buffer(rayo_device *, uint64_t usage, uint64_t size, int map, int mapped);
void *rayo_mapped(rayo_buffer *);
void rayo_unmap(rayo_buffer *);
void rayo_free_buffer(rayo_buffer *);

rayo_result rayo_new_pipeline(rayo_device *, const char *text, size_t text_bytes, const char *entry, size_t entry_bytes, const uint8_t *bindings, size_t count, int trusted);
void rayo_free_pipeline(rayo_pipeline *);

rayo_result rayo_new_group(rayo_device *, rayo_pipeline *, const rayo_range *, size_t count);
void rayo_free_group(void *);

// rayo_encode makes a command buffer, which rayo_submit takes in the place of commands,
// or rayo_discard; it must have been submitted to the device before, and rayo_discards
// say that it can.
int rayo_discards(rayo_device *);
rayo_result rayo_encode(rayo_device *, const rayo_command *, size_t count);
void rayo_discard(rayo_device *, void *encoded);
rayo_result rayo_submit(rayo_device *, void *encoded, const rayo_command *, size_t count, rayo_buffer *const *remap, size_t remapped);
rayo_result rayo_poll(rayo_device *);

#endif

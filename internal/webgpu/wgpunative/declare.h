// What rayo uses of the C interface of wgpu-native 29, which is compute and
// nothing else. Names of functions, layouts of structures and numbers are those
// of the library; a test runs through each of them.
#ifndef RAYO_WGPU_DECLARE_H
#define RAYO_WGPU_DECLARE_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t wg_bool;
typedef uint32_t wg_enum;
typedef uint64_t wg_flags;

typedef struct wg_instance_s *wg_instance;
typedef struct wg_adapter_s *wg_adapter;
typedef struct wg_device_s *wg_device;
typedef struct wg_queue_s *wg_queue;
typedef struct wg_buffer_s *wg_buffer;
typedef struct wg_module_s *wg_module;
typedef struct wg_pipeline_s *wg_pipeline;
typedef struct wg_layout_s *wg_layout;           // of a pipeline
typedef struct wg_group_layout_s *wg_group_layout;
typedef struct wg_group_s *wg_group;
typedef struct wg_queries_s *wg_queries;
typedef struct wg_encoder_s *wg_encoder;
typedef struct wg_pass_s *wg_pass;
typedef struct wg_commands_s *wg_commands;

typedef struct { const char *data; size_t length; } wg_text; // (NULL, SIZE_MAX) is none
typedef struct wg_chain { struct wg_chain *next; wg_enum type; } wg_chain;
typedef struct { uint64_t id; } wg_future;

enum {
	WG_SOURCE_WGSL = 0x2, // of wg_chain.type
	WG_INSTANCE_EXTRAS = 0x30004,

	WG_BACKEND_VULKAN = 1 << 0, // sets
	WG_BACKEND_METAL = 1 << 2,
	WG_BACKEND_DX12 = 1 << 3,

	WG_API_D3D12 = 4, // of an adapter
	WG_API_METAL = 5,
	WG_API_VULKAN = 6,

	WG_INSTANCE_NO_LABELS = 1 << 2,
	WG_LOG_OFF = 0,

	WG_FEATURE_TIMESTAMPS = 0x9,
	WG_FEATURE_HALF = 0xB,
	WG_FEATURE_MAPPABLE = 0x3000E,
	WG_FEATURE_SUBGROUPS = 0x30021,
	WG_FEATURE_SUBGROUP_BARRIER = 0x30023,
	WG_FEATURE_TIMESTAMPS_IN_ENCODERS = 0x30024,

	WG_MAP_READ = 1, // both of a mapping and of a buffer
	WG_MAP_WRITE = 2,
	WG_COPY_SRC = 4,
	WG_COPY_DST = 8,
	WG_UNIFORM = 0x40,
	WG_STORAGE = 0x80,
	WG_QUERY_RESOLVE = 0x200,

	WG_STAGE_COMPUTE = 4,
	WG_BIND_UNIFORM = 2,
	WG_BIND_STORAGE = 3,
	WG_BIND_READ_ONLY = 4,

	WG_QUERY_TIMESTAMP = 2,

	WG_ERROR_VALIDATION = 2,
	WG_ERROR_OUT_OF_MEMORY = 3,
	WG_ERROR_INTERNAL = 4,

	WG_SUCCESS = 1, // of every status
	WG_SPONTANEOUS = 3, // callbacks run in whatever call finds them due
	WG_LOST_DESTROYED = 2,
};

typedef void (*wg_map_done)(wg_enum status, wg_text message, void *a, void *b);
typedef void (*wg_work_done)(wg_enum status, wg_text message, void *a, void *b);
typedef void (*wg_device_ready)(wg_enum status, wg_device device, wg_text message, void *a, void *b);
typedef void (*wg_device_lost)(wg_device const *device, wg_enum reason, wg_text message, void *a, void *b);
typedef void (*wg_device_error)(wg_device const *device, wg_enum type, wg_text message, void *a, void *b);
typedef void (*wg_log)(wg_enum level, wg_text message, void *a);

typedef struct { wg_chain *next; wg_enum mode; wg_map_done call; void *a, *b; } wg_on_map;
typedef struct { wg_chain *next; wg_enum mode; wg_work_done call; void *a, *b; } wg_on_work;
typedef struct { wg_chain *next; wg_enum mode; wg_device_ready call; void *a, *b; } wg_on_device;
typedef struct { wg_chain *next; wg_enum mode; wg_device_lost call; void *a, *b; } wg_on_lost;
typedef struct { wg_chain *next; wg_device_error call; void *a, *b; } wg_on_error;

typedef struct {
	wg_chain chain;
	wg_flags backends, flags;
	wg_enum dx12_compiler, gles_version, gl_fence;
	wg_text dxc_path;
	wg_enum dxc_model, dx12_swapchain;
	const uint8_t *creation_budget, *loss_budget;
	struct { wg_enum type; union { struct { void *display; int screen; } x; void *wayland; } data; } display;
} wg_instance_extras;

typedef struct { wg_chain *next; size_t features; const wg_enum *feature; const void *limits; } wg_instance_desc;
typedef struct { const wg_chain *next; wg_flags backends; } wg_enumerate;

typedef struct {
	wg_chain *next;
	wg_text vendor, architecture, device, description;
	wg_enum api, type;
	uint32_t vendor_id, device_id, subgroup_min, subgroup_max;
} wg_adapter_info;

typedef struct {
	wg_chain *next;
	uint32_t texture_1d, texture_2d, texture_3d, texture_layers;
	uint32_t groups, groups_and_vertex_buffers, bindings;
	uint32_t dynamic_uniforms, dynamic_storages;
	uint32_t sampled_textures, samplers, storage_buffers, storage_textures, uniform_buffers;
	uint64_t uniform_bytes, storage_bytes;
	uint32_t uniform_align, storage_align;
	uint32_t vertex_buffers;
	uint64_t buffer_bytes;
	uint32_t vertex_attributes, vertex_stride, inter_stage, color_attachments, color_bytes;
	uint32_t workgroup_bytes, invocations, size_x, size_y, size_z, grid;
	uint32_t immediate_bytes;
} wg_limits;

typedef struct { wg_chain *next; wg_text label; } wg_labelled; // command encoders and buffers, queues, shader modules

typedef struct {
	wg_chain *next;
	wg_text label;
	size_t features;
	const wg_enum *feature;
	const wg_limits *limits;
	wg_labelled queue;
	wg_on_lost lost;
	wg_on_error error;
} wg_device_desc;

typedef struct { wg_chain *next; wg_text label; wg_flags usage; uint64_t size; wg_bool mapped; } wg_buffer_desc;
typedef struct { wg_chain chain; wg_text code; } wg_source;

typedef struct {
	wg_chain *next;
	uint32_t binding;
	wg_flags stages;
	uint32_t array;
	struct { wg_chain *next; wg_enum type; wg_bool dynamic; uint64_t least; } buffer;
	struct { wg_chain *next; wg_enum type; } sampler;
	struct { wg_chain *next; wg_enum sample, dimension; wg_bool multisampled; } texture;
	struct { wg_chain *next; wg_enum access, format, dimension; } storage_texture;
} wg_layout_entry;

typedef struct { wg_chain *next; wg_text label; size_t entries; const wg_layout_entry *entry; } wg_group_layout_desc;
typedef struct { wg_chain *next; wg_text label; size_t groups; const wg_group_layout *group; uint32_t immediates; } wg_layout_desc;
typedef struct { wg_chain *next; wg_text label; wg_layout layout; struct { wg_chain *next; wg_module module; wg_text entry; size_t constants; const void *constant; } compute; } wg_pipeline_desc;
typedef struct { wg_chain *next; uint32_t binding; wg_buffer buffer; uint64_t offset, size; void *sampler, *texture; } wg_group_entry;
typedef struct { wg_chain *next; wg_text label; wg_group_layout layout; size_t entries; const wg_group_entry *entry; } wg_group_desc;
typedef struct { wg_chain *next; wg_text label; wg_enum type; uint32_t count; } wg_queries_desc;
typedef struct { wg_chain *next; wg_text label; const void *timestamps; } wg_pass_desc;

uint32_t wgpuGetVersion(void);
void wgpuSetLogCallback(wg_log callback, void *a);
void wgpuSetLogLevel(wg_enum level);

wg_instance wgpuCreateInstance(const wg_instance_desc *);
size_t wgpuInstanceEnumerateAdapters(wg_instance, const wg_enumerate *, wg_adapter *);
void wgpuInstanceRelease(wg_instance);

wg_enum wgpuAdapterGetInfo(wg_adapter, wg_adapter_info *);
void wgpuAdapterInfoFreeMembers(wg_adapter_info);
wg_enum wgpuAdapterGetLimits(wg_adapter, wg_limits *);
wg_bool wgpuAdapterHasFeature(wg_adapter, wg_enum);
wg_future wgpuAdapterRequestDevice(wg_adapter, const wg_device_desc *, wg_on_device);
void wgpuAdapterRelease(wg_adapter);

wg_queue wgpuDeviceGetQueue(wg_device);
wg_bool wgpuDevicePoll(wg_device, wg_bool wait, const uint64_t *submission);
void wgpuDeviceRelease(wg_device);
wg_buffer wgpuDeviceCreateBuffer(wg_device, const wg_buffer_desc *);
wg_module wgpuDeviceCreateShaderModule(wg_device, const wg_labelled *);
wg_module wgpuDeviceCreateShaderModuleTrusted(wg_device, const wg_labelled *, wg_flags checks);
wg_group_layout wgpuDeviceCreateBindGroupLayout(wg_device, const wg_group_layout_desc *);
wg_layout wgpuDeviceCreatePipelineLayout(wg_device, const wg_layout_desc *);
wg_pipeline wgpuDeviceCreateComputePipeline(wg_device, const wg_pipeline_desc *);
wg_group wgpuDeviceCreateBindGroup(wg_device, const wg_group_desc *);
wg_queries wgpuDeviceCreateQuerySet(wg_device, const wg_queries_desc *);
wg_encoder wgpuDeviceCreateCommandEncoder(wg_device, const wg_labelled *);

void wgpuShaderModuleRelease(wg_module);
void wgpuBindGroupLayoutRelease(wg_group_layout);
void wgpuPipelineLayoutRelease(wg_layout);
void wgpuComputePipelineRelease(wg_pipeline);
void wgpuBindGroupRelease(wg_group);
void wgpuQuerySetRelease(wg_queries);
void wgpuCommandEncoderRelease(wg_encoder);
void wgpuComputePassEncoderRelease(wg_pass);
void wgpuCommandBufferRelease(wg_commands);
void wgpuQueueRelease(wg_queue);

wg_future wgpuBufferMapAsync(wg_buffer, wg_flags mode, size_t offset, size_t size, wg_on_map);
void *wgpuBufferGetMappedRange(wg_buffer, size_t offset, size_t size);
const void *wgpuBufferGetConstMappedRange(wg_buffer, size_t offset, size_t size);
void wgpuBufferUnmap(wg_buffer);
void wgpuBufferRelease(wg_buffer);

wg_pass wgpuCommandEncoderBeginComputePass(wg_encoder, const wg_pass_desc *);
void wgpuCommandEncoderClearBuffer(wg_encoder, wg_buffer, uint64_t offset, uint64_t size);
void wgpuCommandEncoderCopyBufferToBuffer(wg_encoder, wg_buffer, uint64_t from, wg_buffer, uint64_t to, uint64_t size);
void wgpuCommandEncoderWriteTimestamp(wg_encoder, wg_queries, uint32_t);
void wgpuCommandEncoderResolveQuerySet(wg_encoder, wg_queries, uint32_t first, uint32_t count, wg_buffer, uint64_t to);
wg_commands wgpuCommandEncoderFinish(wg_encoder, const wg_labelled *);

void wgpuComputePassEncoderSetPipeline(wg_pass, wg_pipeline);
void wgpuComputePassEncoderSetBindGroup(wg_pass, uint32_t, wg_group, size_t, const uint32_t *);
void wgpuComputePassEncoderDispatchWorkgroups(wg_pass, uint32_t, uint32_t, uint32_t);
void wgpuComputePassEncoderEnd(wg_pass);

uint64_t wgpuQueueSubmitForIndex(wg_queue, size_t, const wg_commands *);
wg_future wgpuQueueOnSubmittedWorkDone(wg_queue, wg_on_work);
float wgpuQueueGetTimestampPeriod(wg_queue);

#endif

// Vulkan measures how long a driver of Vulkan takes to start: an instance, the first
// device that is one, and nothing else. It prints both times in milliseconds.
//
//	cc -O2 -o vulkan vulkan.c -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

// What it needs of Vulkan 1.0, so that no headers have to be there. The first numbers
// are those of the kinds of structure.
typedef struct { int32_t kind; const void *next; uint32_t flags; const void *app; uint32_t layers; const char *const *layer; uint32_t exts; const char *const *ext; } InstanceInfo;
typedef struct { int32_t kind; const void *next; uint32_t flags, family, count; const float *priorities; } QueueInfo;
typedef struct { int32_t kind; const void *next; uint32_t flags, queues; const QueueInfo *queue; uint32_t layers; const char *const *layer; uint32_t exts; const char *const *ext; const void *features; } DeviceInfo;
typedef void (*Function)(void);
typedef Function (*GetProc)(void *, const char *);
typedef int32_t (*CreateInstance)(const InstanceInfo *, const void *, void **);
typedef int32_t (*Enumerate)(void *, uint32_t *, void **);
typedef int32_t (*CreateDevice)(void *, const DeviceInfo *, const void *, void **);

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(void) {
	double start = now();
	void *lib = dlopen("libvulkan.so.1", RTLD_NOW);
	GetProc get = lib ? (GetProc)dlsym(lib, "vkGetInstanceProcAddr") : 0;
	if (!get) {
		fprintf(stderr, "vulkan: no libvulkan.so.1\n");
		return 1;
	}
	InstanceInfo info = {.kind = 1};
	void *instance, *device, *all[16];
	uint32_t n = 16;
	if (((CreateInstance)get(0, "vkCreateInstance"))(&info, 0, &instance) != 0)
		return 1;
	double made = now();
	int32_t err = ((Enumerate)get(instance, "vkEnumeratePhysicalDevices"))(instance, &n, all);
	if (err < 0 || n == 0) {
		fprintf(stderr, "vulkan: no device (%d)\n", err);
		return 1;
	}
	float one = 1;
	QueueInfo queue = {.kind = 2, .count = 1, .priorities = &one};
	DeviceInfo opened = {.kind = 3, .queues = 1, .queue = &queue};
	if ((err = ((CreateDevice)get(instance, "vkCreateDevice"))(all[0], &opened, 0, &device)) != 0) {
		fprintf(stderr, "vulkan: no device (%d)\n", err);
		return 1;
	}
	double end = now();
	printf("%.1f %.1f\n", made - start, end - made);
	return 0;
}

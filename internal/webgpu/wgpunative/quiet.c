//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

// The library creates its instance of Vulkan with the extensions for windows that
// there are, and cannot be told otherwise. Mesa's layer that sorts devices, for
// those who have several screens, then looks for Wayland, whose library complains on
// the standard error where there is no screen. Only a variable keeps the layer
// away, and it is read while the instance is created.

#include "native.h"

#include <stdlib.h>

#ifdef __linux__

static const char off[] = "NODEVICE_SELECT";

int rayo_quiet(void) {
	if (getenv("XDG_RUNTIME_DIR") != NULL || getenv(off) != NULL) return 0;
	return setenv(off, "1", 1) == 0;
}

void rayo_loud(int quiet) {
	if (quiet) unsetenv(off);
}

#else

int rayo_quiet(void) { return 0; }

void rayo_loud(int quiet) {}

#endif

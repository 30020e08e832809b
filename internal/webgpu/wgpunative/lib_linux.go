//go:build cgo && !nowebgpu && (amd64 || arm64) && !android

package wgpunative

// #cgo LDFLAGS: -Wl,--wrap=_Unwind_RaiseException -Wl,--wrap=abort -Wl,--wrap=write
import "C"

import _ "github.com/oliverbestmann/webgpu/libs-linux" // libwgpu_native.a

const backends = vulkan

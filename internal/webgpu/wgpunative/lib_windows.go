//go:build cgo && !nowebgpu && (amd64 || arm64)

package wgpunative

import _ "github.com/oliverbestmann/webgpu/libs-windows" // libwgpu_native.a

const backends = vulkan | dx12

//go:build cgo && !nowebgpu && (amd64 || arm64) && !android

package wgpunative

import _ "github.com/oliverbestmann/webgpu/libs-linux" // libwgpu_native.a

const backends = vulkan

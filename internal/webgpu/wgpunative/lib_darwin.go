//go:build cgo && !nowebgpu && !ios

package wgpunative

import _ "github.com/oliverbestmann/webgpu/libs-darwin" // libwgpu_native.a

const backends = metal

// Package host runs modules of SIMD128 kernels: in the JavaScript engine, or in wazero under the
// build tag wazero.
package host

import (
	"math"

	"github.com/rayo-go/rayo/internal/wasm/jshost"
)

// Host is an instance of a module.
type Host = jshost.Host

// Start returns an instance whose kernels work on this program's memory.
func Start(module []byte) (*Host, error) { return jshost.Start(module) }

// Block is the number of elements that one call of an elementwise kernel computes at most.
const Block = math.MaxInt

//go:build !js

package ir

import "crypto/sha256"

// digest returns a hash of b.
func digest(b []byte) [32]byte { return sha256.Sum256(b) }

package ir

import "hash/fnv"

// digest returns a key of bytes. Package crypto/sha256, with all that it brings of random
// numbers and ciphers, would be loaded by every page; nothing here is kept beyond it.
func digest(b []byte) (key [32]byte) {
	h := fnv.New128a()
	h.Write(b)
	h.Sum(key[:0])
	return key
}

package ir

import "hash/fnv"

// digest returns a hash of b. Pages do not use crypto/sha256, because every page would have to load
// it with the code for random numbers and ciphers that it needs. Pages do not store these hashes.
func digest(b []byte) (key [32]byte) {
	h := fnv.New128a()
	h.Write(b)
	h.Sum(key[:0])
	return key
}

package memory

// largest is the largest size in bytes of an allocation: half of the address space of
// WebAssembly, although int has 64 bits.
const largest = 1 << 31

package memory

// largest is half of what WebAssembly can address, although int has 64 bits.
const largest = 1 << 31

// Package gguf reads and writes GGUF files, in which language models are
// published: typed metadata, and tensors, most of them blocks of quantised
// numbers (package [github.com/rayo-go/rayo/gguf/block]).
//
//	f, err := gguf.Open("model.gguf")
//	if err != nil { ... }
//	defer f.Close()
//	arch, _ := f.Metadata().Text("general.architecture")
//	for t := range f.Tensors() {
//		fmt.Println(t.Name, t.Type, t.Dims)
//	}
//
// # Untrusted files
//
// The package does not trust files. Open checks every count, length, size and offset against the
// size of the file before it allocates memory, so it uses at most a small multiple of the file's
// size. A malformed file gives a [FormatError] that names the field and its byte offset.
//
// Tensors are read with ReadAt into memory of the caller. If another process truncates
// the file meanwhile, this returns an error. With the option [Mapped] a tensor's bytes
// are also available as a view of the file, without a copy. Such a view is only as safe
// as the file: if the file is truncated, access to the missing pages is a fault that ends
// the program. [Tensor.View] turns the fault into an error for the function it calls.
package gguf

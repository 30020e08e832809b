// Package llm runs language models from GGUF files on every device of package device: a CPU, an
// NVIDIA GPU, or a WebGPU adapter.
//
//	m, err := llm.Open(ctx, dev, "model.gguf", llm.Options{})
//	if err != nil { ... }
//	defer m.Close()
//	s := m.NewSession()
//	defer s.Close()
//	for t, err := range s.Generate(ctx, prompt, llm.Sampling{Temperature: 0.8, TopP: 0.95, MaxTokens: 200}) {
//		if err != nil { ... }
//		fmt.Println(t.ID)
//	}
//
// Tokens are numbers here: the indices of rows of the model's embedding. Packages llm/tokenizer and
// llm/chat convert text and conversations to them.
//
// # Weights and plans
//
// Weights are uploaded in the format of the file: quantised blocks stay quantised. A pass over the
// model is a graph of package batch, compiled once for each of a few numbers of rows: one row to
// decode, a few rows, and a chunk of a prompt. Positions, lengths and places in the cache are
// operands, so a plan serves all of them, and all sessions.
//
// # Cache
//
// The keys and values of all sessions of a model are in one pool of pages, whose size is fixed when
// the model is opened. A session takes a page for every [PageSize] tokens. [Session.Fork] shares
// pages, and [Session.Rewind] frees them. Sessions that begin with the same tokens share full pages
// automatically. The pages of closed sessions stay shareable until the cache needs them.
package llm

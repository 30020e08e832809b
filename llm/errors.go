package llm

import (
	"errors"
	"fmt"

	"github.com/rayo-go/rayo/device"
)

var (
	// ErrClosed is returned by a model or a session after Close.
	ErrClosed = device.ErrClosed
	// ErrModel is wrapped by errors about a file without a model that this package supports.
	ErrModel = errors.New("not a model that can be run")
	// ErrToken is wrapped by errors about tokens outside of the vocabulary, and about missing
	// tokens.
	ErrToken = errors.New("invalid tokens")
	// ErrSampling is wrapped by errors about the parameters of Sampling.
	ErrSampling = errors.New("invalid sampling")
	// ErrState is wrapped by errors about data that is not a saved session of the model.
	ErrState = errors.New("not a saved session of this model")
)

// CapacityError reports tokens that do not fit in the session, or in the cache that all sessions of
// a model share. The session does not change.
type CapacityError struct {
	Tokens   int  // tokens that the session would have
	Capacity int  // tokens that it may have
	Shared   bool // the cache is full; other sessions hold the rest
}

// Error says which limit was reached and what to do.
func (e *CapacityError) Error() string {
	if e.Shared {
		return fmt.Sprintf("no room for %d tokens: the cache is full, and this session can have %d: close or rewind sessions, or open the model with a larger Options.Cache", e.Tokens, e.Capacity)
	}
	return fmt.Sprintf("no room for %d tokens: the session holds at most %d: rewind it, or open the model with a larger Options.Context", e.Tokens, e.Capacity)
}

// A ConfigError reports a key of the metadata that is missing or wrong. It wraps
// [ErrModel].
type ConfigError struct {
	Key    string // for example llama.block_count
	Reason string
}

// Error names the key.
func (e *ConfigError) Error() string { return e.Key + ": " + e.Reason }

// Unwrap returns ErrModel.
func (e *ConfigError) Unwrap() error { return ErrModel }

// A TensorError reports a tensor that is missing or has another shape than the metadata
// say. It wraps [ErrModel].
type TensorError struct {
	Name   string // for example blk.0.attn_q.weight
	Reason string
}

// Error names the tensor.
func (e *TensorError) Error() string { return "tensor " + e.Name + ": " + e.Reason }

// Unwrap returns ErrModel.
func (e *TensorError) Unwrap() error { return ErrModel }

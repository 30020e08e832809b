package batch_test

import (
	"reflect"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// TestPeerMethods checks that every method in op.Peers exists.
func TestPeerMethods(t *testing.T) {
	b := reflect.TypeFor[*batch.Batch]()
	for _, p := range op.Peers() {
		if _, ok := b.MethodByName(p.Method); p.Method != "" && !ok {
			t.Errorf("package batch has no method %s", p.Method)
		}
	}
}

package testutil

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// ShaderCompilers are the names of the compilers of WGSL that [Rejected] asks, as
// [Need] knows them.
var ShaderCompilers = []string{"naga", "tint"}

// accepted holds the texts that compilers have accepted in this process: many kernels
// have the same text for several targets.
var accepted sync.Map // of acceptedText

type acceptedText struct {
	compiler string
	text     [sha256.Size]byte
}

// Rejected compiles WGSL texts, given by name, and returns the messages of the compiler
// for the texts that it rejects. It calls [Need] for the compiler.
//
// One naga process takes all texts. tint needs a process for each text, which takes some
// milliseconds on all processors; with -short it compiles one text of eight, at random.
func Rejected(t testing.TB, compiler string, texts map[string]string) map[string]string {
	t.Helper()
	Need(t, compiler)
	dir := t.TempDir()
	var files, names []string
	for name, text := range texts {
		if _, ok := accepted.Load(acceptedText{compiler, sha256.Sum256([]byte(text))}); ok || testing.Short() && len(texts) > 8 && rand.IntN(8) > 0 {
			continue
		}
		f := filepath.Join(dir, fmt.Sprintf("%d.wgsl", len(files)))
		if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files, names = append(files, f), append(names, name)
	}
	ask := func(files ...string) (said string, ok bool) {
		args := append([]string{"--bulk-validate"}, files...)
		if compiler == "tint" {
			args = append([]string{"--format", "wgsl", "-o", os.DevNull}, files...)
		}
		out, err := exec.Command(compiler, args...).CombinedOutput()
		if _, exited := err.(*exec.ExitError); err != nil && !exited {
			t.Error(err)
		}
		return string(bytes.TrimSpace(out)), err == nil
	}
	rejected := make(map[string]string)
	if len(files) == 0 {
		return rejected
	}
	defer func() {
		for _, name := range names {
			if _, bad := rejected[name]; !bad {
				accepted.Store(acceptedText{compiler, sha256.Sum256([]byte(texts[name]))}, nil)
			}
		}
	}()
	if compiler == "naga" {
		if _, ok := ask(files...); ok {
			return rejected
		}
	}
	var mu sync.Mutex
	inParallel(len(files), func(i int) {
		if said, ok := ask(files[i]); !ok {
			mu.Lock()
			rejected[names[i]] = said
			mu.Unlock()
		}
	})
	return rejected
}

// inParallel calls f for 0 to n-1, on all processors.
func inParallel(n int, f func(i int)) {
	var group sync.WaitGroup
	var next atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	group.Wait()
}

// Judge fails the test for each text that the compiler rejects, and shows it.
func Judge(t testing.TB, compiler string, texts map[string]string) {
	t.Helper()
	for name, said := range Rejected(t, compiler, texts) {
		var lines strings.Builder
		for i, l := range strings.Split(texts[name], "\n") {
			fmt.Fprintf(&lines, "%3d %s\n", i+1, l)
		}
		t.Errorf("%s rejects %s: %s\n%s", compiler, name, said, &lines)
	}
}

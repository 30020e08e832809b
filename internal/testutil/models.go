package testutil

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The real models that tests open, as names for [Model].
const (
	Gemma3  = "gemma-3-270m-q4_k_m.gguf"        // architecture gemma3, tokenizer llama, Q4_K and Q6_K
	SmolLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf" // architecture llama, tokenizer gpt2, Q4_1, with a chat template
	MiniLM  = "all-MiniLM-L6-v2"                // architecture bert: a folder with model.safetensors
)

// modelsFolder returns the folder that RAYO_MODELS names, or the one of the
// user's cache, as .ci/models.sh does.
func modelsFolder() string {
	if f := os.Getenv("RAYO_MODELS"); f != "" {
		return f
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if cache == "" {
		home := os.Getenv("HOME")
		if home == "" {
			home = "/tmp"
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "rayo-ci", "models")
}

// models is the probe of all of them.
func models() error {
	for _, name := range []string{Gemma3, SmolLM2, MiniLM} {
		if _, err := os.Stat(filepath.Join(modelsFolder(), name)); err != nil {
			return fmt.Errorf("there is no %s (bash .ci/models.sh fetches it; RAYO_MODELS may name its folder)", name)
		}
	}
	return nil
}

// Model returns the path of a real model. Where it is missing the test is skipped
// or, if RAYO_REQUIRE lists models, .ci/models.sh fetches it. With -short it is skipped where RAYO_REQUIRE
// does not list them: emulators of processors and JavaScript take minutes to read one. Names of such tests
// begin with TestReal, which make race leaves out.
func Model(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() && !Required("models") {
		Missing(t, "models", errors.New("with -short real models are opened only where RAYO_REQUIRE lists them"))
	}
	path := filepath.Join(modelsFolder(), name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if !Required("models") {
		Need(t, "models")
	}
	script, err := upwards(filepath.Join(".ci", "models.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("bash", script).CombinedOutput(); err != nil {
		t.Fatalf("RAYO_REQUIRE lists models, but models.sh: %v: %s", err, out)
	}
	return path
}

// upwards looks for a file in the working directory and those above it.
func upwards(file string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(dir, file)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no %s in this directory or above it", strings.ReplaceAll(file, `\`, "/"))
		}
		dir = up
	}
}

// Package testutil declares the requirements of tests, and measures the memory
// and the goroutines of tests reliably on a busy machine.
//
// A test that needs something which not every machine has calls [Need] first.
// Where the thing is missing the test is skipped with one line that says why,
// and fails instead if the environment variable RAYO_REQUIRE, a comma-separated
// list, names it: a machine that is known to have qemu cannot lose its arm64
// tests without anyone noticing.
package testutil

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/cpuid/v2"
)

// things maps each name that Need and RAYO_REQUIRE understand to a probe,
// which returns why the thing is missing, or nil.
var things = map[string]func() error{
	"avx2":    cpu("amd64", cpuid.AVX2, cpuid.FMA3, cpuid.F16C, cpuid.BMI2),
	"avx512":  cpu("amd64", cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL, cpuid.AVX512VBMI2),
	"neon":    cpu("arm64", cpuid.ASIMD),
	"cores":   cores,
	"cuda":    cuda,
	"cuda2":   cuda2,
	"cgo":     command("gcc", "clang", "cc"),
	"race":    command("gcc", "clang", "cc"),
	"go":      command("go"),
	"node":    command("node"),
	"bash":    command("bash"),
	"objdump": command("aarch64-linux-gnu-objdump"),
	"qemu":    command("qemu-aarch64-static", "qemu-aarch64"),
	"naga":    command("naga"),
	"tint":    command("tint"),
	"ptxas":   command("ptxas"),
	"tuning": func() error {
		if os.Getenv("RAYO_TUNE") == "" {
			return errors.New("RAYO_TUNE is not set")
		}
		return nil
	},
	"long": func() error {
		if testing.Short() {
			return errors.New("-short skips long tests")
		}
		return nil
	},
	"unshare": func() error {
		_, err := view()
		return err
	},

	"models":      models,
	"browser":     browser,
	"vulkan":      vulkan("lavapipe"),
	"swiftshader": vulkan("swiftshader"),

	"schedstat": func() error {
		_, err := os.ReadFile("/proc/thread-self/schedstat")
		return err
	},
}

// Need skips the test if the machine lacks the named thing, and fails it if
// RAYO_REQUIRE lists that thing. The names:
//
//	avx2, avx512, neon  the instruction set, whatever RAYO_SIMD says
//	browser             WebGPU in the JavaScript that runs the program; elsewhere, Node.js and Chromium
//	cores               two or more processors
//	cuda, cuda2         an NVIDIA device and its driver; two devices
//	schedstat           a kernel that tells how long a thread waited for a processor
//	cgo, race           a C compiler, which -race needs too
//	go                  the go command
//	node                Node.js
//	objdump             the disassembler of arm64
//	qemu                user-mode emulation of arm64
//	models              the real models of [Model]
//	naga, tint          the WGSL compilers of wgpu and of Dawn
//	ptxas               the PTX assembler of NVIDIA
//	tuning              RAYO_TUNE, which says what somebody who tunes a kernel compares
//	long                a run without -short
//	unshare             leave to have a view of the file system of one's own
//	vulkan              Vulkan, with Mesa's software driver lavapipe
//	swiftshader         Vulkan's software driver of Chromium
func Need(t testing.TB, thing string) {
	t.Helper()
	probe, ok := things[thing]
	if !ok {
		t.Fatalf("testutil: no thing is called %q; there are %s", thing, strings.Join(Things(), ", "))
	}
	if err := probe(); err != nil {
		Missing(t, thing, err)
	}
}

// Missing skips or fails the test as Need does for a missing thing. It is for tests that
// find out by themselves that the thing is missing, and why.
func Missing(t testing.TB, thing string, why error) {
	t.Helper()
	if Required(thing) {
		t.Fatalf("RAYO_REQUIRE lists %s, but %v", thing, why)
	}
	t.Skipf("needs %s: %v", thing, why)
}

// Required reports whether RAYO_REQUIRE lists the thing.
func Required(thing string) bool { return slices.Contains(required(), thing) }

// Things returns the names that Need understands, in order.
func Things() []string { return slices.Sorted(maps.Keys(things)) }

func required() []string {
	return strings.FieldsFunc(os.Getenv("RAYO_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
}

func cpu(arch string, features ...cpuid.FeatureID) func() error {
	return func() error {
		if runtime.GOARCH != arch {
			return fmt.Errorf("this is %s", runtime.GOARCH)
		}
		for _, f := range features {
			if !cpuid.CPU.Supports(f) {
				return fmt.Errorf("this processor has no %v", f)
			}
		}
		return nil
	}
}

func cores() error {
	if n := runtime.NumCPU(); n < 2 {
		return fmt.Errorf("this machine has %d processor", n)
	}
	return nil
}

// command looks for the first of names on the path.
func command(names ...string) func() error {
	return func() error {
		for _, n := range names {
			if _, err := exec.LookPath(n); err == nil {
				return nil
			}
		}
		return fmt.Errorf("%s is not on the path", strings.Join(names, " or "))
	}
}

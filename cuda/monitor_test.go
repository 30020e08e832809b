package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/dl"
)

// A fakeNVML is a management library with two devices. The functions in broken fail, and
// the functions in missing are absent.
type fakeNVML struct {
	names   []string
	broken  map[string]bool
	missing map[string]bool
	text    []byte
}

func (k *fakeNVML) Symbol(name string) (uintptr, error) {
	if k.missing[name] {
		return 0, fmt.Errorf("fake: %w: %s", dl.ErrNoSymbol, name)
	}
	k.names = append(k.names, name)
	return uintptr(len(k.names)), nil
}

func (k *fakeNVML) call(f *frame) {
	name := k.names[f.Fn-1]
	a := f.Args
	f.Result = 0
	if k.broken[name] {
		f.Result = 3 // not supported
		return
	}
	switch name {
	case "nvmlErrorString":
		k.text = onHeap("Not Supported")
		f.Result = address(k.text)
	case "nvmlSystemGetDriverVersion":
		copy(at(a[0], int(a[1])), "580.1")
	case "nvmlDeviceGetCount_v2":
		store32(a[0], 2)
	case "nvmlDeviceGetHandleByIndex_v2":
		store(a[1], uint64(0x100+a[0]))
	case "nvmlDeviceGetName":
		copy(at(a[1], int(a[2])), fmt.Sprintf("Fake H%d", a[0]-0x100))
	case "nvmlDeviceGetUUID":
		copy(at(a[1], int(a[2])), "GPU-0")
	case "nvmlDeviceGetPciInfo_v3":
		b := at(a[1], 68)
		b[20], b[24] = 0x1b, 2
	case "nvmlDeviceGetUtilizationRates":
		store(a[1], 7<<32|93)
	case "nvmlDeviceGetMemoryInfo":
		store(a[1], 1000)
		store(a[1]+8, 600)
		store(a[1]+16, 400)
	case "nvmlDeviceGetTemperature":
		store32(a[2], 41)
	case "nvmlDeviceGetPowerUsage":
		store32(a[1], 123400)
	case "nvmlDeviceGetEnforcedPowerLimit":
		store32(a[1], 700000)
	case "nvmlDeviceGetClockInfo":
		store32(a[2], 1980+int(a[1]))
	case "nvmlDeviceGetPcieThroughput":
		store32(a[2], 3+int(a[1]))
	case "nvmlDeviceGetCurrentClocksThrottleReasons", "nvmlDeviceGetCurrentClocksEventReasons":
		store(a[1], 1<<2|1<<5|1)
	case "nvmlDeviceGetMaxClockInfo":
		store32(a[2], 2000)
	case "nvmlDeviceGetFanSpeed", "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth":
		store32(a[1], 5)
	}
}

func TestMonitor(t *testing.T) {
	k := &fakeNVML{broken: map[string]bool{"nvmlDeviceGetFanSpeed": true}, missing: map[string]bool{"nvmlDeviceGetCurrentClocksEventReasons": true}}
	m, err := newMonitor(k)
	if err != nil || m.Driver() != "580.1" {
		t.Fatalf("monitor of driver %q, %v", m.Driver(), err)
	}
	all, err := m.Read()
	if err != nil || len(all) != 2 {
		t.Fatalf("Read = %v, %v", all, err)
	}
	b, err := json.Marshal(all[1])
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"index":1,"name":"Fake H1","uuid":"GPU-0","pci":"0000:1b:02.0","utilization_percent":93,"memory_utilization_percent":7,` +
		`"memory_used_bytes":400,"memory_total_bytes":1000,"temperature_celsius":41,"power_watts":123.4,"power_limit_watts":700,"clock_mhz":1980,` +
		`"clock_max_mhz":2000,"memory_clock_mhz":1982,"fan_percent":null,"pcie_received_bytes_per_second":4096,"pcie_sent_bytes_per_second":3072,` +
		`"pcie_generation":5,"pcie_width":5,"slowed":["power limit","temperature"]}`
	if string(b) != want {
		t.Errorf("sample:\n%s\nwant:\n%s", b, want)
	}
	if all[0].Fan.Known() || all[0].Fan.String() != "unknown" || all[0].Power.String() != "123.4" {
		t.Errorf("fan %v, power %v", all[0].Fan, all[0].Power)
	}
	m.Close()
	m.Close()
	if _, err := m.Read(); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close: %v", err)
	}
	if _, err := (&Monitor{}).Read(); !errors.Is(err, ErrClosed) {
		t.Errorf("Read of no monitor: %v", err)
	}
}

// TestMonitorWithout lets each function of the library fail in turn, and leaves out each function in turn.
func TestMonitorWithout(t *testing.T) {
	whole := &fakeNVML{}
	m, err := newMonitor(whole)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Read(); err != nil {
		t.Fatal(err)
	}
	for _, name := range whole.names {
		for _, k := range []*fakeNVML{{broken: map[string]bool{name: true}}, {missing: map[string]bool{name: true}}} {
			m, err := newMonitor(k)
			if name == "nvmlInit_v2" {
				if !errors.Is(err, ErrNoMonitor) {
					t.Errorf("without %s: %v", name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			all, err := m.Read()
			switch name {
			case "nvmlDeviceGetCount_v2":
				if !errors.Is(err, ErrNoMonitor) || k.broken[name] && !strings.Contains(err.Error(), "Not Supported") {
					t.Errorf("without %s: %v", name, err)
				}
			case "nvmlDeviceGetHandleByIndex_v2":
				if len(all) != 0 || err != nil {
					t.Errorf("without %s: %v, %v", name, all, err)
				}
			default:
				if len(all) != 2 || err != nil {
					t.Errorf("without %s: %v, %v", name, all, err)
				}
			}
		}
	}
	if _, err := OpenMonitor(); err != nil && !errors.Is(err, ErrNoMonitor) {
		t.Error(err)
	}
}

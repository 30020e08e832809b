package cuda

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"sync"
)

// ErrNoMonitor is wrapped by the error of [OpenMonitor] if the management
// library of the driver (NVML) is missing or cannot be used.
var ErrNoMonitor = errors.New("no NVIDIA management library")

// A Reading is a measured number, or [Unknown]. Not every device and not every
// system can tell everything.
type Reading float64

// Unknown is the reading of a value that cannot be read. It is not equal to itself: ask
// [Reading.Known].
var Unknown = Reading(math.NaN())

// Known reports whether the reading is a number.
func (r Reading) Known() bool { return r == r }

// String returns the number in short, or "unknown".
func (r Reading) String() string {
	if !r.Known() {
		return "unknown"
	}
	return strconv.FormatFloat(float64(r), 'f', -1, 64)
}

// MarshalJSON returns the number, or null if it is unknown.
func (r Reading) MarshalJSON() ([]byte, error) {
	if !r.Known() || math.IsInf(float64(r), 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(r), 'f', -1, 64), nil
}

// A Sample is the state of a device at one moment.
type Sample struct {
	Index int    `json:"index"` // in the order of the management library, which is the order on the bus
	Name  string `json:"name"`
	UUID  string `json:"uuid"` // as in Info
	PCI   string `json:"pci"`

	Utilization       Reading `json:"utilization_percent"`        // of the time in which a kernel ran, lately
	MemoryUtilization Reading `json:"memory_utilization_percent"` // of the time in which memory was read or written
	MemoryUsed        Reading `json:"memory_used_bytes"`
	MemoryTotal       Reading `json:"memory_total_bytes"`
	Temperature       Reading `json:"temperature_celsius"`
	Power             Reading `json:"power_watts"`
	PowerLimit        Reading `json:"power_limit_watts"`
	Clock             Reading `json:"clock_mhz"` // of the multiprocessors
	ClockMax          Reading `json:"clock_max_mhz"`
	MemoryClock       Reading `json:"memory_clock_mhz"`
	Fan               Reading `json:"fan_percent"`
	PCIeReceived      Reading `json:"pcie_received_bytes_per_second"`
	PCIeSent          Reading `json:"pcie_sent_bytes_per_second"`
	PCIeGeneration    Reading `json:"pcie_generation"`
	PCIeWidth         Reading `json:"pcie_width"`

	// Slowed says why the clocks are lower than they could be; empty if they
	// are not, or if that is unknown.
	Slowed []string `json:"slowed,omitempty"`
}

// A Monitor reads the state of all devices, without a context on any and beside
// whatever uses them. It is safe for concurrent use.
type Monitor struct {
	lib    library
	driver string

	mu     sync.Mutex
	closed bool
	addr   map[string]uintptr // 0 for missing functions
}

// monitorNames are the names of the management library.
func monitorNames() []string {
	switch runtime.GOOS {
	case "linux":
		return []string{"libnvidia-ml.so.1", "libnvidia-ml.so", "/usr/lib/wsl/lib/libnvidia-ml.so.1", "/run/opengl-driver/lib/libnvidia-ml.so.1"}
	case "windows":
		return []string{"nvml.dll", `C:\Program Files\NVIDIA Corporation\NVSMI\nvml.dll`}
	}
	return nil
}

// OpenMonitor loads the management library. The error wraps [ErrNoMonitor] if
// there is none.
func OpenMonitor() (*Monitor, error) {
	lib, err := loadShared(monitorNames())
	if err != nil {
		return nil, fmt.Errorf("cuda: %w: %w", ErrNoMonitor, err)
	}
	return newMonitor(lib)
}

func newMonitor(lib library) (*Monitor, error) {
	m := &Monitor{lib: lib, addr: map[string]uintptr{}}
	f := newFrame()
	defer f.release()
	if code := m.call(f, "nvmlInit_v2"); code != 0 {
		return nil, fmt.Errorf("cuda: %w: nvmlInit_v2: %s", ErrNoMonitor, m.describe(f, code))
	}
	addr, size := f.buffer()
	f.Args[0], f.Args[1] = addr, size
	if m.call(f, "nvmlSystemGetDriverVersion") == 0 {
		m.driver = f.string()
	}
	return m, nil
}

// nvmlMissing is the result for a function that the library does not have.
const nvmlMissing = 13

// call calls a function with the arguments that are in the frame and returns its
// result. The caller holds the lock, or nobody else knows the monitor yet.
func (m *Monitor) call(f *frame, name string) int {
	fn, known := m.addr[name]
	if !known {
		fn, _ = m.lib.Symbol(name)
		m.addr[name] = fn
	}
	if fn == 0 {
		return nvmlMissing
	}
	f.Fn, f.Bind = fn, 0
	m.lib.call(f)
	f.live()
	return int(int32(f.Result))
}

func (m *Monitor) describe(f *frame, code int) string {
	f.Args[0] = uintptr(code)
	if fn, err := m.lib.Symbol("nvmlErrorString"); err == nil {
		f.Fn, f.Bind = fn, 0
		m.lib.call(f)
		if s := cstring(f.Result); s != "" {
			return s
		}
	}
	return "error " + strconv.Itoa(code)
}

// Driver returns the version of the driver as its makers count it: "580.82.07".
func (m *Monitor) Driver() string {
	if m == nil {
		return ""
	}
	return m.driver
}

// Read reads the state of all devices. It takes about 50 ms for each device, mostly because the
// library measures the traffic on the bus during this time. A value that cannot be read is Unknown;
// an error means that no device can be read.
func (m *Monitor) Read() ([]Sample, error) {
	if m == nil || m.lib == nil {
		return nil, closed("monitor")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, closed("monitor")
	}
	f := newFrame()
	defer f.release()
	f.Args[0] = f.out(0)
	if code := m.call(f, "nvmlDeviceGetCount_v2"); code != 0 {
		return nil, fmt.Errorf("cuda: %w: nvmlDeviceGetCount_v2: %s", ErrNoMonitor, m.describe(f, code))
	}
	n := f.int(0)
	var all []Sample
	for i := range n {
		f.Args[0], f.Args[1] = uintptr(i), f.out(0)
		if m.call(f, "nvmlDeviceGetHandleByIndex_v2") != 0 {
			continue // another user's, or lost
		}
		all = append(all, m.sample(f, i, f.ptr(0)))
	}
	return all, nil
}

// sample reads one device.
func (m *Monitor) sample(f *frame, index int, dev uintptr) Sample {
	s := Sample{Index: index}
	for _, t := range []struct {
		name string
		to   *string
	}{{"nvmlDeviceGetName", &s.Name}, {"nvmlDeviceGetUUID", &s.UUID}} {
		addr, size := f.buffer()
		f.Args[0], f.Args[1], f.Args[2] = dev, addr, size
		if m.call(f, t.name) == 0 {
			*t.to = f.string()
		}
	}
	m.samplePCI(f, dev, &s)
	m.sampleUse(f, dev, &s)
	m.sampleReadings(f, dev, &s)
	m.sampleSlowed(f, dev, &s)
	return s
}

// samplePCI reads the address of the device on the PCI bus.
func (m *Monitor) samplePCI(f *frame, dev uintptr, s *Sample) {
	// nvmlPciInfo_t begins with 16 characters, then domain, bus and device.
	addr, _ := f.buffer()
	f.Args[0], f.Args[1] = dev, addr
	if m.call(f, "nvmlDeviceGetPciInfo_v3") == 0 {
		word := func(at int) uint32 {
			return uint32(f.text[at]) | uint32(f.text[at+1])<<8 | uint32(f.text[at+2])<<16 | uint32(f.text[at+3])<<24
		}
		s.PCI = fmt.Sprintf("%04x:%02x:%02x.0", word(16), word(20), word(24))
	}
}

// sampleUse reads the use of the processors and of the memory.
func (m *Monitor) sampleUse(f *frame, dev uintptr, s *Sample) {
	s.Utilization, s.MemoryUtilization = Unknown, Unknown
	f.Args[0], f.Args[1] = dev, f.out(0)
	if m.call(f, "nvmlDeviceGetUtilizationRates") == 0 {
		s.Utilization, s.MemoryUtilization = Reading(uint32(f.Out[0])), Reading(f.Out[0]>>32)
	}
	s.MemoryUsed, s.MemoryTotal = Unknown, Unknown
	f.Args[0], f.Args[1] = dev, f.out(0)
	if m.call(f, "nvmlDeviceGetMemoryInfo") == 0 { // total, free, used
		s.MemoryTotal, s.MemoryUsed = Reading(f.Out[0]), Reading(f.Out[2])
	}
}

// sampleReadings reads the numbers that have a function each.
func (m *Monitor) sampleReadings(f *frame, dev uintptr, s *Sample) {
	// ask reads a number of 32 bits that a function stores through its last
	// argument.
	ask := func(scale float64, name string, args ...uintptr) Reading {
		f.Args[0] = dev
		n := copy(f.Args[1:], args)
		f.Args[1+n] = f.out(0)
		if m.call(f, name) != 0 {
			return Unknown
		}
		return Reading(float64(uint32(f.int(0))) * scale)
	}
	s.Temperature = ask(1, "nvmlDeviceGetTemperature", 0)
	s.Power = ask(1e-3, "nvmlDeviceGetPowerUsage")
	s.PowerLimit = ask(1e-3, "nvmlDeviceGetEnforcedPowerLimit")
	const graphics, memory = 0, 2
	s.Clock = ask(1, "nvmlDeviceGetClockInfo", graphics)
	s.ClockMax = ask(1, "nvmlDeviceGetMaxClockInfo", graphics)
	s.MemoryClock = ask(1, "nvmlDeviceGetClockInfo", memory)
	s.Fan = ask(1, "nvmlDeviceGetFanSpeed")
	const sent, received = 0, 1
	s.PCIeSent = ask(1024, "nvmlDeviceGetPcieThroughput", sent)
	s.PCIeReceived = ask(1024, "nvmlDeviceGetPcieThroughput", received)
	s.PCIeGeneration = ask(1, "nvmlDeviceGetCurrPcieLinkGeneration")
	s.PCIeWidth = ask(1, "nvmlDeviceGetCurrPcieLinkWidth")
}

// sampleSlowed reads why the device does not run at its maximum clock rate.
func (m *Monitor) sampleSlowed(f *frame, dev uintptr, s *Sample) {
	f.Args[0], f.Args[1] = dev, f.out(0)
	code := m.call(f, "nvmlDeviceGetCurrentClocksEventReasons")
	if code == nvmlMissing { // its name before CUDA 12.2
		f.Args[0], f.Args[1] = dev, f.out(0)
		code = m.call(f, "nvmlDeviceGetCurrentClocksThrottleReasons")
	}
	if code == 0 {
		for i, reason := range slowReasons {
			if reason != "" && f.Out[0]>>i&1 != 0 {
				s.Slowed = append(s.Slowed, reason)
			}
		}
	}
}

// slowReasons has the bits of the reasons for low clocks that count as slowed. An idle device, or
// one with clocks set by its owner, does not count.
var slowReasons = [...]string{2: "power limit", 3: "hardware", 4: "in step with others", 5: "temperature", 6: "hardware temperature", 7: "power brake"}

// Close unloads the library. Closing again does nothing.
func (m *Monitor) Close() error {
	if m == nil || m.lib == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	f := newFrame()
	defer f.release()
	m.call(f, "nvmlShutdown")
	return nil
}

package cuda

import (
	"errors"
	"fmt"
)

// An Attribute is a property of a device that the driver numbers.
type Attribute int32

// Attributes. [Info] has the most common ones.
const (
	MaxThreadsPerBlock          Attribute = 1
	MaxBlockX                   Attribute = 2
	MaxBlockY                   Attribute = 3
	MaxBlockZ                   Attribute = 4
	MaxGridX                    Attribute = 5
	MaxGridY                    Attribute = 6
	MaxGridZ                    Attribute = 7
	SharedPerBlock              Attribute = 8
	ConstantMemory              Attribute = 9
	WarpSize                    Attribute = 10
	RegistersPerBlock           Attribute = 12
	ClockRate                   Attribute = 13 // kHz
	Multiprocessors             Attribute = 16
	KernelTimeout               Attribute = 17 // 1 if long kernels are stopped
	Integrated                  Attribute = 18
	ComputeMode                 Attribute = 20
	ECC                         Attribute = 32
	MemoryClockRate             Attribute = 36 // kHz
	MemoryBusWidth              Attribute = 37 // bits
	L2Cache                     Attribute = 38
	MaxThreadsPerMultiprocessor Attribute = 39
	CopyEngines                 Attribute = 40
	CapabilityMajor             Attribute = 75
	CapabilityMinor             Attribute = 76
	SharedPerMultiprocessor     Attribute = 81
	RegistersPerMultiprocessor  Attribute = 82
	CooperativeLaunch           Attribute = 95
	SharedPerBlockOptin         Attribute = 97
	MaxBlocksPerMultiprocessor  Attribute = 106
	MemoryPools                 Attribute = 115
	ClusterLaunch               Attribute = 120
)

// Info describes a device. Sizes are in bytes.
type Info struct {
	Ordinal    int        // its number for Open
	Name       string     // the name that NVIDIA gives it
	UUID       string     // "GPU-" and 32 hexadecimal digits in groups
	PCI        string     // domain, bus and device: "0000:1b:00.0"
	Capability Capability // 9.0 for Hopper
	Driver     Version    // the version of CUDA that the driver is for
	Memory     int64      // of the device

	Multiprocessors             int
	MaxThreadsPerBlock          int
	MaxThreadsPerMultiprocessor int
	MaxBlocksPerMultiprocessor  int
	MaxGrid, MaxBlock           [3]int // blocks of a grid, threads of a block, along each axis
	WarpSize                    int
	RegistersPerBlock           int
	RegistersPerMultiprocessor  int
	SharedPerBlock              int // that every kernel can have
	SharedPerBlockOptin         int // that a kernel can have; Launch asks for it where needed
	SharedPerMultiprocessor     int
	L2Cache                     int
	MemoryBusWidth              int // bits
	ClockRate, MemoryClockRate  int // kHz, or 0 if unknown

	Integrated    bool // it shares the memory of the host
	ECC           bool // its memory corrects errors
	KernelTimeout bool // a kernel that runs for seconds is stopped: the device drives a display
	Cooperative   bool // it can launch cooperative grids
	Clusters      bool // it can launch clusters
	MemoryPools   bool // it allocates in stream order
}

// Devices returns all devices that the driver sees, in the order of their ordinals. The environment
// variable CUDA_VISIBLE_DEVICES selects and orders them, as for every CUDA program. The error wraps
// [ErrNoDriver], [ErrDriverTooOld] or [ErrNoDevice] if there is none.
func Devices() ([]Info, error) { return system.devices() }

func (d *driver) devices() ([]Info, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	f := newFrame()
	defer f.release()
	f.Args[0] = f.out(0)
	if err := d.call(f, cuDeviceGetCount, 0); err != nil {
		return nil, err
	}
	n := f.int(0)
	if n == 0 {
		return nil, fmt.Errorf("cuda: %w: the driver found no devices", ErrNoDevice)
	}
	var all []Info
	var errs []error
	for i := range n {
		dev, err := d.device(f, i)
		if err == nil {
			var info Info
			if info, err = d.info(f, i, dev); err == nil {
				all = append(all, info)
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("device %d: %w", i, err))
		}
	}
	return all, errors.Join(errs...)
}

// device returns the driver's handle of a device.
func (d *driver) device(f *frame, ordinal int) (int32, error) {
	if ordinal < 0 || ordinal > 1<<16 {
		return 0, fmt.Errorf("cuda: %w: %d", ErrNoDevice, ordinal)
	}
	f.Args[0], f.Args[1] = f.out(0), uintptr(ordinal)
	err := d.call(f, cuDeviceGet, 0)
	return int32(f.int(0)), err
}

// attribute returns an attribute of a device.
func (d *driver) attribute(f *frame, dev int32, a Attribute) (int, error) {
	f.Args[0], f.Args[1], f.Args[2] = f.out(0), uintptr(a), uintptr(dev)
	err := d.call(f, cuDeviceGetAttribute, 0)
	return f.int(0), err
}

// info fills in Info. The calls for its required fields must succeed; an attribute that the driver
// does not have is 0.
func (d *driver) info(f *frame, ordinal int, dev int32) (Info, error) {
	info := Info{Ordinal: ordinal, Driver: d.version}
	addr, size := f.buffer()
	f.Args[0], f.Args[1], f.Args[2] = addr, size, uintptr(dev)
	if err := d.call(f, cuDeviceGetName, 0); err != nil {
		return info, err
	}
	info.Name = f.string()
	f.Args[0], f.Args[1] = f.out(0), uintptr(dev)
	if err := d.call(f, cuDeviceTotalMem, 0); err != nil {
		return info, err
	}
	info.Memory = int64(f.Out[0])
	for _, a := range []struct {
		attribute Attribute
		to        *int
	}{{CapabilityMajor, &info.Capability.Major}, {CapabilityMinor, &info.Capability.Minor}} {
		v, err := d.attribute(f, dev, a.attribute)
		if err != nil {
			return info, err
		}
		*a.to = v
	}

	addr, _ = f.buffer()
	f.Args[0], f.Args[1] = addr, uintptr(dev)
	if d.call(f, cuDeviceGetUuid, 0) == nil {
		u := f.text[:16]
		info.UUID = fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	}
	addr, size = f.buffer()
	f.Args[0], f.Args[1], f.Args[2] = addr, size, uintptr(dev)
	if d.call(f, cuDeviceGetPCIBusId, 0) == nil {
		info.PCI = f.string()
	}
	d.attributes(f, dev, &info)
	return info, nil
}

// attributes fills in the fields of Info that are attributes of the device.
func (d *driver) attributes(f *frame, dev int32, info *Info) {
	ask := func(a Attribute) int {
		v, err := d.attribute(f, dev, a)
		if err != nil {
			return 0
		}
		return v
	}
	info.Multiprocessors = ask(Multiprocessors)
	info.MaxThreadsPerBlock = ask(MaxThreadsPerBlock)
	info.MaxThreadsPerMultiprocessor = ask(MaxThreadsPerMultiprocessor)
	info.MaxBlocksPerMultiprocessor = ask(MaxBlocksPerMultiprocessor)
	info.MaxGrid = [3]int{ask(MaxGridX), ask(MaxGridY), ask(MaxGridZ)}
	info.MaxBlock = [3]int{ask(MaxBlockX), ask(MaxBlockY), ask(MaxBlockZ)}
	info.WarpSize = ask(WarpSize)
	info.RegistersPerBlock = ask(RegistersPerBlock)
	info.RegistersPerMultiprocessor = ask(RegistersPerMultiprocessor)
	info.SharedPerBlock = ask(SharedPerBlock)
	info.SharedPerBlockOptin = ask(SharedPerBlockOptin)
	info.SharedPerMultiprocessor = ask(SharedPerMultiprocessor)
	info.L2Cache = ask(L2Cache)
	info.MemoryBusWidth = ask(MemoryBusWidth)
	info.ClockRate = ask(ClockRate)
	info.MemoryClockRate = ask(MemoryClockRate)
	info.Integrated = ask(Integrated) != 0
	info.ECC = ask(ECC) != 0
	info.KernelTimeout = ask(KernelTimeout) != 0
	info.Cooperative = ask(CooperativeLaunch) != 0
	info.Clusters = ask(ClusterLaunch) != 0
	info.MemoryPools = ask(MemoryPools) != 0
}

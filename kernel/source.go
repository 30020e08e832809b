package kernel

// Source is what Device.Kernel of package device makes ready: a *[Kernel], for every device, or a text for
// one kind of device, as wgsl.Source.
type Source interface {
	// Kernel returns the kernel. Its Err is the mistake in a text.
	Kernel() *Kernel
}

// Kernel returns k: it implements [Source].
func (k *Kernel) Kernel() *Kernel { return k }

package kernel

// Source is the argument of Device.Kernel of package device: a *[Kernel], for every device, or a
// text for one kind of device, such as a wgsl.Source.
type Source interface {
	// Kernel returns the kernel. Its Err returns an error in the text.
	Kernel() *Kernel
}

// Kernel returns k: it implements [Source].
func (k *Kernel) Kernel() *Kernel { return k }

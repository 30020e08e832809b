package devicetest

import "testing"

// TestNetworks compares the methods of neural networks with loops.
func TestNetworks(t *testing.T) { networks(t, cpu(0), false) }

// TestNetworksPortable is TestNetworks of the portable kernels.
func TestNetworksPortable(t *testing.T) { networks(t, openPortable, true) }

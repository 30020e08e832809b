package emu

const tensorMapBytes = 128

type TensorMap struct{}

func (t *TensorMap) check(m *Machine) error { return nil }

type bulkCopy struct{}

func (c *bulkCopy) land(b *block) {}

type bulkGroups struct{}

func (g *bulkGroups) reset() {}

func (c *compiler) bulk(in *inst) { c.fail(unsupported) }

package emu

type wgmmaShape struct{}

type wgmmaState struct{}

func (g *wgmmaState) reset() {}

func (c *compiler) wgmma(in *inst) { c.fail(unsupported) }

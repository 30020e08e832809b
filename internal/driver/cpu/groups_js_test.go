package cpu

func init() { UseBatch() }

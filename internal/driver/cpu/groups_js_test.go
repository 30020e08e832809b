package cpu

func init() { UseAll() }

package ir

func init() { UseFunctions() }

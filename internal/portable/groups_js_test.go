package portable

func init() { UseBatch() }

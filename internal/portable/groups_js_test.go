package portable

func init() { UseAll() }

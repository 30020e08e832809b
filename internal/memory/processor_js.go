package memory

// JavaScript does not report the processor.

func processorCaches() Caches { return Caches{} }

func processorName() string { return "" }
